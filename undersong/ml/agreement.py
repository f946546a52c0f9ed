"""How far scores agree with labels or with another reading: Spearman, AUC, weighted kappa, Krippendorff's alpha."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from undersong.models import NEGATIVE_TRAITS, TRAITS, Record

Array = npt.NDArray[np.float64]
RESAMPLES = 1000
PRESENT = 0.5  # a label from here counts as present, as in the quality of the offline judge
MARKS = 5  # the marks 0 to 4 that kappa is over; labels in between go to the nearest


class IntervalEstimate(Record, frozen=True, kw_only=True):
    """A figure with its 95 % interval over resampled groups; None where it cannot be computed."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Calibration(Record, frozen=True, kw_only=True):
    """A judge against labels, bound to the judge's and the prompts' hash and to the file of labels.

    ``learnt_from`` of the messages are among those that the judge was trained on, and their figures say nothing; None
    where nobody knows. ``figures`` maps a measure to a trait's figure; ``harmful`` is the AUC of the highest negative
    trait for "any negative label of .5 or more". ``messages`` were scored, of ``asked``.
    """

    judge: str
    judge_hash: str
    labels: str
    labels_sha256: str
    messages: int
    asked: int
    groups: int
    learnt_from: int | None = None
    figures: dict[str, dict[str, IntervalEstimate]]
    harmful: IntervalEstimate


def calibrated(
    labels: Array, scores: Array, groups: Sequence[str], seed: int
) -> tuple[dict[str, dict[str, IntervalEstimate]], IntervalEstimate]:
    """The four measures per trait, and the AUC of any harm; labels and scores (messages, 12) in [0, 1]."""
    draws = list(_draws(groups, seed))
    figures: dict[str, dict[str, IntervalEstimate]] = {
        name: {str(trait): _interval(measure, labels[:, n], scores[:, n], draws) for n, trait in enumerate(TRAITS)}
        for name, measure in MEASURES.items()
    }
    negative = [n for n, trait in enumerate(TRAITS) if trait in NEGATIVE_TRAITS]
    worst = labels[:, negative].max(axis=1), scores[:, negative].max(axis=1)
    return figures, _interval(auc, *worst, draws)


def spearman(labels: Array, scores: Array) -> float | None:
    """Rank correlation, ties at their mean rank; None where one side is constant."""
    a, b = _ranks(labels), _ranks(scores)
    spread = a.std() * b.std()
    return None if spread == 0 else float(((a - a.mean()) * (b - b.mean())).mean() / spread)


def auc(labels: Array, scores: Array) -> float | None:
    """The chance that a message whose label is present scores above one whose is not; None without both."""
    present = labels >= PRESENT
    count = int(present.sum())
    if count in (0, len(present)):
        return None
    return float((_ranks(scores)[present].mean() - (count + 1) / 2) / (len(present) - count))


def kappa(labels: Array, scores: Array) -> float | None:
    """Cohen's kappa over the marks 0 to 4 with quadratic weights; None where chance alone would agree fully."""
    a, b = (np.rint(values * (MARKS - 1)).astype(int) for values in (labels, scores))
    seen = np.zeros((MARKS, MARKS))
    np.add.at(seen, (a, b), 1.0 / len(a))
    weights = np.subtract.outer(np.arange(MARKS), np.arange(MARKS)) ** 2
    expected = float((weights * np.outer(seen.sum(axis=1), seen.sum(axis=0))).sum())
    return None if expected == 0 else 1.0 - float((weights * seen).sum()) / expected


def alpha(labels: Array, scores: Array) -> float | None:
    """Krippendorff's alpha of two observers with the interval metric; None where all values are the same."""
    values = np.concatenate([labels, scores])
    expected = 2.0 * float(values.var()) * len(values) / (len(values) - 1)
    return None if expected == 0 else 1.0 - float(((labels - scores) ** 2).mean()) / expected


MEASURES: Mapping[str, Callable[[Array, Array], float | None]] = {
    "spearman": spearman,
    "auc": auc,
    "kappa": kappa,
    "alpha": alpha,
}


def _ranks(values: Array) -> Array:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[place], dtype=np.float64)


def _draws(groups: Sequence[str], seed: int) -> list[npt.NDArray[np.intp]]:
    """Rows of resampled groups: what one author wrote is drawn together."""
    names, member = np.unique(np.array(groups), return_inverse=True)
    rows = [np.flatnonzero(member == n) for n in range(len(names))]
    rng = np.random.default_rng(seed)
    return [np.concatenate([rows[n] for n in rng.integers(len(rows), size=len(rows))]) for _ in range(RESAMPLES)]


def _interval(
    measure: Callable[[Array, Array], float | None], labels: Array, scores: Array, draws: Sequence[npt.NDArray[np.intp]]
) -> IntervalEstimate:
    value = measure(labels, scores)
    resampled = [statistic for rows in draws if (statistic := measure(labels[rows], scores[rows])) is not None]
    if value is None or not resampled:
        return IntervalEstimate(value=None)
    low, high = np.quantile(resampled, [0.025, 0.975]).tolist()
    return IntervalEstimate(value=round(value, 3), low=round(low, 3), high=round(high, 3))
