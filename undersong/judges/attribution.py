"""What moved the offline judge's scores of a text: n-grams with their share of a trait."""

from __future__ import annotations

import msgspec
import numpy as np

from undersong.ml import ngrams
from undersong.ml.trait_heads import Heads
from undersong.models import TRAITS

GRAMS = 5  # words, or pairs of words, that are told per trait and direction


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
    """The words that moved a trait most, up or down, with their shares to 4 decimals."""
    ranked = sorted(contributions.shares(trait).items(), key=lambda item: (-abs(item[1]), item[0]))
    return tuple((words, round(share, 4)) for words, share in ranked[:most])


def word_contributions(heads: Heads, text: str, trait: str) -> tuple[WordContribution, ...]:
    """The words that raised a trait most, then those that lowered it most; character n-grams are not told.

    A word that stands several times counts once, as it does in the score.
    """
    shares = TraitContributions(heads, text).shares(trait)
    ranked = sorted(((share, words) for words, share in shares.items()), key=lambda item: (-item[0], item[1]))
    raised = [each for each in ranked[:GRAMS] if each[0] > 0]
    lowered = [each for each in ranked[::-1][:GRAMS] if each[0] < 0]
    return tuple(WordContribution(words, round(share, 4)) for share, words in [*raised, *lowered])
