"""What moved a score: words that are in the text, and the sentence of a signal."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Undersong
from tests.judges.test_offline import DEMAND, JUDGE
from undersong.judges.explain import moved, shown
from undersong.models import TRAITS

HEADS = JUDGE.artefacts.heads


def test_the_words_that_raised_a_trait_come_first() -> None:
    found = moved(HEADS, DEMAND, "manipulation")
    assert found[0].share > 0 > found[-1].share
    assert all(all(word in DEMAND for word in each.words.split()) for each in found)


def test_a_text_of_unknown_words_is_moved_by_nothing() -> None:
    assert moved(HEADS, "", "virtue") == ()


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=60), st.sampled_from(TRAITS))
def test_any_text_can_be_explained(text: str, trait: str) -> None:
    assert len(moved(HEADS, text, trait)) <= 10
    for each in shown(JUDGE.artefacts, JUDGE.prototypes, text):
        assert text[each.start : each.end].strip()


def test_the_sentence_of_each_signal_is_shown() -> None:
    (first, *_) = shown(
        JUDGE.artefacts, JUDGE.prototypes, "It rained. Buy gift cards and send me the numbers on the back."
    )
    assert first.signal == "scam_ask"


def test_explain_tells_the_sentence_and_what_kind_of_text_it_is(undersong: Undersong) -> None:
    from pathlib import Path

    line = (
        '{"id": "m1", "conversation": "c", "author": "kira", "text": "It rained. Send me the gift card numbers now."}\n'
    )
    Path("talk.jsonl").write_text(line)
    assert undersong("audit", "talk.jsonl").code == 0
    told = undersong("explain", "m1").out
    assert "“Send me the gift card numbers now.”" in told
    assert "no levels" in told
