"""Texts → hashed word 1-2-grams, and the first four and eight bytes from each word's start on, for a block at once.

Everything is counted from word starts, about two hundred in a message of 1.1 KB, so a message costs some ten
microseconds. A message's buckets depend on its own text alone, never on what else is in the block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.judges.ngrams import GOLDEN, encode, multipliers

VERSION = 1  # raise it with any change that moves a bucket: models of another version are refused
BITS = 16
BUCKETS = 1 << BITS
COLUMNS = (0, 0, 1, 2)  # word, pair of words, four bytes, eight bytes: the block of weights that each belongs to
BLOCKS = 3
BLOCK_BYTES = 1 << 18  # texts are joined up to this size; the arrays of a block stay in the cache
LONGEST = 1 << 18  # bytes of a text that are looked at: of a longer one the first and the last half of this

Numbers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

_SEPARATOR = b"\0" * 8  # as long as the longest window, so that no window sees another message
_SPACE, _WORD, _MARK, _END = 0, 1, 2, 3
_PLACE, _NEXT = (int(value) for value in multipliers(2))


class Block(NamedTuple):
    """Buckets of some texts: (word starts, 4) int64 with the block of weights included, a row per word start.

    ``bounds`` (texts + 1) are the rows at which each text begins.
    """

    buckets: Numbers
    bounds: Numbers


def blocks(texts: Sequence[str]) -> Iterator[Block]:
    """The buckets of the texts in order, joined so that memory stays bounded."""
    group: list[bytes] = []
    size = 0
    for text in texts:
        data = _bytes(text)
        if group and size + len(data) > BLOCK_BYTES:
            yield _block(group)
            group, size = [], 0
        group.append(data)
        size += len(data) + len(_SEPARATOR)
    if group:
        yield _block(group)


def first_of_each(block: Block, last: Numbers) -> npt.NDArray[np.bool_]:
    """Which buckets stand once for their text: a mask like ``buckets``. ``last`` is scratch of BLOCKS * BUCKETS."""
    flat = block.buckets.ravel()
    places = np.arange(flat.size)
    kept = np.empty_like(flat)
    bounds = (block.bounds * len(COLUMNS)).tolist()
    for start, end in pairwise(bounds):
        own = flat[start:end]
        last[own] = places[start:end]  # of a bucket that comes again the last place stands
        last.take(own, out=kept[start:end], mode="clip")
    return np.asarray(kept == places).reshape(block.buckets.shape)


def _bytes(text: str) -> bytes:
    data = encode(text).strip()
    if b"\0" in data:
        data = data.replace(b"\0", b" ")
    return data if len(data) <= LONGEST else data[: LONGEST // 2] + b" " + data[-(LONGEST // 2) :]


def _block(group: list[bytes]) -> Block:
    joined = _SEPARATOR + _SEPARATOR.join(group) + _SEPARATOR
    data, kinds = _single_spaced(joined)
    before = np.concatenate([[np.uint8(_END)], kinds[:-1]])
    inside = (kinds == _WORD) | (kinds == _MARK)
    starts = np.flatnonzero(inside & ((kinds == _MARK) | (kinds != before)))
    ends = np.flatnonzero(kinds == _END)[len(_SEPARATOR) - 1 :: len(_SEPARATOR)]
    bounds = np.searchsorted(starts, ends)
    words = _words(data * inside, starts)
    following = np.append(words[1:], np.uint64(0))
    closing = bounds[1:][bounds[1:] > bounds[:-1]] - 1
    following[closing] = 0  # the last word of a text is followed by nothing
    eight = np.ndarray((max(len(data) - 7, 0),), dtype="<u8", buffer=data, strides=(1,))[starts]
    hashes = (words, words * np.uint64(_NEXT) + following, eight & np.uint64(0xFFFFFFFF), eight)
    buckets = np.stack([_mixed(each) for each in hashes], axis=1) + np.array(COLUMNS) * BUCKETS
    return Block(buckets, bounds)


def _single_spaced(joined: bytes) -> tuple[Bytes, Bytes]:
    """The bytes with runs of white space made one space, and the kind of each."""
    kinds = np.frombuffer(joined.translate(_KINDS), dtype=np.uint8)
    data = np.frombuffer(joined.translate(_SPACES), dtype=np.uint8)
    kept = kinds != _SPACE
    kept[1:] |= kinds[:-1] != _SPACE
    return data[kept], kinds[kept]


def _words(letters: Bytes, starts: Numbers) -> Hashes:
    """A 64-bit polynomial hash of each word, the same wherever in the block it stands.

    Prefix sums of letter times PLACE to the power of its position; the difference of two, brought back to position
    0 by the inverse power. All modulo 2^64, so exact.
    """
    power, inverse = _powers(len(letters) + 1)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(letters * power[: len(letters)], dtype=np.uint64)])
    upto = np.append(starts[1:], len(letters))[: len(starts)]
    hashes: Hashes = (sums[upto] - sums[starts]) * inverse[starts]
    return hashes


def _powers(count: int) -> tuple[Hashes, Hashes]:
    if len(_TABLE[0]) < count:
        size = max(count, BLOCK_BYTES + LONGEST)
        for place, base in enumerate((_PLACE, pow(_PLACE, -1, 1 << 64))):
            steps = np.full(size, base, dtype=np.uint64)
            steps[0] = 1
            _TABLE[place] = np.cumprod(steps, dtype=np.uint64)
    return _TABLE[0], _TABLE[1]


def _mixed(hashes: Hashes) -> Numbers:
    mixed = (hashes ^ (hashes >> np.uint64(29))) * np.uint64(GOLDEN)
    return (mixed >> np.uint64(64 - BITS)).astype(np.int64)


def _kinds() -> bytes:
    """Byte → end of a text, space, part of a word (letters, digits, ``_``, ``'``, all beyond ASCII), or a mark."""
    kinds = bytearray([_END] + [_SPACE] * 32 + [_MARK] * 94 + [_SPACE] + [_WORD] * 128)
    for char in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_'":
        kinds[char] = _WORD
    return bytes(kinds)


_KINDS = _kinds()
_SPACES = bytes(32 if _KINDS[byte] == _SPACE else byte for byte in range(256))
_TABLE: list[Hashes] = [np.zeros(0, np.uint64), np.zeros(0, np.uint64)]
