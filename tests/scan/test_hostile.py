"""Hostile text costs time in proportion to its length and breaks nothing."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scan.dialogue import scan, scans, talk
from undersong import scan_keywords
from undersong.models import decode, encode

SIZE = 80_000
HOSTILE = {
    "one letter": "a",
    "spaces": " ",
    "blank lines": "\n \n",
    "a phrase": "you owe me ",
    "one word": "ha ",
    "fences": "```\n",
    "backticks": "`",
    "quotes": "> ",
    "marks": "\u0301\u0327",
    "letters with marks": "e\u0301\u0327",
    "zero width": "a\u200b",
    "emoji": "👨\u200d👩\u200d👧",
    "long ligature": "ﷺ",
    "jamo": "\u1112\u1161",
    "no spaces": "信",
    "surrogates": "\ud800you owe me ",
    "apologies": "I'm sorry. Actually, I hear you. ",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_four_times_the_text_takes_no_sixteen_times_the_time(unit: str) -> None:
    def seconds(length: int) -> float:
        text, taken = unit * (length // len(unit)), []
        for _ in range(2):  # the collector of cycles may look at everything else meanwhile
            started = time.process_time()
            scan_keywords(text)
            taken.append(time.process_time() - started)
        return min(taken)

    small = seconds(SIZE // 8)
    assert seconds(SIZE // 2) < 12 * small + 0.1


def test_many_turns_of_one_agent_stay_linear() -> None:
    started = time.process_time()
    scan(talk(*["assistant: I'm sorry. You owe me. Restart the broken harbour crane and wait."] * 3000))
    assert time.process_time() - started < 6


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text(max_size=40), max_size=6))
def test_any_text_is_scanned_the_same_way_twice_and_survives_json(texts: list[str]) -> None:
    lines = [f"assistant: {text}" for text in texts]
    first = scans(*lines)
    assert first == scans(*lines)
    assert [decode(encode(one), type(one)) for one in first] == list(first)


@settings(deadline=None, max_examples=60)
@given(st.text(st.characters(), max_size=60))
def test_spans_are_inside_the_text_and_flags_count_the_hits(text: str) -> None:
    result = scan_keywords(f"{text} you owe me {text}")
    assert all(0 <= hit.start < hit.end <= 2 * len(text) + 12 for hit in result.hits)
    assert result.total_flags == sum(result.flagged_traits.values()) >= 0
