"""The triage model: a small file of whole-number weights, and the probabilities that it gives to texts.

Sums over buckets are of whole numbers, so a text has the same score in every batch and on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.modelfile import pack, read_model, unpack
from undersong.triage import features
from undersong.triage.features import BLOCKS, BUCKETS

MAGIC = b"undersong triage"
VERSION = 1  # of the file's layout
FILE = "triage.model"
SHIPPED = Path(__file__).parent / "models"
LARGEST = 1 << 20  # bytes of a model, unpacked; ours has 400 thousand
DIGITS = 3  # decimals of a score
REMEDY = "train it again (train/triage.py --out DIR), or install undersong again for the shipped model"

Scores = npt.NDArray[np.float64]


class Reached(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a threshold reached out of fold: the share of harmful messages found, and of all messages routed."""

    threshold: float
    recall: float
    share: float


class Meta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file says of itself: probability = 1 / (1 + exp(-(``slope`` * raw + ``intercept``))).

    ``features`` is the version of the features that it was trained with; ``reached`` falls in its thresholds.
    """

    features: int
    slope: float
    intercept: float
    scales: tuple[float, ...]
    reached: tuple[Reached, ...]
    messages: int
    authors: int
    harmful: int


class Triage:
    """A model in memory: ``weights`` (3 blocks * buckets) int8, ``idf`` (the same) uint8, 0 = not known to it."""

    def __init__(self, meta: Meta, weights: npt.NDArray[np.int8], idf: npt.NDArray[np.uint8]) -> None:
        self.meta, self.weights, self.idf = meta, weights, idf
        self._squares = idf.astype(np.uint16) ** 2
        self._scales = np.array(meta.scales)

    def __call__(self, texts: Sequence[str]) -> Scores:
        """One probability per text, 0-1 to 3 decimals; nan for a text that is blank.

        The probability is that of a judge like the one behind the labels, on messages like the labelled ones.
        """
        raw = self.raw(texts)
        scores: Scores = (1 / (1 + np.exp(-(self.meta.slope * raw + self.meta.intercept)))).round(DIGITS)
        scores[[not text or text.isspace() for text in texts]] = np.nan
        return scores

    def raw(self, texts: Sequence[str]) -> Scores:
        """Raw scores, centred near 0; 0 where nothing in a text is known to the model."""
        parts = [self._block(block) for block in features.blocks(texts)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def threshold_for(self, recall: float) -> Reached:
        """The highest threshold that reached this recall out of fold; the lowest there is where none did."""
        return next((each for each in self.meta.reached if each.recall >= recall), self.meta.reached[-1])

    def _block(self, block: features.Block) -> Scores:
        keys = block.distinct()
        # of each text four stretches of keys, one a block of weights and the last one empty
        edges = np.searchsorted(keys, np.arange(4 * block.texts, dtype=np.uint32) << features.BITS)
        buckets = (keys & features.CELL).astype(np.intp)
        weights = _sums(self.weights.take(buckets), edges)
        norms = np.sqrt(_sums(self._squares.take(buckets), edges))
        terms = weights * self._scales / np.maximum(norms, 1.0)
        raw = np.zeros(block.texts)
        for column in range(BLOCKS):  # one after the other: the same order of additions in every batch
            raw += terms[:, column]
        return raw


def triage_bytes(model: Triage) -> bytes:
    """The bytes of the model file: the same model gives the same bytes."""
    return pack(MAGIC, VERSION, model.meta, model.weights.tobytes() + model.idf.tobytes())


@cache
def load_triage(folder: Path = SHIPPED) -> tuple[Triage, str]:
    """The model in a directory and the SHA-256 of its file, read once; raises JudgeError where it cannot be used."""
    return read_model(folder / FILE, _parse, REMEDY)


def _parse(data: bytes) -> Triage:
    head, arrays = unpack(data, MAGIC, VERSION, LARGEST, "a triage model")
    meta = msgspec.json.decode(head, type=Meta)
    if meta.features != features.VERSION:
        raise ValueError(f"it is for features of version {meta.features}, not {features.VERSION}")
    if len(meta.scales) != BLOCKS or not meta.reached:
        raise ValueError("it lacks scales or its table of thresholds")
    size = BLOCKS * BUCKETS
    if len(arrays) != 2 * size:
        raise ValueError(f"it has {len(arrays)} bytes of weights, not {2 * size}")
    weights, idf = np.frombuffer(arrays[:size], dtype=np.int8), np.frombuffer(arrays[size:], dtype=np.uint8)
    return Triage(meta, weights, idf)


def _sums(values: npt.NDArray[np.generic], edges: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Whole numbers from edge to edge → sums (texts, blocks), exact."""
    sums = np.add.reduceat(np.append(values, values.dtype.type(0)), edges, dtype=np.int64)
    sums[np.diff(edges, append=len(values)) == 0] = 0  # where nothing lies between, reduceat gives the next value
    return sums.reshape(-1, 4)[:, :BLOCKS]
