"""Folding loses no offset and invents no letter."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undersong.scan.unicode_fold import BREAK, fold

LETTERS = [
    "a",
    "B",
    "é",
    "e\u0301",
    "ﬁ",
    "Ａ",
    "ß",
    "İ",
    "ı",
    "ﷺ",
    "한",
    "\u1112\u1161\u11ab",
    "信",
    "½",
    "Σ",
    "ς",
    "Ꭰ",
]
INVISIBLE = ["\u200b", "\u200d", "\u00ad", "\ufeff", "\u2060", "\ufe0f"]
MARKS = ["’", "“", "—", "‑", "…", ".", "-", "'", "🦅", "´", "_"]
SPACES = [" ", "\u00a0", "\u3000", "\t", "\n", "\r\n", "  ", "\n\n", "\u2029", "\f"]
TEXTS = st.lists(st.sampled_from(LETTERS + INVISIBLE + MARKS + SPACES), max_size=25).map("".join)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Don’t “Stop”", 'don\'t "stop"'),
        ("e–mail — now", "e-mail - now"),
        ("so\u00adft zero\u200bwidth", "soft zerowidth"),
        ("non\u00a0breaking\u3000space", "non breaking space"),
        ("ｆｕｌｌ　ＷＩＤＴＨ", "full width"),
        ("cafe\u0301 CAFÉ", "café café"),
        ("STRASSE Straße", "strasse strasse"),
        ("run  of \t spaces\nand a line", "run of spaces and a line"),
        ("one\r\ntwo", "one two"),
        ("one\n\ntwo", f"one{BREAK}{BREAK}two"),
        ("one\n \t\ntwo", f"one{BREAK}two"),
        ("one\r\n\r\ntwo", f"one{BREAK}two"),
        ("half a pair \ud800", "half a pair \ufffd"),
        ("", ""),
    ],
)
def test_text_is_folded(text: str, folded: str) -> None:
    assert fold(text).text == folded


def test_a_dotless_i_stays_another_letter() -> None:
    assert fold("ı").text != fold("i").text
    assert fold("I").text == "i"


def test_an_offset_inside_a_ligature_has_no_place_in_the_text() -> None:
    folded = fold("oﬃce")
    assert folded.text == "office"
    assert folded.span(0, 6) == (0, 4)
    assert folded.span(1, 4) == (1, 2)
    assert folded.span(2, 6) is None
    assert folded.span(0, 3) is None


def test_a_letter_that_folds_to_as_many_as_the_text_is_long_is_still_one() -> None:
    folded = fold("½\u200b\u200b")
    assert folded.text == "1⁄2"
    assert folded.span(0, 3) == (0, 1)
    assert folded.span(0, 1) is None


@settings(deadline=None)
@given(TEXTS)
def test_the_spans_of_all_folded_characters_lie_in_order_in_the_text(text: str) -> None:
    folded = fold(text)
    last = 0
    for start in range(len(folded.text)):
        span = folded.span(start, start + 1)
        if span is not None:
            assert last <= span[0] < span[1] <= len(text)
            last = span[1]


@settings(deadline=None)
@given(TEXTS)
def test_a_span_folds_to_what_it_stands_for(text: str) -> None:
    folded = fold(text)
    for start in range(len(folded.text)):
        span = folded.span(start, start + 1)
        if span is not None and folded.text[start] not in {BREAK, " "}:
            assert fold(text[slice(*span)]).text == folded.text[start]


@settings(deadline=None)
@given(st.lists(st.sampled_from(LETTERS), max_size=25).map("".join))
def test_letters_fold_as_the_unicode_standard_says(text: str) -> None:
    expected = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    assert fold(text).text == expected


@settings(deadline=None)
@given(TEXTS)
def test_folding_twice_changes_nothing_more(text: str) -> None:
    once = fold(text).text
    assert fold(once).text == once
