"""Sentences → signals: how much nearer a sentence lies to a signal's phrases than to what only looks alike.

No label is used, so the scores carry over to text of another kind, as far as they go. A score is 0 to 1: about .05
where a message says no more of the kind than ordinary ones, .5 half way to the phrases themselves. No probability.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.judges.phrases import PhraseBook
from undersong.judges.spread import Whitening
from undersong.vectors.static import Embedded, StaticVectors, Vectors, product

Array = npt.NDArray[np.float64]

SHARPNESS = 10.0  # of closeness: the nearest phrases count most, without one deciding alone
FOCUS = 4.0  # of a message's sentences: between their mean (0) and the strongest alone
SLOPE = 6.0  # of the curve to 0-1: .05 at an ordinary sentence's mean, .95 at the phrases' own
DEVIATIONS = 3.0  # a phrase set that stands out less than this from ordinary sentences is held to it all the same
TOGETHER = 1 << 12  # sentences compared at once, so that memory stays bounded


class Signals(msgspec.Struct, frozen=True, eq=False):
    """``scores`` (n texts, signals) in [0, 1], to 3 decimals; nan where a text has no sentence.

    ``strongest`` (n, signals) is the number of the sentence, within its text, that shows the signal most.
    """

    scores: Array
    strongest: npt.NDArray[np.intp]


class Prototypes:
    """The phrases of a book as points, ready to be compared with."""

    def __init__(self, book: PhraseBook, vectors: StaticVectors, whitening: Whitening) -> None:
        self.ids = book.ids
        self._whitening = whitening
        groups = [each.positive for each in book.sets] + [each.contrast for each in book.sets] + [book.background]
        sizes = [len(group) for group in groups]
        self._points = whitening.whiten(vectors.sentence_vectors([phrase for group in groups for phrase in group]))
        self._own, self._others = _sides(len(book.sets), sizes)
        ordinary = self._contrast(whitening.sample)
        self._zero = ordinary.mean(axis=0)
        self._one = np.maximum(self._held_out(), self._zero + DEVIATIONS * ordinary.std(axis=0))

    def score(self, embedded: Embedded) -> Signals:
        """The signals of some texts."""
        levels = self.contrast_scores(embedded.parts)
        raised = np.exp(FOCUS * levels)
        count = len(embedded.texts)
        means = np.full((count, len(self.ids)), np.nan)
        strongest = np.zeros((count, len(self.ids)), dtype=np.intp)
        for place, (start, end) in enumerate(pairwise(embedded.bounds.tolist())):
            if end > start:
                levels[start:end].argmax(axis=0, out=strongest[place])
                np.add.reduce(raised[start:end], axis=0, out=means[place])
                means[place] /= end - start
        scores = np.log(means) / FOCUS
        return Signals(np.round(1 / (1 + np.exp(-SLOPE * (scores - 0.5))), 3), strongest)

    def contrast_scores(self, parts: Vectors) -> Array:
        """Sentence vectors (n, 256) → (n, signals): 0 like ordinary sentences, 1 like the signal's own phrases."""
        chunks = [self._contrast(parts[i : i + TOGETHER]) for i in range(0, len(parts), TOGETHER)]
        contrast = np.concatenate(chunks) if chunks else np.zeros((0, len(self.ids)))
        return np.asarray((contrast - self._zero) / (self._one - self._zero))

    def _contrast(self, parts: Vectors) -> Array:
        closeness = product(self._whitening.whiten(parts), self._points.T)
        near = np.exp(np.float32(SHARPNESS) * closeness).astype(np.float64)
        return np.asarray(np.log(product(near, self._own)) - np.log(product(near, self._others))) / SHARPNESS

    def _held_out(self) -> Array:
        """Per signal, the mean contrast of its own phrases, each held out in turn."""
        near = np.exp(SHARPNESS * (self._points @ self._points.T).astype(np.float64))
        np.fill_diagonal(near, 0.0)
        inside = self._own > 0
        own = near @ self._own * (inside.sum(axis=0) / (inside.sum(axis=0) - 1))
        contrast = (np.log(own) - np.log(near @ self._others)) / SHARPNESS
        return np.array([contrast[inside[:, signal], signal].mean() for signal in range(len(self.ids))])


def _sides(signals: int, sizes: list[int]) -> tuple[Array, Array]:
    """(phrases, signals) twice: the weights of each signal's own phrases, and of all that it is held against.

    Held against it are its contrasting phrases, the background, and the phrases of every other signal.
    """
    group = np.repeat(np.arange(len(sizes)), sizes)[:, None]
    signal = np.arange(signals)[None, :]
    own = (group == signal).astype(np.float64)
    other = ((group < signals) & (group != signal)) | (group == signals + signal) | (group == 2 * signals)
    return own / own.sum(axis=0), other / other.sum(axis=0)
