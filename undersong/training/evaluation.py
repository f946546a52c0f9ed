"""How well scores agree with labels of authors they never saw: figures with intervals, beside trivial baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from undersong.judges.measurement import IntervalEstimate
from undersong.ml.trait_heads import Curves
from undersong.models import NEGATIVE_TRAITS, TRAITS
from undersong.training.bootstrap import (
    SampledMeasure,
    alpha_of_samples,
    auc_of_samples,
    kappa_of_samples,
    sampled,
    spearman_of_samples,
)
from undersong.training.datasets import LabelledMessage
from undersong.training.trait_heads import Array, calibration, split, standard, targets

RESAMPLES = 1000
HARMFUL = 0.5  # a label from here counts as present: the anchor "clearly there" of the labels' rubric
THRESHOLDS = (("compassion", 0.6), ("manipulation", 0.5))  # as the pattern of love bombing uses them
FEWEST_IN_MONTH = 40  # messages; fewer give no rank correlation worth averaging
NEGATIVE = [TRAITS.index(trait) for trait in TRAITS if trait in NEGATIVE_TRAITS]


MARKS = 5  # the marks 0 to 4 that kappa is over; labels in between go to the nearest


class Figure(msgspec.Struct, frozen=True):
    """A figure and its 95 % interval over resampled authors; nan where it cannot be computed."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Threshold(msgspec.Struct, frozen=True):
    """What a fixed threshold finds: messages above it by label, by score, by both.

    ``cut`` is the score above which as many messages lie as by label, and ``cut_both`` how many of those are right.
    """

    trait: str
    above: float
    labelled: int
    scored: int
    both: int
    cut: float
    cut_both: int


class ScorerAgreement(msgspec.Struct, frozen=True):
    """One scorer: Spearman per trait and its mean, AUC of the highest negative trait for "any label ≥ .5"."""

    spearman: dict[str, Figure]
    mean: Figure
    auc: Figure


class Quality(msgspec.Struct, frozen=True):
    """The judge beside what needs no words at all."""

    messages: int
    authors: int
    harmful: int
    scorers: dict[str, ScorerAgreement]
    thresholds: tuple[Threshold, ...]
    within_month: float | None


def measure(rows: Sequence[LabelledMessage], scores: Array, seed: int) -> Quality:
    """Out-of-fold ``scores`` (rows, 12) of the judge, and the baselines, by the same split."""
    labels: Array = np.array([row.scores for row in rows])
    _, authors = np.unique([row.author for row in rows], return_inverse=True)
    texts = [row.text for row in rows]
    baselines = {"text form, no words": form(texts), "length": form(texts)[:, :1]}
    scores_by_scorer = {"judge": scores, **{name: _linear(x, labels, authors) for name, x in baselines.items()}}
    return Quality(
        messages=len(rows),
        authors=len(set(authors.tolist())),
        harmful=int(_harmful(labels).sum()),
        scorers={name: agreement(labels, each, authors, seed) for name, each in scores_by_scorer.items()},
        thresholds=tuple(_threshold(trait, above, labels, scores) for trait, above in THRESHOLDS),
        within_month=_within(labels, scores, np.array([row.month for row in rows])),
    )


def agreement(labels: Array, scores: Array, authors: npt.NDArray[np.intp], seed: int) -> ScorerAgreement:
    """The figures of one scorer, with intervals from resampling whole authors."""
    samples = np.array([_figures(labels[rows], scores[rows]) for rows in resampled(authors, seed)])
    values = _figures(labels, scores)
    figures = [figure(value, samples[:, i]) for i, value in enumerate(values.tolist())]
    return ScorerAgreement(dict(zip(TRAITS, figures, strict=False)), mean=figures[-2], auc=figures[-1])


def form(texts: Sequence[str]) -> Array:
    """What a text looks like without any word of it: log length first, then marks, capitals, digits, lines, links."""
    counts: list[Callable[[str], int]] = [len, *(lambda text, mark=mark: text.count(mark) for mark in _MARKS)]
    shares = [str.isupper, str.isdigit, lambda char: ord(char) > 127]
    return np.array(
        [
            [np.log1p(count(text)) for count in counts]
            + [sum(map(share, text)) / max(len(text), 1) for share in shares]
            for text in texts
        ]
    )


_MARKS = ("!", "?", "$", '"', "`", "*", "#", "\n", "http", ",", ":")


def _linear(features: Array, labels: Array, authors: npt.NDArray[np.intp]) -> Array:
    """A least-squares line on dense features, out of fold, calibrated like the heads."""
    raw = np.zeros_like(labels)
    for seen, unseen in split(authors):
        x = np.column_stack([np.ones(len(features)), standard(features)])
        weights, *_ = np.linalg.lstsq(x[seen], targets(labels[seen]), rcond=None)
        raw[unseen] = x[unseen] @ weights
    return Curves(calibration(raw, labels))(raw)


def _harmful(labels: Array) -> npt.NDArray[np.bool_]:
    return np.asarray(labels[:, NEGATIVE].max(axis=1) >= HARMFUL)


def _figures(labels: Array, scores: Array) -> Array:
    """Spearman per trait, their mean, and the AUC."""
    a, b = (standard(np.asarray(rankdata(values, axis=0))) for values in (labels, scores))
    spearman = (a * b).mean(axis=0)
    return np.array([*spearman, spearman.mean(), auc(_harmful(labels), scores[:, NEGATIVE].max(axis=1))])


def _within(labels: Array, scores: Array, months: npt.NDArray[np.str_]) -> float | None:
    """The mean Spearman among messages of one month, weighted by messages; None without times."""
    members = [months == month for month in np.unique(months[months != ""])]
    members = [member for member in members if member.sum() >= FEWEST_IN_MONTH]
    if not members:
        return None
    correlations = [_figures(labels[member], scores[member])[-2] for member in members]
    return float(np.average(correlations, weights=[member.sum() for member in members]))


def auc(positive: npt.NDArray[np.bool_], scores: Array) -> float:
    """The chance that a positive scores above a negative, ties half; nan without both."""
    count = int(positive.sum())
    if count in (0, len(positive)):
        return float("nan")
    return float((ranks(scores)[positive].mean() - (count + 1) / 2) / (len(positive) - count))


def resampled(groups: Sequence[str] | npt.NDArray[Any], seed: int) -> list[npt.NDArray[np.intp]]:
    """Row numbers of ``RESAMPLES`` bootstrap samples of whole groups: what one author wrote is drawn together."""
    _, member = np.unique(groups, return_inverse=True)
    rows = [np.flatnonzero(member == number) for number in range(int(member.max()) + 1)]
    rng = np.random.default_rng(seed)
    return [np.concatenate([rows[n] for n in rng.integers(len(rows), size=len(rows))]) for _ in range(RESAMPLES)]


def figure(value: float, samples: Array) -> Figure:
    """A statistic with its interval from those of the bootstrap samples."""
    usable = samples[~np.isnan(samples)]
    if np.isnan(value) or not usable.size:
        return Figure(float("nan"), float("nan"), float("nan"))
    low, high = np.quantile(usable, [0.025, 0.975]).tolist()
    return Figure(value, low, high)


def _threshold(trait: str, above: float, labels: Array, scores: Array) -> Threshold:
    label, score = labels[:, TRAITS.index(trait)], scores[:, TRAITS.index(trait)]
    true, predicted = label > above, score > above
    count = int(true.sum())
    top = np.argsort(-score, kind="stable")[:count]
    cut = float(score[top].min(initial=1.0))
    return Threshold(
        trait, above, count, int(predicted.sum()), int((true & predicted).sum()), cut, int(true[top].sum())
    )


def calibrated(
    labels: Array, scores: Array, groups: Sequence[str], seed: int
) -> tuple[dict[str, dict[str, IntervalEstimate]], IntervalEstimate]:
    """The four measures per trait, and the AUC of any harm; labels and scores (messages, 12) in [0, 1].

    A score that is nan, of a trait that does not apply, is in no figure of its trait, and is no harm. A label that is
    nan was not given: it is in no figure of its trait, and a message without any negative one is not in the AUC.
    """
    draws = resampled(groups, seed)
    figures = {
        name: {str(trait): _interval(measure, labels[:, n], scores[:, n], draws) for n, trait in enumerate(TRAITS)}
        for name, measure in MEASURES.items()
    }
    harm = np.nan_to_num(scores[:, NEGATIVE]).max(axis=1)
    given_harm = np.where(np.isnan(labels[:, NEGATIVE]), -1.0, labels[:, NEGATIVE]).max(axis=1)
    return figures, _interval(AUC, np.where(given_harm < 0, np.nan, given_harm), harm, draws)


def label_auc(labels: Array, scores: Array) -> float:
    """The AUC of scores for labels that count as present."""
    return auc(labels >= HARMFUL, scores)


def spearman(labels: Array, scores: Array) -> float:
    """Rank correlation, ties at their mean rank; nan where one side is constant."""
    a, b = ranks(labels), ranks(scores)
    spread = a.std() * b.std()
    return float(((a - a.mean()) * (b - b.mean())).mean() / spread) if spread else float("nan")


def ranks(values: Array) -> Array:
    """Ranks from 1, ties at the mean of theirs: as ``rankdata``, in half its time for a short column."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])


def kappa(labels: Array, scores: Array) -> float:
    """Cohen's kappa over the marks 0 to 4 with quadratic weights; nan where chance alone would agree fully."""
    a, b = (np.rint(values * (MARKS - 1)).astype(int) for values in (labels, scores))
    seen = np.zeros((MARKS, MARKS))
    np.add.at(seen, (a, b), 1.0 / len(a))
    weights = np.subtract.outer(np.arange(MARKS), np.arange(MARKS)) ** 2
    expected = float((weights * np.outer(seen.sum(axis=1), seen.sum(axis=0))).sum())
    return 1.0 - float((weights * seen).sum()) / expected if expected else float("nan")


def alpha(labels: Array, scores: Array) -> float:
    """Krippendorff's alpha of two observers with the interval metric; nan where all values are the same."""
    values = np.concatenate([labels, scores])
    expected = 2.0 * float(values.var()) * len(values) / (len(values) - 1)
    return 1.0 - float(((labels - scores) ** 2).mean()) / expected if expected else float("nan")


def _label_auc_of_samples(labels: Array, scores: Array, counts: Array) -> Array:
    return auc_of_samples(labels >= HARMFUL, scores, counts)


def _kappa_of_samples(labels: Array, scores: Array, counts: Array) -> Array:
    return kappa_of_samples(labels, scores, counts, MARKS)


Measure = Callable[[Array, Array], float]
AUC: tuple[Measure, SampledMeasure] = label_auc, _label_auc_of_samples
MEASURES: Mapping[str, tuple[Measure, SampledMeasure]] = {  # of all messages, and of each bootstrap sample
    "spearman": (spearman, spearman_of_samples), "auc": AUC, "kappa": (kappa, _kappa_of_samples),
    "alpha": (alpha, alpha_of_samples),
}  # fmt: skip


def _of_given(measure: Measure) -> Measure:
    """The measure over the pairs that are numbers; nan of fewer than two."""

    def of_given(labels: Array, scores: Array) -> float:
        scored = ~(np.isnan(scores) | np.isnan(labels))
        return measure(labels[scored], scores[scored]) if scored.sum() > 1 else float("nan")

    return of_given


def _interval(
    both: tuple[Measure, SampledMeasure], labels: Array, scores: Array, draws: Sequence[npt.NDArray[np.intp]]
) -> IntervalEstimate:
    measure, of_samples = both
    scored = ~(np.isnan(scores) | np.isnan(labels))
    own = measure if scored.all() else _of_given(measure)
    estimate = figure(own(labels, scores), sampled(of_samples, labels, scores, draws))
    if np.isnan(estimate.value):
        return IntervalEstimate(value=None)
    return IntervalEstimate(value=round(estimate.value, 3), low=round(estimate.low, 3), high=round(estimate.high, 3))
