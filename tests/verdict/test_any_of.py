"""Expressions searched for by their words match where the same expressions as one match."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undersong.verdict.any_of import AnyOf, stays_in_line

EXPRESSIONS = (
    r"^[1-9]\d* failed\b.*", r"^FAIL\s+\S+", "(?i)it broke|^oh no$", r"(?<=\n)^done(?!.*not)", "fail", r"\d+ of \d+",
    r"^(?:a|b)+$", r"\bbroke\W+done", "[|)]oh|no",
)  # fmt: skip
WORDS = ("3 failed", "FAIL", "fail", "It Broke", "oh no", "done", "not", "4 of 5", "a", "\n", "\n", " ", "|oh", "İ")


@given(
    st.lists(st.sampled_from(EXPRESSIONS), min_size=1, max_size=5, unique=True),
    st.lists(st.sampled_from(WORDS), max_size=12),
    st.booleans(),
)
def test_the_matches_are_those_of_one_expression(expressions: list[str], words: list[str], ignore_case: bool) -> None:
    text = "".join(words)
    parts = [f"(?i:{each[4:]})" if each.startswith("(?i)") else each for each in expressions]
    whole = re.compile("|".join(parts), re.MULTILINE | (re.IGNORECASE if ignore_case else 0))
    several = AnyOf("words-of-a-test", expressions, ignore_case=ignore_case)
    assert [match.span() for match in several.finditer(text)] == [match.span() for match in whole.finditer(text)]
    first = several.search(text)
    assert (first and first.span()) == (whole.search(text) and next(whole.finditer(text)).span())


@pytest.mark.parametrize("expression", [r"^a.*\d$", r"[^\w\n]\S\w", "(?!.*b)(?:c|d){2}", r"\bx\b"])
def test_what_looks_at_no_newline_stays_in_a_line(expression: str) -> None:
    assert stays_in_line(expression)


@pytest.mark.parametrize("expression", [r"a\s", r"\Wa", "[^a]", r"a(?=\n)", r"(?<=\n)a", r"a\Z", "(?s:a.b)", r"a|b\n"])
def test_what_may_look_at_a_newline_does_not(expression: str) -> None:
    assert not stays_in_line(expression)
