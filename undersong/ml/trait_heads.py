"""The trait heads: a small file of weights, and the scores that they give to a text.

The file is one of ``model_file``. Weights are whole numbers, so every sum over n-grams is exact in whatever order it is
taken: a text has the same scores on every machine and in every batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.ml import ngrams
from undersong.ml.model_file import pack, read_model, unpack
from undersong.models import TRAITS

MAGIC = b"undersong trait heads"
VERSION = 1  # of the file's layout
FILE = "trait_heads.model"
BLOCKS = len(ngrams.Grams._fields)  # words, characters
LARGEST = 1 << 22  # bytes of a model, unpacked; ours has 1.7 million
REMEDY = "train it (undersong judge train LABELS --out DIR), or leave the directory out to use the shipped model"

Scores = npt.NDArray[np.float64]


class TraitHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One trait or signal: ``knots`` turn a raw score into the expected label, ``slope`` goes on beyond them.

    ``triage`` is what triage's raw score adds to the head's own before.
    """

    trait: str
    knots: tuple[tuple[float, float], ...]
    slope: float
    triage: float = 0.0


class TraitHeadsMeta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file says of itself; ``features`` is the version of ``ngrams`` that it was trained with."""

    features: int
    heads: tuple[TraitHead, ...]
    seed: int
    messages: int
    authors: int


class Heads(msgspec.Struct, frozen=True, eq=False):
    """A model in memory.

    ``weights`` (2 blocks, buckets, heads) int8, one step = ``scales`` (2, heads); ``idf`` (2, buckets) uint8, 0 = not
    known to the model. Block 0 is words, block 1 characters.
    """

    meta: TraitHeadsMeta
    weights: npt.NDArray[np.int8]
    scales: npt.NDArray[np.float64]
    idf: npt.NDArray[np.uint8]

    def scorer(self) -> Scorer:
        """The same, laid out for scoring."""
        return Scorer(self)

    def only(self, columns: Sequence[int]) -> Heads:
        """The heads of these columns alone; what is known to the model stays."""
        chosen = list(columns)
        meta = msgspec.structs.replace(self.meta, heads=tuple(self.meta.heads[column] for column in chosen))
        return Heads(meta, np.ascontiguousarray(self.weights[:, :, chosen]), self.scales[:, chosen], self.idf)


class Scorer:
    """Scores texts one by one; ``calibrate`` turns the raw scores of many into expected labels."""

    def __init__(self, heads: Heads) -> None:
        # float32 holds every whole number up to 2^24, and 65,536 buckets x 127 stay below it: the sums are exact
        # the tables stay as small as in the file: what is read all over them is to be in the processor's caches
        self._weights, self._idf, self._scales = heads.weights, heads.idf, heads.scales
        self._ones = np.ones(ngrams.BUCKETS, dtype=np.float32)
        self.calibrate = Curves(heads.meta.heads)
        self.size = len(heads.meta.heads)
        self.triage = np.array([head.triage for head in heads.meta.heads])

    def raw(self, text: str) -> Scores | None:
        """One raw score per head, or None where nothing in the text is known to the model."""
        return self.raw_of(ngrams.grams(text))

    def raw_of(self, grams: ngrams.Grams) -> Scores | None:
        """The same of the n-grams of a text, which several models may share."""
        total, recognised = np.zeros(self.size), False
        for block, buckets in enumerate(grams):
            idf = self._idf[block].take(buckets).astype(np.float64)
            square = idf @ idf  # of whole numbers: exact
            if square:
                rows = self._weights[block].take(buckets, axis=0).astype(np.float32)
                total += (self._ones[: len(rows)] @ rows) * self._scales[block] / np.sqrt(square)
                recognised = True
        return total if recognised else None


class Curves:
    """Raw scores (n, heads) → expected labels in [0, 1], to 3 decimals: one curve per head."""

    def __init__(self, heads: Sequence[TraitHead]) -> None:
        self._knots = [np.array(head.knots, dtype=np.float64).T for head in heads]
        self._lowest = np.array([xs[0] for xs, _ in self._knots])
        self._highest = np.array([xs[-1] for xs, _ in self._knots])
        self._slopes = np.array([head.slope for head in heads])

    def __call__(self, raw: Scores) -> Scores:
        """The labels; never a minus zero."""
        scores: Scores = np.clip(self.expected(raw), 0.0, 1.0).round(3)
        return scores + 0.0

    def expected(self, raw: Scores) -> Scores:
        """Linear between the knots, on along ``slope`` outside; not clipped."""
        beyond = np.minimum(raw - self._lowest, 0.0) + np.maximum(raw - self._highest, 0.0)
        within = [np.interp(column, xs, ys) for column, (xs, ys) in zip(raw.T, self._knots, strict=True)]
        return np.asarray(np.stack(within, axis=1) + self._slopes * beyond)


def dump(heads: Heads) -> bytes:
    """The bytes of the model file: the same model gives the same bytes."""
    arrays = heads.weights.tobytes() + heads.scales.astype("<f8").tobytes() + heads.idf.tobytes()
    return pack(MAGIC, VERSION, heads.meta, arrays)


def load(folder: Path, file: str = FILE, names: Sequence[str] = TRAITS) -> tuple[Heads, str]:
    """The model in a directory and the SHA-256 of its file; raises JudgeError where it is missing, broken or other.

    ``names`` are what its heads must score, in order.
    """

    def parse(data: bytes) -> Heads:
        meta, arrays = unpack(data, MAGIC, VERSION, LARGEST, "trait heads")
        return _heads(msgspec.json.decode(meta, type=TraitHeadsMeta), arrays, names)

    return read_model(folder / file, parse, REMEDY)


def _heads(meta: TraitHeadsMeta, arrays: bytes, names: Sequence[str]) -> Heads:
    if meta.features != ngrams.VERSION:
        raise ValueError(f"it is for features of version {meta.features}, not {ngrams.VERSION}")
    if tuple(head.trait for head in meta.heads) != tuple(names) or not all(head.knots for head in meta.heads):
        raise ValueError(f"it does not have {', '.join(names)} in this order, each with its knots")
    sizes = np.cumsum([BLOCKS * ngrams.BUCKETS * len(names), BLOCKS * len(names) * 8, BLOCKS * ngrams.BUCKETS])
    if len(arrays) != sizes[-1]:
        raise ValueError(f"it has {len(arrays)} bytes of weights, not {sizes[-1]}")
    weights, scales, idf = arrays[: sizes[0]], arrays[sizes[0] : sizes[1]], arrays[sizes[1] :]
    return Heads(
        meta,
        weights=np.frombuffer(weights, dtype=np.int8).reshape(BLOCKS, ngrams.BUCKETS, len(names)),
        scales=np.frombuffer(scales, dtype="<f8").reshape(BLOCKS, len(names)).astype(np.float64),
        idf=np.frombuffer(idf, dtype=np.uint8).reshape(BLOCKS, ngrams.BUCKETS),
    )
