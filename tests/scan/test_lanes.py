"""The walk in lanes finds what plain looking finds, wherever a string lies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undersong.scan import lanes, matcher
from undersong.scan.lanes import LANES, LaneWalk, available
from undersong.scan.matcher import HEAD, AhoCorasickMatcher

STRINGS = st.lists(st.binary(min_size=1, max_size=5).map(lambda data: data.translate(FEW)), min_size=1, unique=True)
FEW = bytes(b"ab\0\xc3\xa9 "[code % 6] for code in range(256))  # few letters, so that much is found
WORDS = [b"keep this between us", b"this", b"keep this between them", b"us", "請相信我".encode(), b"is between"]


@pytest.fixture(autouse=True)
def asked_again() -> Iterator[None]:
    """The answer is kept within a run."""
    for kept in (available, lanes._machine):
        kept.cache_clear()
    yield
    for kept in (available, lanes._machine):
        kept.cache_clear()


def looked_for(strings: list[bytes], data: bytes) -> list[tuple[int, int]]:
    return sorted(
        (index, start)
        for index, string in enumerate(strings)
        for start in range(len(data))
        if data.startswith(string, start)
    )


@settings(max_examples=300)
@given(STRINGS, st.binary(max_size=120))
def test_every_occurrence_is_found_once(strings: list[bytes], noise: bytes) -> None:
    data = noise.translate(FEW)
    assert sorted(LaneWalk(strings).find(data)) == looked_for(strings, data)


@pytest.mark.parametrize("size", [*range(1, 4 * LANES), 997])
def test_a_string_on_the_edge_of_two_lanes_is_found(size: int) -> None:
    walk = LaneWalk([b"abc", b"c"])
    for at in range(size - 2):
        data = b"." * at + b"abc" + b"." * (size - at - 3)
        assert sorted(walk.find(data)) == [(0, at), (1, at + 2)]


def text(size: int) -> bytes:
    pieces = [b"keep this between us, or ", b"keep this between th", "em. 請相信我 ".encode(), b"is between us "]
    return b"".join(pieces[number % 4] for number in range(size))


@pytest.mark.parametrize(("plain", "walked"), [("1", False), ("", True)])
def test_much_text_is_walked_in_lanes_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch, plain: str, walked: bool
) -> None:
    monkeypatch.setenv("UNDERSONG_PLAIN", plain)
    monkeypatch.setattr(matcher, "ENOUGH", 3 * matcher.LARGE)
    data = text(matcher.LARGE // 8)
    assert len(data) > matcher.LARGE
    assert max(map(len, WORDS)) > HEAD
    engine = AhoCorasickMatcher(WORDS)
    found = [sorted(engine.find(data)) for _ in range(5)]
    assert ("_lanes" in vars(engine)) is walked
    assert found == [found[0]] * 5
    assert {index for index, _, _ in found[0]} == set(range(len(WORDS)))
    assert sorted(engine.find(data[:300])) == [each for each in found[0] if each[2] <= 300]


def test_where_no_machine_code_can_be_made_the_other_way_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher, "ENOUGH", 1)
    monkeypatch.setattr(lanes, "_source", lambda: "no code of any machine")
    engine, data = AhoCorasickMatcher(WORDS), text(matcher.LARGE // 8)
    assert engine.find(data)
    assert "_lanes" not in vars(engine)


def test_single_messages_never_wait_for_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher, "ENOUGH", 100)
    engine = AhoCorasickMatcher(WORDS)
    for _ in range(10):
        assert engine.find(b" keep this between us ")
    assert "_lanes" not in vars(engine)
