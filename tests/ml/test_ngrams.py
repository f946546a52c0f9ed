"""The features of a text: the same everywhere, distinct, and safe on any text."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undersong.ml import ngrams
from undersong.ml.ngrams import grams

ANY_TEXT = st.text(st.characters(), max_size=300)  # lone surrogates and control characters included


def test_a_text_keeps_its_buckets_for_as_long_as_the_version_stands() -> None:
    blocks = grams("You OWE me: don’t tell the others… 42 times, мой друг")
    digest = hashlib.sha256(b"".join(block.astype("<u2").tobytes() for block in blocks)).hexdigest()
    assert (ngrams.VERSION, [len(block) for block in blocks], digest[:16]) == (1, [28, 238], "d2d8e3579996cba2")


@given(ANY_TEXT)
def test_buckets_are_distinct_and_rising(text: str) -> None:
    for block in grams(text):
        assert (np.diff(block.astype(int)) > 0).all()


@given(ANY_TEXT, ANY_TEXT)
def test_a_longer_text_has_every_word_of_its_parts(first: str, second: str) -> None:
    together = set(grams(f"{first} {second}").words.tolist())
    assert set(grams(first).words.tolist()) | set(grams(second).words.tolist()) <= together


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("I can't", "I can’t", True),
        ("well — yes", "well - yes", True),
        ("wait… what", "wait... what", True),
        ("two\n\n  words", "two words", True),
        ("so, we go", "so we go", False),
        ("OBEY me", "obey me", False),
        ("trust me", "trust me!", False),
        ("dog bites man", "man bites dog", False),
    ],
)
def test_only_spelling_variants_are_the_same(one: str, other: str, same: bool) -> None:
    assert all(np.array_equal(a, b) for a, b in zip(grams(one), grams(other), strict=True)) == same


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\x00", "a", "!", "\ud800", "🦞" * 3])
def test_the_shortest_texts_have_features_or_none_and_never_fail(text: str) -> None:
    assert (grams(text).words.size > 0) == bool(text.strip(" \n\t\x00"))


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 40))
def test_words_count_once_however_often_they_are_said(times: int) -> None:
    once, often = grams("never again"), grams("never again " * times)
    assert set(often.words.tolist()) - set(once.words.tolist()) <= set(grams("again never").words.tolist())


def test_a_megabyte_is_read_in_pieces_to_its_end() -> None:
    text = "lorem ipsum " * 90_000 + "unmistakable"
    assert set(grams("unmistakable").words.tolist()) <= set(grams(text).words.tolist())


@given(ANY_TEXT)
def test_the_words_that_are_told_are_those_that_are_hashed(text: str) -> None:
    words, buckets = ngrams.words_of(text)
    assert len(words) == len(buckets)
    assert sorted(set(buckets)) == ngrams.grams(text).words.tolist()
    assert all(words)
