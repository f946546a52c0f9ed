"""The triage model: a small file of whole-number weights, and the probabilities that it gives to texts.

Sums over buckets are of whole numbers, so a text has the same score in every batch and on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.datafiles.yaml_loader import MODELS
from undersong.ml.model_file import pack, read_model, unpack
from undersong.ml.ngrams import GOLDEN, SPELLINGS

MAGIC = b"undersong triage"
VERSION = 1  # of the file's layout
FILE = "triage.model"
SHIPPED = MODELS / "triage"
LARGEST = 1 << 20  # bytes of a model, unpacked; ours has 400 thousand
DIGITS = 3  # decimals of a score
TALK_FILE = "talk_triage.model"
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
        parts = [self._block(group) for group in groups(texts)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def threshold_for(self, recall: float) -> RecallPoint:
        """The highest threshold that reached this recall out of fold; the lowest there is where none did."""
        return next((each for each in self.meta.reached if each.recall >= recall), self.meta.reached[-1])

    def _block(self, texts: Sequence[str]) -> Scores:
        block = feature_block(texts)
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


class RoleTriage(NamedTuple):
    """Two models in one: ``posts`` for messages of role agent, ``talk`` for those of people and assistants.

    The table of thresholds of ``talk`` holds for both together.
    """

    posts: Triage
    talk: Triage

    def __call__(self, texts: Sequence[str], agents: Sequence[bool]) -> Scores:
        """One probability per text, by the model for its role; nan for a text that is blank."""
        scores, own = np.zeros(len(texts)), np.array(agents, dtype=bool)
        for model, places in ((self.posts, np.flatnonzero(own)), (self.talk, np.flatnonzero(~own))):
            if len(places):
                scores[places] = model([texts[place] for place in places.tolist()])
        return scores

    def threshold_for(self, recall: float) -> RecallPoint:
        """The highest threshold that reached this recall out of fold; the lowest there is where none did."""
        return self.talk.threshold_for(recall)


def triage_bytes(model: Triage) -> bytes:
    """The bytes of the model file: the same model gives the same bytes."""
    return pack(MAGIC, VERSION, model.meta, model.weights.tobytes() + model.idf.tobytes())


def load_triage(folder: Path = SHIPPED, file: str = FILE) -> tuple[Triage, str]:
    """The model in a directory and the SHA-256 of its file, read once; raises JudgeError where it cannot be used."""
    return _loaded(folder / file)


@cache  # whether the folder was named or not, it is one model
def _loaded(path: Path) -> tuple[Triage, str]:
    return read_model(path, _parse, REMEDY)


def _parse(data: bytes) -> Triage:
    head, arrays = unpack(data, MAGIC, VERSION, LARGEST, "a triage model")
    meta = msgspec.json.decode(head, type=TriageMetadata)
    if meta.features != FEATURES_VERSION:
        raise ValueError(f"it is for features of version {meta.features}, not {FEATURES_VERSION}")
    if len(meta.scales) != BLOCKS or not meta.reached:
        raise ValueError("it lacks scales or its table of thresholds")
    size = BLOCKS * BUCKETS
    if len(arrays) != 2 * size:
        raise ValueError(f"it has {len(arrays)} bytes of weights, not {2 * size}")
    weights, idf = np.frombuffer(arrays[:size], dtype=np.int8), np.frombuffer(arrays[size:], dtype=np.uint8)
    return Triage(meta, weights, idf)


FEATURES_VERSION = 2  # raise it with any change that moves a bucket: models of another version are refused
SIZES = (4, 6, 8)  # bytes of the windows, rising; as good as words, their pairs, four and eight bytes, at half the cost
BITS = 16
BUCKETS = 1 << BITS
BLOCKS = len(SIZES)
TEXT = BITS * BLOCKS  # bits below the index of a text in a key
MOST = 1 << 14  # texts of a block; their indexes fit above that
WINDOW = 8  # bytes that are looked at together
BLOCK_SIZE = 1 << 18  # texts are joined up to this many characters; the arrays of a block stay in the cache
LONGEST = 1 << 18  # characters of a text that are looked at: of a longer one the first and the last half of this

Numbers = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

NUL = "\0"
_END = NUL.encode()
_SEPARATOR = NUL * WINDOW  # after each text, so that no window sees another text
_SPACE = 0x20
_WORD, _MARK = 1, 2
_LEAD, _SECOND, _DOT = 0xE2, 0x80, ord(".")
_NONE: Numbers = np.zeros(0, dtype=np.int64)


class FeatureBatch(NamedTuple):
    """``keys`` has one for each word start, sorted: the text's index, then the buckets of its windows, of BITS each,
    the shortest first. Text ``t`` has ``keys[first[t]:first[t + 1]]``."""

    keys: Keys
    first: Numbers

    @property
    def texts(self) -> int:
        """How many texts it has."""
        return len(self.first) - 1

    def windows(self) -> Iterator[tuple[Numbers, Flags]]:
        """For each size, the bucket of each key, and whether its text has that window here for the first time.

        Two windows are one where their buckets and those of the shorter windows in them are.
        """
        changed = np.empty_like(self.keys)
        changed[:1] = ~np.uint64(0)
        np.bitwise_xor(self.keys[1:], self.keys[:-1], out=changed[1:])
        for below in range(TEXT - BITS, -1, -BITS):
            buckets = self.keys >> np.uint64(below)
            buckets &= np.uint64(BUCKETS - 1)
            yield buckets.view(np.int64), changed >= np.uint64(1 << below)


def blocks(texts: Sequence[str]) -> Iterator[FeatureBatch]:
    """The buckets of the texts in order, joined so that memory stays bounded."""
    return map(feature_block, groups(texts))


def groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """What is looked at of the texts in order, so much at a time that memory stays bounded."""
    group: list[str] = []
    size = 0
    for text in texts:
        if len(text) > LONGEST:
            text = f"{text[: LONGEST // 2]} {text[-(LONGEST // 2) :]}"
        if group and (size + len(text) > BLOCK_SIZE or len(group) == MOST):
            yield group
            group, size = [], 0
        group.append(text)
        size += len(text)
    if group:
        yield group


def feature_block(texts: Sequence[str]) -> FeatureBatch:
    """The buckets of texts that ``groups`` put together."""
    data = _plain(joined(["", *texts, ""], _SEPARATOR))
    spaced = data.tobytes()
    kinds = np.frombuffer(spaced.translate(KINDS), dtype=np.uint8)
    starts = np.flatnonzero(kinds[1:] > (kinds[:-1] & _WORD)) + 1
    ends = np.flatnonzero(data == 0)[::WINDOW]
    first = np.searchsorted(starts, ends)
    window: Keys = np.ndarray((len(spaced) - WINDOW + 1,), dtype="<u8", buffer=spaced, strides=(1,))
    keys = _keys(window[starts], np.repeat(np.arange(len(texts), dtype=np.uint64), np.diff(first)))
    keys.sort()
    return FeatureBatch(keys, first)


def joined(texts: Sequence[str], separator: str) -> bytes:
    """The texts as UTF-8, separators (of NULs) between them alone; lone surrogates pass."""
    data = separator.join(texts).encode("utf-8", "surrogatepass")
    if data.count(_END) == len(separator) * (len(texts) - 1):
        return data
    return separator.join([text.replace(NUL, " ") for text in texts]).encode("utf-8", "surrogatepass")


def _plain(raw: bytes) -> Bytes:
    """The bytes with control characters as spaces, runs of spaces as one, and none at the end of a text; curly quotes,
    long dashes and the ellipsis are made plain."""
    data = np.frombuffer(raw, dtype=np.uint8)
    inside = data != 0
    spaced: Bytes = np.maximum(data, inside.view(np.uint8) * np.uint8(_SPACE))
    white = spaced <= _SPACE
    again = white[1:] & white[:-1]
    again &= inside[:-1]
    idle = _spelled(spaced) if not raw.isascii() else _NONE
    if not len(idle) and not again.any():
        return spaced
    keep = np.ones(len(spaced), dtype=bool)
    np.logical_not(again, out=keep[:-1])
    keep[idle] = False
    collapsed: Bytes = spaced[keep]
    return collapsed


def _spelled(data: Bytes) -> Numbers:
    """Spell characters plainly, in place; the places of the bytes that are not needed any more."""
    places = np.flatnonzero(data == _LEAD)
    places = places[data[places + 1] == _SECOND]
    plain = _PLAIN[data[places + 2]]
    places, plain = places[plain > 0], plain[plain > 0]
    data[places] = plain
    dots = plain == _DOT
    data[places[dots] + 1] = data[places[dots] + 2] = _DOT
    single = places[~dots]
    return np.concatenate((single + 1, single + 2))


def _keys(window: Keys, texts: Keys) -> Keys:
    """The key of each word start, from its bytes and the index of its text."""
    keys = texts
    for size in SIZES:
        hashes = window << np.uint64(8 * (WINDOW - size))  # without the bytes beyond
        hashes *= np.uint64(GOLDEN)
        hashes >>= np.uint64(64 - BITS)
        keys <<= np.uint64(BITS)
        keys |= hashes
    return keys


def _spellings() -> Bytes:
    """Last byte of a character that begins with _LEAD and _SECOND → what is written for it, 0 for itself."""
    plain = np.zeros(256, dtype=np.uint8)
    for character, spelling in SPELLINGS.items():
        lead, second, last = character.encode()
        if (lead, second) != (_LEAD, _SECOND) or spelling not in ("...", spelling[0]):
            raise ValueError(f"{character} cannot be spelled in bytes")
        plain[last] = ord(spelling[0])
    return plain


def _kinds() -> bytes:
    """Byte → part of a word (letters, digits, ``_``, ``'``, all beyond ASCII), a mark by itself, or 0."""
    kinds = bytearray([0] * 33 + [_MARK] * 94 + [0] + [_WORD] * 128)
    for char in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_'":
        kinds[char] = _WORD
    return bytes(kinds)


KINDS = _kinds()
_PLAIN = _spellings()
