"""Phrases found by how words begin are those that an automaton finds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undersong.scan.beginnings import Beginnings
from undersong.scan.matcher import AhoCorasickMatcher
from undersong.scan.normalise import is_word

STRINGS = [
    "now",
    "you",
    "you owe me",
    "you owe me this",
    "owe me",
    "no_1 else",
    "\U0001f680 to the moon",
    "-- no --",
    "été",
]
ENCODED = [string.encode() for string in STRINGS]
PIECES = st.sampled_from([*STRINGS, "knows", "younow", " ", "\x1e", "'", "_", "é", "\U0001f680", "yo", "owe", "n"])


def begins_inside(text: str, place: int) -> bool:
    """Whether the ASCII word at a place goes on from an ASCII one."""
    at, before = text[place], text[place - 1]
    return at < "\x80" and is_word(at) and before < "\x80" and is_word(before)


@settings(deadline=None, max_examples=300)
@given(pieces=st.lists(PIECES, max_size=12))
def test_all_is_found_but_what_begins_inside_of_a_word(pieces: list[str]) -> None:
    text = f"\x1e{''.join(pieces)}\x1e"
    data = text.encode()
    expected = [
        each
        for each in AhoCorasickMatcher(ENCODED).find(data)
        if not begins_inside(text, len(data[: each[1]].decode()))
    ]
    assert sorted(Beginnings(ENCODED).find(data)) == sorted(expected)


def test_more_is_found_than_there_was_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undersong.scan.beginnings.FEW", 2)
    assert [start for _, start, _ in Beginnings([b"now"]).find(b"\x1enow now now now\x1e")] == [1, 5, 9, 13]


def test_a_string_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="less than 3 bytes"):
        Beginnings([b"no"])
