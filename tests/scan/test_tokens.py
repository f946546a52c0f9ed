"""Codes are compared as plain counting of their pairs of tokens would compare them."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undersong.scan.code import likeness, pairs_of

PIECES = ["x", "def f(x):", "\n", "  ", "\t", "\0", "\x1c", "_a1", "é", "漢字", "\ud800", "y" * 30, "=="]
CODE = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=60)


def counted(code: str) -> Counter[tuple[str, str]]:
    return Counter(pairwise(["", *re.findall(r"\w+|[^\w\s]", code), ""]))


@given(CODE, CODE)
@settings(max_examples=500, deadline=None)
def test_likeness_is_that_of_plain_counting(one: str, other: str) -> None:
    first, second = counted(one), counted(other)
    expected = 2.0 * (first & second).total() / (first.total() + second.total())
    assert likeness(pairs_of(one), pairs_of(other)) == expected


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [("a b", "a b", 1.0), ("a b", "b a", 0.0), ("a a a", "a a", 6 / 7), ("", "", 1.0), ("a", "", 0.0), ("", "\0", 0.0)],
)
def test_order_and_number_of_tokens_are_seen(one: str, other: str, alike: float) -> None:
    assert likeness(pairs_of(one), pairs_of(other)) == pytest.approx(alike)
