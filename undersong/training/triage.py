"""Labelled messages → the triage model, and the probabilities that it gives to authors it never saw.

Needs scikit-learn (``pip install undersong[train]``); scoring does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, vstack

from undersong.errors import InputError
from undersong.ml import ngrams, triage
from undersong.ml import trait_heads as model
from undersong.ml.triage import BLOCKS, BUCKETS, DIGITS, RecallPoint, Triage, TriageMetadata
from undersong.models import NEGATIVE_TRAITS, TRAITS
from undersong.training.datasets import LabelledMessage
from undersong.training.evaluation import HARMFUL, NEGATIVE
from undersong.training.trait_heads import (
    FOLDS,
    MOST,
    Array,
    Indices,
    RidgeHeads,
    TraitCorpus,
    calibration,
    plain,
    rarity,
    split,
    standard,
    tfidf,
)
from undersong.training.trait_heads import out_of_fold as out_of_fold_training

ALPHA = 0.6  # ridge, as for the trait heads
SHARES = (1.0, 1.0, 1.0)  # of windows of four, six and eight bytes in the kernel
FEWEST_AUTHORS = (3, 3, 3)  # that must share a bucket: less is a signature, not a trait
RECALLS = tuple(value / 100 for value in range(5, 100))  # of the table of thresholds
NEWTON_STEPS = 50


class TriageCorpus:
    """Texts as sparse rows of distinct buckets, one matrix per block."""

    def __init__(self, rows: Sequence[LabelledMessage]) -> None:
        _, self.authors = np.unique([row.author for row in rows], return_inverse=True)
        labels: Array = np.array([row.scores for row in rows], dtype=np.float64)[:, NEGATIVE]
        self.harmful: npt.NDArray[np.bool_] = labels.max(axis=1) >= HARMFUL
        self.labels = labels
        _check(self)
        self.blocks = _sparse_blocks([row.text for row in rows])


class TriageRidge:
    """A ridge on some rows of a corpus: raw scores for any rows, or weights for the model file."""

    def __init__(self, corpus: TriageCorpus, rows: Indices, extra: Array | None = None, alpha: float = ALPHA) -> None:
        self._corpus, self._rows, self._extra = corpus, rows, extra
        authors = corpus.authors[rows]
        pairs = zip(corpus.blocks, FEWEST_AUTHORS, strict=True)
        self._idf = [rarity(block[rows], authors, fewest) for block, fewest in pairs]
        self._features = [tfidf(block[rows], idf) for block, idf in zip(corpus.blocks, self._idf, strict=True)]
        kernel = self._kernel(rows)
        target = _targets(corpus.labels[rows])
        self._dual: Array = np.linalg.solve(kernel + alpha * np.eye(len(rows)), target - target.mean())

    def raw(self, rows: Indices) -> Array:
        """Raw scores (rows), centred near 0."""
        return np.asarray(self._kernel(rows) @ self._dual)

    def weights(self) -> tuple[npt.NDArray[np.int8], tuple[float, ...], npt.NDArray[np.uint8]]:
        """Weights in whole steps, the size of a step per block, and the idf, as ``model.Triage`` has them."""
        idf = np.stack(self._idf)
        exact = np.stack([share * (x.T @ self._dual) for x, share in zip(self._features, SHARES, strict=True)]) * idf
        scales = plain(np.maximum(np.abs(exact).max(axis=1), 1e-12) / 127)
        steps = np.rint(exact / scales[:, None]).astype(np.int8)
        return steps.ravel(), tuple(scales.tolist()), idf.astype(np.uint8).ravel()

    def _kernel(self, rows: Indices) -> Array:
        """How alike ``rows`` and the rows of the fit are."""
        kernel = np.zeros((len(rows), len(self._rows)))
        for block, idf, own, share in zip(self._corpus.blocks, self._idf, self._features, SHARES, strict=True):
            kernel += share * (tfidf(block[rows], idf) @ own.T).toarray()
        if self._extra is not None:
            own_extra = self._extra[self._rows]
            spread = np.where(own_extra.std(axis=0) > 0, own_extra.std(axis=0), 1.0)
            x, y = ((self._extra[which] - own_extra.mean(axis=0)) / spread for which in (rows, self._rows))
            kernel += EXTRA_SHARE * (x @ y.T) / x.shape[1]
        return kernel


EXTRA_SHARE = 0.03  # of dense features in the kernel, for the comparison that bench/triage.py prints


def train(rows: Sequence[LabelledMessage], alpha: float = ALPHA) -> tuple[Triage, Array]:
    """The model from all rows, and each row's probability by a model of the same making that never saw its author.

    Both go through one calibration. It only rises, so it moves no message past another.
    """
    corpus = TriageCorpus(rows)
    raw = out_of_fold(corpus, alpha=alpha)
    slope, intercept = platt(raw, corpus.harmful)
    unseen = probability(raw, slope, intercept)
    weights, scales, idf = TriageRidge(corpus, np.arange(len(rows)), alpha=alpha).weights()
    meta = TriageMetadata(
        features=triage.FEATURES_VERSION,
        slope=slope,
        intercept=intercept,
        scales=scales,
        reached=recall_points(unseen, corpus.harmful),
        messages=len(rows),
        authors=len(set(corpus.authors.tolist())),
        harmful=int(corpus.harmful.sum()),
    )
    return Triage(meta, weights, idf), unseen


def out_of_fold(corpus: TriageCorpus, extra: Array | None = None, alpha: float = ALPHA) -> Array:
    """Raw scores of every row, each fold by a fit on the other folds' authors; ``extra`` are dense features."""
    raw = np.zeros(len(corpus.harmful))
    for seen, unseen in split(corpus.authors):
        raw[unseen] = TriageRidge(corpus, seen, extra, alpha).raw(unseen)
    return raw


def platt(raw: Array, harmful: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and intercept of the logistic curve of ``harmful`` over ``raw``, by Newton's method."""
    x = np.column_stack([raw, np.ones_like(raw)])
    # Platt's own targets: a little inside 0 and 1, so that a perfect separation still has an answer
    positive, negative = int(harmful.sum()), int((~harmful).sum())
    target = np.where(harmful, (positive + 1) / (positive + 2), 1 / (negative + 2))
    beta = np.zeros(2)
    for _ in range(NEWTON_STEPS):
        p = 1 / (1 + np.exp(-np.clip(x @ beta, -30, 30)))
        curvature = (x * (p * (1 - p))[:, None]).T @ x + 1e-9 * np.eye(2)
        beta = beta + np.linalg.solve(curvature, x.T @ (target - p))
    slope, intercept = plain(beta).tolist()
    return max(slope, 0.0), intercept


def probability(raw: Array, slope: float, intercept: float) -> Array:
    """Raw scores → probabilities to the digits of a score."""
    return np.asarray(1 / (1 + np.exp(-(slope * raw + intercept)))).round(DIGITS)


def recall_points(scores: Array, harmful: npt.NDArray[np.bool_]) -> tuple[RecallPoint, ...]:
    """For each recall from .05 to .99, the highest threshold that reached it, with the share of messages above it."""
    table: dict[float, RecallPoint] = {}
    falling = np.sort(scores[harmful])[::-1]
    for recall in RECALLS:
        threshold = float(falling[int(np.ceil(recall * len(falling))) - 1])
        actual_recall, share = float((falling >= threshold).mean()), float((scores >= threshold).mean())
        table[threshold] = RecallPoint(threshold, round(actual_recall, 4), round(share, 4))
    return tuple(table.values())


def _targets(labels: Array) -> Array:
    """The highest negative trait and the mean of the six, alike: the first is asked for, the second is steadier."""
    return np.asarray((standard(labels.max(axis=1)) + standard(standard(labels).mean(axis=1))) / 2)


def _sparse_blocks(texts: Sequence[str]) -> list[Any]:
    """A matrix (texts, buckets) for each size of window: how many distinct windows of a text are in a bucket."""
    parts: list[list[Any]] = [[] for _ in range(BLOCKS)]
    for block in triage.blocks(texts):
        text = np.repeat(np.arange(block.texts), np.diff(block.first))
        for part, (buckets, fresh) in zip(parts, block.windows(), strict=True):
            place = text[fresh], buckets[fresh]
            part.append(csr_matrix((np.ones(len(place[0])), place), shape=(block.texts, BUCKETS)))
    return [vstack(part, format="csr") for part in parts]


def _check(corpus: TriageCorpus) -> None:
    messages, authors = len(corpus.harmful), len(set(corpus.authors.tolist()))
    if authors < max(FEWEST_AUTHORS) + 1:
        raise InputError(
            f"labels of {authors} authors", remedy="give labels of at least 4: some are held out, by author"
        )
    if messages > MOST:
        raise InputError(f"{messages} labelled messages", remedy=f"give at most {MOST}: training compares all pairs")
    folds = [corpus.harmful[seen] for seen, _ in split(corpus.authors)]
    if not all(fold.any() and not fold.all() for fold in folds):
        what = f"in some of {min(FOLDS, authors)} folds every message or none has a negative trait ≥ {HARMFUL}"
        raise InputError(what, remedy="give labels of more authors, harmful and harmless")


SHARE = 0.4  # of triage's spread in each head's own: harmful traits rise with it, the others fall; .3 to .6 are alike


def train_stacked(rows: Sequence[LabelledMessage], seed: int) -> tuple[model.Heads, Triage, Array]:
    """The heads and the triage model from all rows, and each row's scores by models that never saw its author."""
    corpus, other = TraitCorpus(rows), TriageCorpus(rows)
    raw, harm = out_of_fold_training(corpus), out_of_fold(other)
    shares = plain(
        np.array([_sign(trait) for trait in TRAITS]) * SHARE * raw.std(axis=0) / max(float(harm.std()), 1e-12)
    )
    blended = raw + harm[:, None] * shares
    weights, scales, idf = RidgeHeads(corpus, np.arange(len(rows))).weights()
    calibrated = calibration(blended, corpus.labels)
    heads = tuple(
        msgspec.structs.replace(head, triage=share) for head, share in zip(calibrated, shares.tolist(), strict=True)
    )
    meta = model.TraitHeadsMeta(
        features=ngrams.VERSION,
        heads=heads,
        seed=seed,
        messages=len(rows),
        authors=len(set(corpus.authors.tolist())),
    )
    triage, _ = train(rows)
    return model.Heads(meta, weights, scales, idf), triage, model.Curves(heads)(blended)


def _sign(trait: str) -> float:
    return 1.0 if trait in NEGATIVE_TRAITS else -1.0
