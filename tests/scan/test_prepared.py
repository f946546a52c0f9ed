"""Machine code finds what NumPy finds, value by value, and is loaded for large inputs only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undersong import jit
from undersong.models import Conversation, Message
from undersong.scan import load_book, prepare, scan_conversations
from undersong.scan.block import Block
from undersong.scan.prepared import KERNELS
from undersong.scan.repeats import Repeats, repeats
from undersong.scan.speech import Speech
from undersong.triage import load_triage

BOOK = load_book()
MODEL, _ = load_triage()
COMPILED = {kernel: kernel.compiled for kernel in KERNELS}

FEW = st.sampled_from(
    ["ship", "sails", "i'm", "'quoted'", "''", "crane", "café", "l" * 30, "nine bytes", "•", "7", "\n\n", "> quoted\n",
     "```\ncode\n```\n", "don’t", "\ud800", "\0", "\x7f", "ſ", "漢字"]
)  # fmt: skip
TEXT = st.lists(FEW, max_size=40).map(" ".join) | st.text(max_size=80) | st.text(alphabet="ab '\n•é,", max_size=60)


@contextmanager
def machine_code(used: bool) -> Iterator[None]:
    """Whether machine code is at hand meanwhile."""
    before = {kernel for kernel in KERNELS if kernel.ready}
    for kernel in KERNELS:
        vars(kernel).pop("compiled", None)
        if used:
            vars(kernel)["compiled"] = COMPILED[kernel]
    try:
        yield
    finally:
        for kernel in KERNELS:
            vars(kernel).pop("compiled", None)
            if kernel in before:
                vars(kernel)["compiled"] = COMPILED[kernel]


def heard(texts: list[str]) -> list[object]:
    speech = Speech([Block(texts)])
    return [each.tolist() for each in (speech.start, speech.end, speech.counts, speech.first, speech.keys)]


@given(st.lists(TEXT, min_size=1, max_size=5))
@settings(max_examples=300, deadline=None)
def test_words_and_their_keys_are_the_same(texts: list[str]) -> None:
    with machine_code(False):
        expected = heard(texts)
    with machine_code(True):
        assert heard(texts) == expected


def again(texts: list[str], groups: list[int], n: int) -> Repeats:
    return repeats(Speech([Block(texts)]), np.array(groups), n)


@given(st.lists(st.tuples(TEXT, st.integers(-1, 2)), min_size=1, max_size=6), st.integers(1, 5))
@settings(max_examples=300, deadline=None)
def test_repeated_grams_are_the_same(messages: list[tuple[str, int]], n: int) -> None:
    given_ = [text for text, _ in messages], [group for _, group in messages], n
    with machine_code(False):
        expected = again(*given_)
    with machine_code(True):
        found = again(*given_)
    assert [each.tolist() for each in found] == [each.tolist() for each in expected]


@given(st.lists(TEXT | st.text(alphabet="ab zé’!_'. \n\t\x7f\0A7", max_size=200), min_size=1, max_size=6))
@settings(max_examples=300, deadline=None)
def test_triage_is_the_same_to_the_last_bit(texts: list[str]) -> None:
    with machine_code(False):
        expected = MODEL.raw(texts), MODEL(texts)
    with machine_code(True):
        found = MODEL.raw(texts), MODEL(texts)
    assert all(np.array_equal(*both, equal_nan=True) for both in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    "text", ["x" * (1 << 19), "! " * (1 << 18), "a b " * 100_000, "word" * 9 + " " * 5000, "'" * 999]
)
def test_long_and_hostile_texts_are_the_same(text: str) -> None:
    texts = ["before", text, "after it is as it is as it is"]
    with machine_code(False):
        expected = heard(texts), MODEL.raw(texts).tolist()
    with machine_code(True):
        assert (heard(texts), MODEL.raw(texts).tolist()) == expected


def talk(texts: list[str]) -> Conversation:
    messages = tuple(
        Message(id=f"m{place}", conversation="c", position=place, author="ab"[place % 2], role="agent", text=text)
        for place, text in enumerate(texts)
    )
    return Conversation(id="c", source_format="jsonl", messages=messages)


@given(st.lists(st.lists(TEXT, max_size=8), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_scans_of_whole_conversations_are_the_same(talks: list[list[str]]) -> None:
    conversations = [talk(texts) for texts in talks]
    with machine_code(False):
        expected = scan_conversations(conversations, BOOK)
    with machine_code(True):
        assert scan_conversations(conversations, BOOK) == expected


@pytest.mark.parametrize(
    ("worth", "signals", "loaded"),
    [(11, ("phrases", "loops"), True), (12, ("phrases", "loops"), False), (0, ("phrases", "threads"), False)],
)
def test_it_is_loaded_where_the_input_is_worth_it(
    tmp_path: Path, worth: int, signals: tuple[str, ...], loaded: bool
) -> None:
    (tmp_path / "one.jsonl").write_text("12345\n", encoding="utf-8")
    (tmp_path / "two.jsonl").write_text("1234\n", encoding="utf-8")
    with machine_code(False):
        assert prepare(BOOK, tmp_path, signals, worth) is loaded
        assert all(kernel.ready is loaded for kernel in KERNELS)


@pytest.mark.parametrize("path", ["nowhere.jsonl", "-", "/dev/null"])
def test_what_is_not_a_file_has_no_known_size(path: str) -> None:
    with machine_code(False):
        assert not prepare(BOOK, path, worth=1)


def test_numba_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERSONG_PLAIN", "1")
    jit.installed.cache_clear()
    try:
        with machine_code(False):
            assert not prepare(BOOK, ".", worth=0)
    finally:
        monkeypatch.undo()
        jit.installed.cache_clear()
