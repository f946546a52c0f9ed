"""Labelled messages → trait heads, and the scores that the same program gives to authors it never saw.

Needs scikit-learn (``pip install undersong[train]``); scoring does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags, hstack
from scipy.stats import rankdata
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GroupKFold

from undersong.errors import InputError
from undersong.ml import ngrams
from undersong.ml import trait_heads as model
from undersong.models import TRAITS
from undersong.training.datasets import LabelledMessage

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

ALPHA = 0.6  # ridge; .3 to 1 are within .002 of each other, out of fold
FEWEST_AUTHORS = (2, 3)  # that must share a word n-gram, a character n-gram: less is a signature, not a trait
FOLDS = 10
KNOT = 40  # messages behind one point of the calibration
DIRECT = 5_000  # messages up to which the ridge is solved over all pairs of them; more are solved step by step
MOST = 100_000  # messages
STEPS, CLOSE = (
    1_000,
    1e-6,
)  # of the conjugate gradients: the most, and the residual, as a share of the targets, that ends them


class TraitCorpus:
    """Texts as sparse rows of distinct buckets, a block for words and one for characters.

    ``names`` are what the scores of the rows are for; ``groups`` is what is held out together, by default authors.
    """

    def __init__(
        self, rows: Sequence[LabelledMessage], names: Sequence[str] = TRAITS, groups: Sequence[str] | None = None
    ) -> None:
        self.names = tuple(names)
        _, self.authors = np.unique([row.author for row in rows], return_inverse=True)
        self.labels: Array = np.array([row.scores for row in rows], dtype=np.float64)
        _, held_out = np.unique(groups, return_inverse=True) if groups is not None else (None, self.authors)
        self.groups: npt.NDArray[Any] = held_out
        _check(self)
        ngram_rows = [ngrams.grams(row.text) for row in rows]
        self.blocks = [sparse([grams[block] for grams in ngram_rows]) for block in range(model.BLOCKS)]


class RidgeHeads:
    """Ridge heads on some rows of a corpus: raw scores for any rows, or weights for the model file."""

    def __init__(self, corpus: TraitCorpus, rows: Indices) -> None:
        self._corpus, self._rows = corpus, rows
        authors = corpus.authors[rows]
        self._idf = [
            rarity(block[rows], authors, fewest) for block, fewest in zip(corpus.blocks, FEWEST_AUTHORS, strict=True)
        ]
        self._features = [tfidf(block[rows], idf) for block, idf in zip(corpus.blocks, self._idf, strict=True)]
        self._dual = dual(self._features, targets(corpus.labels[rows]))

    def raw(self, rows: Indices) -> Array:
        """Raw scores (rows, 12), centred near 0."""
        others = [tfidf(block[rows], idf) for block, idf in zip(self._corpus.blocks, self._idf, strict=True)]
        return np.asarray(sum(x @ (y.T @ self._dual) for x, y in zip(others, self._features, strict=True)))

    def weights(self) -> tuple[npt.NDArray[np.int8], Array, npt.NDArray[np.uint8]]:
        """Weights in whole steps, the size of a step, and the idf, as ``ml.trait_heads.Heads`` has them."""
        idf = np.stack(self._idf)
        exact = np.stack([x.T @ self._dual for x in self._features]) * idf[:, :, None]
        scales = plain(np.maximum(np.abs(exact).max(axis=1), 1e-12) / 127)
        return np.rint(exact / scales[:, None, :]).astype(np.int8), scales, idf.astype(np.uint8)


def dual(features: Sequence[Any], wanted: Array) -> Array:
    """The coefficients (messages, heads) of a ridge over the sum of the linear kernels of some blocks of features.

    Of few messages by the kernel matrix; of many by conjugate gradients, which take no memory for pairs of messages.
    """
    if len(wanted) <= DIRECT:
        kernel = sum((x @ x.T).toarray() for x in features)
        return np.asarray(KernelRidge(alpha=ALPHA, kernel="precomputed").fit(kernel, wanted).dual_coef_)
    rows = hstack(features).tocsr()
    columns = rows.T.tocsr()
    solution, residual, direction = np.zeros_like(wanted), wanted.copy(), wanted.copy()
    size = (residual**2).sum(axis=0)
    enough = CLOSE**2 * size
    for _ in range(STEPS):
        if (size <= enough).all():
            break
        image = rows @ (columns @ direction) + ALPHA * direction
        step = _ratio(size, (direction * image).sum(axis=0))
        solution += step * direction
        residual -= step * image
        before, size = size, (residual**2).sum(axis=0)
        direction = residual + _ratio(size, before) * direction
    return solution


def _ratio(above: Array, below: Array) -> Array:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def train(
    rows: Sequence[LabelledMessage], seed: int, names: Sequence[str] = TRAITS, groups: Sequence[str] | None = None
) -> tuple[model.Heads, Array]:
    """The model from all rows, and each row's scores by a model of the same making that never saw its author.

    Both go through one calibration. It only rises, so it moves no message past another within a trait.
    """
    corpus = TraitCorpus(rows, names, groups)
    raw = out_of_fold(corpus)
    weights, scales, idf = RidgeHeads(corpus, np.arange(len(rows))).weights()
    meta = model.TraitHeadsMeta(
        features=ngrams.VERSION,
        heads=calibration(raw, corpus.labels, corpus.names),
        seed=seed,
        messages=len(rows),
        authors=len(set(corpus.authors.tolist())),
    )
    return model.Heads(meta, weights, scales, idf), model.Curves(meta.heads)(raw)


def out_of_fold(corpus: TraitCorpus) -> Array:
    """Raw scores of every row, each fold by heads trained on the other folds' authors."""
    raw = np.zeros_like(corpus.labels)
    for seen, unseen in split(corpus.groups):
        raw[unseen] = RidgeHeads(corpus, seen).raw(unseen)
    return raw


def split(authors: npt.NDArray[Any]) -> Iterator[tuple[Indices, Indices]]:
    """(seen, unseen) row numbers: no author is on both sides, every row is unseen once; nothing is drawn."""
    yield from GroupKFold(min(FOLDS, len(set(authors.tolist())))).split(authors, groups=authors)


def calibration(raw: Array, labels: Array, names: Sequence[str] = TRAITS) -> tuple[model.TraitHead, ...]:
    """Per name, the mean label of messages with such a raw score, made rising (pooled adjacent violators)."""
    return tuple(_calibrate(trait, raw[:, i], labels[:, i]) for i, trait in enumerate(names))


def _calibrate(trait: str, raw: Array, labels: Array) -> model.TraitHead:
    bins = np.array_split(np.argsort(raw, kind="stable"), max(2, len(raw) // KNOT))
    knots: list[tuple[float, float, int]] = []
    for rows in bins:
        knots.append((float(raw[rows].mean()), float(labels[rows].mean()), len(rows)))
        while len(knots) > 1 and (knots[-1][1] <= knots[-2][1] or knots[-1][0] <= knots[-2][0]):
            knots.append(_pool(knots.pop(), knots.pop()))
    centred = raw - raw.mean()
    slope = float(centred @ labels / max(float(centred @ centred), 1e-12))
    points = plain(np.array([knot[:2] for knot in knots]))
    return model.TraitHead(trait, tuple((x, y) for x, y in points.tolist()), float(plain(np.array(max(slope, 0.0)))))


def plain(values: Array) -> Array:
    """To 9 significant digits: the last ones depend on how many threads the linear algebra ran on."""
    return np.vectorize(lambda value: float(f"{value:.9g}"), otypes=[float])(values)  # type: ignore[no-any-return]


def _pool(a: tuple[float, float, int], b: tuple[float, float, int]) -> tuple[float, float, int]:
    count = a[2] + b[2]
    return ((a[0] * a[2] + b[0] * b[2]) / count, (a[1] * a[2] + b[1] * b[2]) / count, count)


def targets(labels: Array) -> Array:
    """Half score, half rank, each standardised: ranks alone give the better order, scores alone the better tail."""
    return (standard(labels) + standard(np.asarray(rankdata(labels, axis=0)))) / 2


def standard(values: Array) -> Array:
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def sparse(buckets: Sequence[ngrams.Buckets]) -> Any:
    ends = np.cumsum([0, *map(len, buckets)])
    columns = np.concatenate(buckets).astype(np.int64)
    return csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(buckets), ngrams.BUCKETS))


def rarity(block: Any, authors: npt.NDArray[Any], fewest: int) -> Array:
    """How rare each bucket is among authors (not messages), in whole numbers up to 255; 0 where too few share it."""
    _, author = np.unique(authors, return_inverse=True)
    count = int(author.max()) + 1
    owner = csr_matrix((np.ones(len(author)), (author, np.arange(len(author)))), shape=(count, len(author)))
    shared = np.bincount((owner @ block).indices, minlength=ngrams.BUCKETS)
    idf = np.where(shared >= fewest, np.log((1 + count) / (1 + shared)) + 1, 0.0)
    return np.asarray(np.rint(idf * (255 / max(float(idf.max()), 1.0))), dtype=np.float64)


def tfidf(block: Any, idf: Array) -> Any:
    weighted = block @ diags(idf)
    norms = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    return diags(1 / np.maximum(norms, 1e-12)) @ weighted


def _check(corpus: TraitCorpus) -> None:
    messages, authors = len(corpus.labels), len(set(corpus.authors.tolist()))
    if authors < FEWEST_AUTHORS[1] + 1:
        raise InputError(
            f"labels of {authors} authors", remedy="give labels of at least 4: some are held out, by author"
        )
    if messages > MOST:
        raise InputError(f"{messages} labelled messages", remedy=f"give at most {MOST}")
    flat = [trait for trait, spread in zip(corpus.names, np.ptp(corpus.labels, axis=0), strict=True) if spread == 0]
    if flat:
        raise InputError(f"every message has the same score for {', '.join(flat)}", remedy="there is nothing to learn")
