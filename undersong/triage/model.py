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


class RecallPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a threshold reached out of fold: the share of harmful messages found, and of all messages routed."""

    threshold: float
    recall: float
    share: float


class TriageMetadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file says of itself: probability = 1 / (1 + exp(-(``slope`` * raw + ``intercept``))).

    ``features`` is the version of the features that it was trained with; ``reached`` falls in its thresholds.
    """

    features: int
    slope: float
    intercept: float
    scales: tuple[float, ...]
    reached: tuple[RecallPoint, ...]
    messages: int
    authors: int
    harmful: int


class Triage:
    """A model in memory: ``weights`` (3 blocks * buckets) int8, ``idf`` (the same) uint8, 0 = not known to it."""

    def __init__(self, meta: TriageMetadata, weights: npt.NDArray[np.int8], idf: npt.NDArray[np.uint8]) -> None:
        self.meta, self.weights, self.idf = meta, weights, idf
        # weight and squared idf of a bucket side by side, so that it is looked up once
        squares = (idf.astype(np.uint16) ** 2).view(np.int16)
        self._known = np.stack([weights.astype(np.int16), squares], axis=1).view(np.int32).reshape(BLOCKS, BUCKETS)
        self._last: tuple[str, Scores] | None = None

    def __call__(self, texts: Sequence[str]) -> Scores:
        """One probability per text, 0-1 to 3 decimals; nan for a text that is blank.

        The probability is that of a judge like the one behind the labels, on messages like the labelled ones.
        """
        raw = self.raw(texts)
        scores: Scores = (1 / (1 + np.exp(-(self.meta.slope * raw + self.meta.intercept)))).round(DIGITS)
        scores[[not text or text.isspace() for text in texts]] = np.nan
        return scores

    def raw(self, texts: Sequence[str]) -> Scores:
        """Raw scores, centred near 0; 0 where nothing in a text is known to the model.

        The last single text is remembered: while a conversation goes on, the scan asks of each message, then the judge.
        """
        if len(texts) != 1:
            return self._raw(texts)
        last = self._last
        if last is None or last[0] != texts[0]:
            last = self._last = texts[0], self._raw(texts)
        return last[1].copy()

    def _raw(self, texts: Sequence[str]) -> Scores:
        parts = [self._block(group) for group in features.groups(texts)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def threshold_for(self, recall: float) -> RecallPoint:
        """The highest threshold that reached this recall out of fold; the lowest there is where none did."""
        return next((each for each in self.meta.reached if each.recall >= recall), self.meta.reached[-1])

    def _block(self, texts: Sequence[str]) -> Scores:
        block = features.feature_block(texts)
        nonempty = np.flatnonzero(np.diff(block.first))  # texts with words in them
        first = block.first[nonempty]
        raw = np.zeros(block.texts)
        for table, scale, (buckets, fresh) in zip(self._known, self.meta.scales, block.windows(), strict=True):
            entries = table.take(buckets)
            entries *= fresh
            weights, squares = entries.view(np.int16)[0::2], entries.view(np.uint16)[1::2]
            norms = np.sqrt(np.add.reduceat(squares, first, dtype=np.int64))
            raw[nonempty] += np.add.reduceat(weights, first, dtype=np.int64) * scale / np.maximum(norms, 1.0)
        return raw


def triage_bytes(model: Triage) -> bytes:
    """The bytes of the model file: the same model gives the same bytes."""
    return pack(MAGIC, VERSION, model.meta, model.weights.tobytes() + model.idf.tobytes())


def load_triage(folder: Path = SHIPPED) -> tuple[Triage, str]:
    """The model in a directory and the SHA-256 of its file, read once; raises JudgeError where it cannot be used."""
    return _loaded(folder)


@cache  # whether the folder was named or not, it is one model
def _loaded(folder: Path) -> tuple[Triage, str]:
    return read_model(folder / FILE, _parse, REMEDY)


def _parse(data: bytes) -> Triage:
    head, arrays = unpack(data, MAGIC, VERSION, LARGEST, "a triage model")
    meta = msgspec.json.decode(head, type=TriageMetadata)
    if meta.features != features.FEATURES_VERSION:
        raise ValueError(f"it is for features of version {meta.features}, not {features.FEATURES_VERSION}")
    if len(meta.scales) != BLOCKS or not meta.reached:
        raise ValueError("it lacks scales or its table of thresholds")
    size = BLOCKS * BUCKETS
    if len(arrays) != 2 * size:
        raise ValueError(f"it has {len(arrays)} bytes of weights, not {2 * size}")
    weights, idf = np.frombuffer(arrays[:size], dtype=np.int8), np.frombuffer(arrays[size:], dtype=np.uint8)
    return Triage(meta, weights, idf)
