"""Words without which an expression matches nowhere: what is left out never matches."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undersong.verdict.required_words import DIGIT, ExpressionFilter, folded, required_words

PARTS = (
    "pay",
    "send",
    r"\d",
    r"\b",
    " ",
    "(?:me|us)",
    "(?:re)?send",
    "[$€]",
    "[^.?!]{0,9}",
    r"\w+",
    "(?!x)",
    "a|b",
    "",
)
WORDS = ("pay", "Send", "me", "us", "resend", "5", "٣", "$", "K", "ſend", "a", "b", "x", " ", "ı", "€")


@pytest.mark.parametrize(
    ("expression", "groups"),
    [
        (r"\bsend\b.*\bcode\b", (("code",), ("send",))),
        (r"(?:can|could) you pay", (("can you pay", "could you pay"),)),
        (r"(?:pay|wire)\b.{0,9}\d", ((DIGIT,), ("pay", "wire"))),
        (r"(?:my )?wallet", (("wallet",),)),
        (r"(?:wallet|.)", ()),
        (r"(?!wallet)(?<!x)\w", ()),
        (r"(?:wallet){0,2}", ()),
        (r"(?:iban){2,}", (("iban",),)),
        ("é|è", ()),
    ],
)
def test_an_expression_needs_its_words(expression: str, groups: tuple[tuple[str, ...], ...]) -> None:
    assert required_words(expression) == groups


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=5), st.lists(st.sampled_from(WORDS), max_size=8))
def test_what_matches_is_never_left_out(parts: list[str], words: list[str]) -> None:
    expression, text = "".join(parts), "".join(words)
    matches = re.search(expression, text, re.IGNORECASE) is not None
    assert not matches or ExpressionFilter([required_words(expression)]).possible(text) == [0]


def test_letters_are_folded_as_expressions_see_them() -> None:
    letters = re.compile(f"[{string.ascii_lowercase}]", re.IGNORECASE)
    same = [chr(code) for code in range(0x10000) if letters.match(chr(code))]
    assert len(same) == 56
    assert {letter for one in same for letter in folded(one)} == set(string.ascii_lowercase)


def test_only_expressions_whose_words_are_there_may_match() -> None:
    several = ExpressionFilter(map(required_words, [r"send\b.*\d", "(?:wire|transfer) it", "."]))
    assert several.possible("Please TRANSFER IT today") == [1, 2]
    assert several.possible("send 5") == [0, 2]
    assert several.possible("send five") == [2]
