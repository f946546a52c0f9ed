"""Grams that come again, held against counting them one by one."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from undersong.scan import load_book
from undersong.scan.ngram_loops import repeated_ngrams
from undersong.scan.text_batch import TextBatch
from undersong.scan.token_index import TokenIndex, keys_of

FEW = st.lists(st.sampled_from(["ship", "sails", "i'm", "crane", "café", "l" * 30, "'", "7"]), max_size=30).map(
    " ".join
)
ANY = st.text(alphabet="ab '\n•é,", max_size=60)


def counted(texts: list[str], groups: list[int], n: int) -> set[tuple[int, ...]]:
    """The places of each gram that stands twice in a group, word by word."""
    speech = TokenIndex([TextBatch(texts)])
    places: dict[tuple[int, tuple[str, ...]], list[int]] = defaultdict(list)
    for message, group in enumerate(groups):
        words = speech.of(message)
        for at in range(len(words) - n + 1):
            places[group, tuple(words[at : at + n])].append(int(speech.first[message]) + at)
    return {tuple(found) for (group, _), found in places.items() if group >= 0 and len(found) > 1}


@given(st.lists(st.tuples(FEW | ANY, st.integers(-1, 2)), min_size=1, max_size=6), st.integers(1, 5))
@settings(max_examples=200, deadline=None)
def test_the_repeated_grams_are_those_that_counting_finds(messages: list[tuple[str, int]], n: int) -> None:
    texts, groups = [text for text, _ in messages], [group for _, group in messages]
    repeated = repeated_ngrams(TokenIndex([TextBatch(texts)]), np.array(groups), n)
    places: dict[int, list[int]] = defaultdict(list)
    for gram, place in zip(repeated.gram.tolist(), repeated.place.tolist(), strict=True):
        places[gram].append(place)
    assert {tuple(each) for each in places.values()} == counted(texts, groups, n)


@given(FEW)
@settings(max_examples=50, deadline=None)
def test_a_word_has_the_same_key_in_a_message_and_by_itself(text: str) -> None:
    speech = TokenIndex([TextBatch([text])])
    assert speech.keys.tolist() == keys_of(speech.of(0)).tolist()


def test_a_gram_says_something_where_enough_of_its_words_do_and_it_is_no_boilerplate() -> None:
    finder = load_book().loops
    says = {
        "grey ships sail north": True,
        "do you want to": False,
        "let me know what": False,
        "the crane and ship": True,
    }
    for gram, expected in says.items():
        assert finder.is_informative(TokenIndex([TextBatch([gram])]), np.array([0])).tolist() == [expected], gram
