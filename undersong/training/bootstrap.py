"""The four measures of agreement over all bootstrap samples at once: a sample is how often it holds each message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from undersong.training.trait_heads import Array

BLOCK = 2_000_000  # samples times messages that are worked on at once
SAME = 1e-20  # the expected disagreement from which on values count as all the same; rounding leaves less

SampledMeasure = Callable[[Array, Array, Array], Array]


def sampled(measure: SampledMeasure, labels: Array, scores: Array, draws: Sequence[npt.NDArray[np.intp]]) -> Array:
    """The measure of each sample, over the pairs of it that are numbers; nan of fewer than two of them."""
    paired = ~(np.isnan(scores) | np.isnan(labels))
    values = []
    for counts in _blocks(draws, len(labels)):
        own = counts[:, paired]
        few = (own.sum(axis=1) < 2) & (not paired.all())
        values.append(np.where(few, np.nan, measure(labels[paired], scores[paired], own)))
    return np.concatenate(values)


def _blocks(draws: Sequence[npt.NDArray[np.intp]], messages: int) -> Iterator[Array]:
    """How often each sample of a block holds each message: (samples, messages)."""
    size = max(1, BLOCK // max(messages, 1))
    for start in range(0, len(draws), size):
        yield np.stack([np.bincount(rows, minlength=messages) for rows in draws[start : start + size]]).astype(float)


def spearman_of_samples(labels: Array, scores: Array, counts: Array) -> Array:
    """Rank correlation of each sample, ties at their mean rank; nan where one side is constant."""
    total = counts.sum(axis=1)
    a, b = (_ranks(values, counts) - (total[:, None] + 1) / 2 for values in (labels, scores))
    spread = np.sqrt((counts * a * a).sum(axis=1) * (counts * b * b).sum(axis=1))
    return _ratio((counts * a * b).sum(axis=1), spread)


def auc_of_samples(present: npt.NDArray[np.bool_], scores: Array, counts: Array) -> Array:
    """The chance that one where it is present scores above one where it is not; nan without both."""
    count = counts[:, present].sum(axis=1)
    above = (counts * _ranks(scores, counts))[:, present].sum(axis=1) - count * (count + 1) / 2
    return _ratio(above, count * (counts.sum(axis=1) - count))


def kappa_of_samples(labels: Array, scores: Array, counts: Array, marks: int) -> Array:
    """Cohen's kappa over whole marks with quadratic weights; nan where chance alone would agree fully."""
    a, b = (np.rint(values * (marks - 1)).astype(int) for values in (labels, scores))
    total = counts.sum(axis=1)
    of_labels, of_scores = (counts @ np.eye(marks)[side] for side in (a, b))
    weights = np.subtract.outer(np.arange(marks), np.arange(marks)) ** 2
    expected = ((of_labels @ weights) * of_scores).sum(axis=1)
    return np.asarray(1.0 - _ratio((counts @ ((a - b) ** 2)) * total, expected))


def alpha_of_samples(labels: Array, scores: Array, counts: Array) -> Array:
    """Krippendorff's alpha of two observers with the interval metric; nan where all values are the same."""
    size = 2 * counts.sum(axis=1)
    mean = _ratio(counts @ (labels + scores), size)[:, None]
    variance = _ratio((counts * ((labels - mean) ** 2 + (scores - mean) ** 2)).sum(axis=1), size)
    expected = 2 * variance * _ratio(size, size - 1)
    return np.asarray(1.0 - _ratio(_ratio(counts @ ((labels - scores) ** 2), size / 2), expected, least=SAME))


def _ranks(values: Array, counts: Array) -> Array:
    """The rank of each value in each sample, from 1, ties at the mean of theirs."""
    if not len(values):
        return counts
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(values[order]) > 0]))
    equal = np.add.reduceat(counts[:, order], starts, axis=1)
    ranks = np.cumsum(equal, axis=1) - (equal - 1) / 2
    place = np.empty(len(values), dtype=np.intp)
    place[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(values))))
    return np.asarray(ranks[:, place])


def _ratio(above: Array, below: Array, least: float = 0.0) -> Array:
    """Quotients; nan where the divisor is ``least`` or less."""
    return np.asarray(np.divide(above, below, out=np.full(below.shape, np.nan), where=below > least))
