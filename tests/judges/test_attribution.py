"""What moved a score: words that are in the text, and the sentence of a signal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Undersong
from tests.judges.test_offline import DEMAND, JUDGE
from undersong.judges.attribution import says_something, word_contributions
from undersong.models import TRAITS

HEADS = JUDGE.artefacts.heads


def test_the_words_that_raised_a_trait_come_first() -> None:
    contributions = word_contributions(HEADS, DEMAND, "manipulation")
    assert contributions[0].share > 0 > contributions[-1].share
    assert all(all(word in DEMAND for word in each.words.split()) for each in contributions)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("account", True),
        ("account ,", False),
        ("it'd", False),
        ("it'd only", False),
        ("to the", False),
        ("your card", True),
    ],
)
def test_marks_pieces_and_function_words_are_no_reason(words: str, shown: bool) -> None:
    assert says_something(words) is shown


def test_a_text_of_unknown_words_is_moved_by_nothing() -> None:
    assert word_contributions(HEADS, "", "virtue") == ()


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=60), st.sampled_from(TRAITS))
def test_any_text_can_be_explained(text: str, trait: str) -> None:
    assert len(word_contributions(HEADS, text, trait)) <= 10


def test_explain_tells_the_sentence_and_what_kind_of_text_it_is(undersong: Undersong) -> None:
    from pathlib import Path

    line = (
        '{"id": "m1", "conversation": "c", "author": "kira", "text": "It rained. Send me the gift card numbers now."}\n'
    )
    Path("talk.jsonl").write_text(line)
    assert undersong("audit", "talk.jsonl").code == 0
    output = undersong("explain", "m1", "--all").out
    assert "“Send me the gift card numbers now.”" in output
    assert "no levels" in output
