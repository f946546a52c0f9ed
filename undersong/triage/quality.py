"""How well triage finds what a judge would call harmful, for authors it never saw, beside the keyword-only router."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.judges.labels import LabelledMessage
from undersong.judges.quality import RESAMPLES, Figure, auc, figure
from undersong.judges.training import Array
from undersong.triage.training import TriageCorpus

ROUTED = (
    0.47  # share of messages at which recall is compared: what the keyword router of the first seed's family routes
)
BINS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 1.0)

Flags = npt.NDArray[np.bool_]


class Ranked(msgspec.Struct, frozen=True):
    """One scorer: AUC, and the recall of harmful messages when the highest 47 % are routed."""

    auc: Figure
    recall: Figure


class Reliability(msgspec.Struct, frozen=True):
    """Messages whose probability lies from ``low`` to ``high``: the mean of it, and the share that was harmful."""

    low: float
    high: float
    messages: int
    expected: float
    harmful: float


def ranked(rows: Sequence[LabelledMessage], scores: Array, seed: int) -> Ranked:
    """The figures of scores (rows,) that never saw their author, with intervals from resampling whole authors."""
    corpus = TriageCorpus(rows)
    harmful, authors = corpus.harmful, corpus.authors
    measures: tuple[Callable[[Flags, Array], float], ...] = (auc, recall_at)
    samples = [[each(harmful[r], scores[r]) for each in measures] for r in _resampled(authors, seed)]
    both = [figure(each(harmful, scores), np.array(samples)[:, i]) for i, each in enumerate(measures)]
    return Ranked(*both)


def recall_at(harmful: Flags, scores: Array, share: float = ROUTED) -> float:
    """The share of harmful messages among at most ``share`` of all, the highest scores first.

    Messages of equal score are routed together or not at all; what is left of the share is filled up in proportion, as
    a draw among them would.
    """
    if not harmful.any():
        return float("nan")
    room = int(len(scores) * share)
    levels, level = np.unique(-scores, return_inverse=True)
    counts = np.bincount(level, minlength=len(levels))
    harmful_counts = np.bincount(level, weights=harmful, minlength=len(levels))
    before = np.cumsum(counts) - counts
    part = np.clip((room - before) / counts, 0.0, 1.0)
    return float((harmful_counts * part).sum() / harmful.sum())


def reliability(probabilities: Array, harmful: Flags) -> tuple[Reliability, ...]:
    """The reliability table; bins without messages are left out."""
    place = np.clip(np.searchsorted(BINS, probabilities, side="right") - 1, 0, len(BINS) - 2)
    return tuple(
        Reliability(
            low=BINS[i],
            high=BINS[i + 1],
            messages=int((place == i).sum()),
            expected=float(probabilities[place == i].mean()),
            harmful=float(harmful[place == i].mean()),
        )
        for i in range(len(BINS) - 1)
        if (place == i).any()
    )


def _resampled(authors: npt.NDArray[np.intp], seed: int) -> list[npt.NDArray[np.intp]]:
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(authors == author) for author in range(int(authors.max()) + 1)]
    return [
        np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))]) for _ in range(RESAMPLES)
    ]
