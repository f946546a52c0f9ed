"""What moved the offline judge's scores of a text: n-grams with their share of a trait."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import msgspec
import numpy as np

from undersong.ml import ngrams
from undersong.ml.trait_heads import Heads
from undersong.models import TRAITS

GRAMS = 5  # words, or pairs of words, that are told per trait and direction
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_FUNCTION_WORDS = """
a about after again all also am an and any are as at back be because been before being but by can could did do
does doing done down each even ever every few for from get gets getting go goes going got had has have having
he her here hers him his how i if in into is it its itself just let like made make makes many may me might
mine more most much must my no nor not now of off oh ok okay on once one only or other our ours out over own
really said same say says shall she should so some still such than that the their theirs them then there these
they thing things this those through to too under until up upon us very was we well were what when where
whether which while who whom whose why will with without would yes yet you your yours
"""


class WordContribution(msgspec.Struct, frozen=True):
    """A word or a pair of neighbouring words, and what it added to the trait's raw score (below 0: took from it)."""

    words: str
    share: float


class TraitContributions:
    """The word n-grams of one text, ready to tell what moved any trait."""

    def __init__(self, heads: Heads, text: str) -> None:
        words, buckets = ngrams.words_of(text)
        self._words, self._heads = words, heads
        self._buckets = np.array(buckets, dtype=np.int64)
        squares = heads.idf[0][np.unique(self._buckets)].astype(np.float64) ** 2
        self._norm = float(np.sqrt(squares.sum()))

    def shares(self, trait: str) -> dict[str, float]:
        """What each word or pair added to the trait's raw score; those that moved nothing are left out."""
        if not self._norm:
            return {}
        column = TRAITS.index(trait)
        steps = self._heads.weights[0, self._buckets, column]
        shares = steps * (self._heads.scales[0, column] / self._norm)
        return {self._words[at]: float(shares[at]) for at in np.flatnonzero(steps).tolist()}


def top_words(contributions: TraitContributions, trait: str, most: int) -> tuple[tuple[str, float], ...]:
    """The words with a meaning that moved a trait most, up or down, with their shares to 4 decimals."""
    shares = _meaningful(contributions.shares(trait))
    ranked = sorted(shares.items(), key=lambda item: (-abs(item[1]), item[0]))
    return tuple((words, round(share, 4)) for words, share in ranked[:most])


def word_contributions(heads: Heads, text: str, trait: str) -> tuple[WordContribution, ...]:
    """The words that raised a trait most, then those that lowered it most; what carries no meaning is not told.

    A word that stands several times counts once, as it does in the score.
    """
    shares = _meaningful(TraitContributions(heads, text).shares(trait))
    ranked = sorted(((share, words) for words, share in shares.items()), key=lambda item: (-item[0], item[1]))
    raised = [each for each in ranked[:GRAMS] if each[0] > 0]
    lowered = [each for each in ranked[::-1][:GRAMS] if each[0] < 0]
    return tuple(WordContribution(words, round(share, 4)) for share, words in [*raised, *lowered])


@cache
def _function_words() -> frozenset[str]:
    return frozenset(_FUNCTION_WORDS.split())


def _meaningful(shares: Mapping[str, float]) -> dict[str, float]:
    return {words: share for words, share in shares.items() if says_something(words)}


def says_something(words: str) -> bool:
    """Whether a word, or a pair of them, means something to a reader by itself: neither marks nor function words alone.

    >>> [says_something(words) for words in ("account", "gift card", "it'd", "account ,", "to the", "nobody else")]
    [True, True, False, False, False, True]
    """
    tokens = words.casefold().split()
    whole = all(_WORD.fullmatch(token) for token in tokens)
    return whole and any(len(token) > 2 and "'" not in token and token not in _function_words() for token in tokens)
