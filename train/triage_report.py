"""The figures of the triage model: ranking, reliability and recall, as tables and as its model card."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.ml.triage import LONGEST, SIZES, TriageMetadata
from undersong.training.datasets import LabelledMessage
from undersong.training.evaluation import HARMFUL, Figure, auc, figure, resampled
from undersong.training.model_card import card_template, counted_names
from undersong.training.trait_heads import FOLDS, Array, split
from undersong.training.triage import ALPHA, FEWEST_AUTHORS, SHARES, TriageCorpus, platt, probability

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
    samples = [[each(harmful[r], scores[r]) for each in measures] for r in resampled(authors, seed)]
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


def cross_calibrated(raw: Array, corpus: TriageCorpus) -> Array:
    """Probabilities whose calibration, too, was fitted on other authors: what the reliability table is made of."""
    probabilities = np.zeros_like(raw)
    for seen, unseen in split(corpus.authors):
        probabilities[unseen] = probability(raw[unseen], *platt(raw[seen], corpus.harmful[seen]))
    return probabilities


REPORTED_RECALLS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)


def figures(scorers: dict[str, Ranked]) -> str:
    """AUC and recall of some scorers, as a Markdown table."""
    lines = [f"| | AUC | recall, {ROUTED:.0%} routed |", "|---|---|---|"]
    return "\n".join(lines + [f"| {name} | {each.auc} | {each.recall} |" for name, each in scorers.items()])


def reliability_table(bins: Iterable[Reliability]) -> str:
    """Said and seen, as a Markdown table."""
    lines = ["| probability | messages | mean of it | harmful |", "|---|---|---|---|"]
    return "\n".join(
        lines + [f"| {b.low:.2f}-{b.high:.2f} | {b.messages} | {b.expected:.3f} | {b.harmful:.3f} |" for b in bins]
    )


def recall_table(meta: TriageMetadata) -> str:
    """Threshold, recall and routed share, as a Markdown table."""
    lines = ["| recall | threshold | messages routed |", "|---|---|---|"]
    chosen = [next(each for each in meta.reached if each.recall >= recall) for recall in REPORTED_RECALLS]
    return "\n".join(lines + [f"| {r.recall:.3f} | {r.threshold:.3f} | {r.share:.1%} |" for r in chosen])


def triage_card(
    rows: Sequence[LabelledMessage],
    meta: TriageMetadata,
    ranking: Ranked,
    bins: Iterable[Reliability],
    sha256: str,
    size: int,
) -> str:
    """The model card, in Markdown."""
    return card_template("triage.md").format(
        sha256=sha256,
        size=size,
        messages=meta.messages,
        authors=meta.authors,
        harmful=meta.harmful,
        above=HARMFUL,
        sources=counted_names(row.source for row in rows),
        licenses=counted_names(row.license for row in rows),
        folds=min(FOLDS, meta.authors),
        alpha=ALPHA,
        shares=" : ".join(f"{share:g}" for share in SHARES),
        fewest=", ".join(map(str, FEWEST_AUTHORS)),
        sizes=", ".join(map(str, SIZES)),
        longest=f"{LONGEST:,}",
        figures=figures({"triage": ranking}),
        reliability=reliability_table(bins),
        recalls=recall_table(meta),
    )
