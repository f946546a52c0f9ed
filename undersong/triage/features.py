"""Texts → hashed word 1-2-grams, and the first four and eight bytes from each word's start on, for a block at once.

Everything is counted from word starts, about two hundred in a message of 1.1 KB, so a message costs some ten
microseconds. A message's buckets depend on its own text alone, never on what else is in the block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.judges.ngrams import GOLDEN, encode, multipliers

VERSION = 1  # raise it with any change that moves a bucket: models of another version are refused
BITS = 16
BUCKETS = 1 << BITS
COLUMNS = (0, 0, 1, 2)  # word, pair of words, four bytes, eight bytes: the block of weights that each belongs to
BLOCKS = 3
TEXT = BITS + 2  # bits below the index of a text in a key
MOST = 1 << (32 - TEXT)  # texts of a block
WINDOW = 8  # bytes that are looked at together
LONG = 64  # bytes of a word beyond which it is hashed by itself
SPACE = 0x20
BLOCK_BYTES = 1 << 18  # texts are joined up to this size; the arrays of a block stay in the cache
LONGEST = 1 << 18  # bytes of a text that are looked at: of a longer one the first and the last half of this

Numbers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Keys = npt.NDArray[np.uint32]

_SEPARATOR = b"\0" * 8  # as long as the longest window, so that no window sees another message
_SPACE, _WORD, _MARK, _END = 0, 1, 2, 3
_PLACE, _NEXT = (int(value) for value in multipliers(2))


class Block(NamedTuple):
    """``texts`` is how many; ``keys`` are the buckets of each word start of each text (four, one of each column), with
    the block of weights and the text's index above it: ``text << TEXT | block << BITS | bucket``."""

    texts: int
    keys: Keys

    def distinct(self) -> Keys:
        """Each key once, rising: the buckets of a text and a block of weights stand together."""
        keys = np.sort(self.keys)
        fresh = np.ones(len(keys), dtype=bool)
        np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
        return keys[fresh]


def blocks(texts: Sequence[str]) -> Iterator[Block]:
    """The buckets of the texts in order, joined so that memory stays bounded."""
    group: list[bytes] = []
    size = 0
    for text in texts:
        data = _bytes(text)
        if group and (size + len(data) > BLOCK_BYTES or len(group) == MOST):
            yield _block(group)
            group, size = [], 0
        group.append(data)
        size += len(data) + len(_SEPARATOR)
    if group:
        yield _block(group)


def _bytes(text: str) -> bytes:
    data = encode(text).strip()
    if b"\0" in data:
        data = data.replace(b"\0", b" ")
    return data if len(data) <= LONGEST else data[: LONGEST // 2] + b" " + data[-(LONGEST // 2) :]


def _block(group: list[bytes]) -> Block:
    joined = _single_spaced(_SEPARATOR + _SEPARATOR.join(group) + _SEPARATOR)
    kinds = np.frombuffer(joined.translate(_KINDS), dtype=np.uint8)
    inside = (kinds == _WORD) | (kinds == _MARK)
    edge = kinds[1:] != kinds[:-1]
    edge |= kinds[1:] == _MARK
    starts = np.flatnonzero(inside[1:] & edge) + 1
    last = np.flatnonzero(inside[:-1] & (edge | (kinds[:-1] == _MARK)))
    ends = np.flatnonzero(kinds == _END)[len(_SEPARATOR) - 1 :: len(_SEPARATOR)]
    bounds = np.searchsorted(starts, ends)
    window: Hashes = np.ndarray((max(len(joined) - WINDOW + 1, 0),), dtype="<u8", buffer=joined, strides=(1,))
    eight = window[starts]
    words = _words(joined, window, eight, starts, last + 1 - starts)
    following = np.append(words[1:], np.uint64(0))
    closing = bounds[1:][bounds[1:] > bounds[:-1]] - 1
    following[closing] = 0  # the last word of a text is followed by nothing
    hashes = (words, words * np.uint64(_NEXT) + following, eight & np.uint64(0xFFFFFFFF), eight)
    texts = np.repeat(np.arange(len(group), dtype=np.uint32) << TEXT, np.diff(bounds))
    keys = np.concatenate(
        [_bucket(each) + (texts | column << BITS) for each, column in zip(hashes, COLUMNS, strict=True)]
    )
    return Block(len(group), keys)


def _single_spaced(joined: bytes) -> bytes:
    """The bytes with control characters as spaces and runs of spaces as one."""
    spaced = joined.translate(_SPACES)
    data = np.frombuffer(spaced, dtype=np.uint8)
    space = data == SPACE
    first = np.ones(len(data), dtype=bool)
    np.logical_not(space[1:] & space[:-1], out=first[1:])
    return spaced if first.all() else data[first].tobytes()


def _words(joined: bytes, window: Hashes, eight: Hashes, starts: Numbers, lengths: Numbers) -> Hashes:
    """A 64-bit polynomial hash of each word: the sum of byte times PLACE to the power of its position, modulo 2^64.

    Bytes are taken eight at a time, in pairs whose sums are looked up; very long words are hashed one by one.
    """
    words = _of_eight(eight, lengths)
    rest = np.flatnonzero((lengths > WINDOW) & (lengths <= LONG))
    for at in range(WINDOW, LONG, WINDOW):
        rest = rest[lengths[rest] > at]
        if not len(rest):
            break
        words[rest] += _of_eight(window[starts[rest] + at], lengths[rest] - at) * _POWERS[at]
    for index in np.flatnonzero(lengths > LONG).tolist():
        letters = np.frombuffer(joined, dtype=np.uint8, count=int(lengths[index]), offset=int(starts[index]))
        words[index] = np.sum(letters * _powers(len(letters))[: len(letters)], dtype=np.uint64)
    return words


def _of_eight(window: Hashes, lengths: Numbers) -> Hashes:
    """The hash of the first ``lengths`` bytes, eight at most, of each window."""
    kept = window & _MASKS.take(np.minimum(lengths, WINDOW))
    pairs = _PAIRS.take(kept.view(np.uint16).astype(np.intp)).reshape(-1, WINDOW // 2)
    found = pairs[:, 0].copy()
    for column in range(1, WINDOW // 2):
        found += pairs[:, column] * _POWERS[2 * column]
    return found


def _powers(count: int) -> Hashes:
    """PLACE to the powers from 0 on, at least so many."""
    if len(_TABLE[0]) < count:
        steps = np.full(max(count, LONGEST), _PLACE, dtype=np.uint64)
        steps[0] = 1
        _TABLE[0] = np.cumprod(steps, dtype=np.uint64)
    return _TABLE[0]


def _bucket(hashes: Hashes) -> Keys:
    mixed = (hashes ^ (hashes >> np.uint64(29))) * np.uint64(GOLDEN)
    return (mixed >> np.uint64(64 - BITS)).astype(np.uint32)


def _kinds() -> bytes:
    """Byte → end of a text, space, part of a word (letters, digits, ``_``, ``'``, all beyond ASCII), or a mark."""
    kinds = bytearray([_END] + [_SPACE] * 32 + [_MARK] * 94 + [_SPACE] + [_WORD] * 128)
    for char in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_'":
        kinds[char] = _WORD
    return bytes(kinds)


_KINDS = _kinds()
_SPACES = bytes(32 if _KINDS[byte] == _SPACE else byte for byte in range(256))
_TABLE: list[Hashes] = [np.zeros(0, np.uint64)]
_POWERS = np.array([pow(_PLACE, power, 1 << 64) for power in range(LONG)], dtype=np.uint64)
_MASKS: Hashes = np.array([(1 << 8 * length) - 1 for length in range(WINDOW + 1)], dtype=np.uint64)
_PAIRS: Hashes = np.arange(256, dtype=np.uint64) + np.arange(256, dtype=np.uint64)[:, None] * np.uint64(_PLACE)
_PAIRS = _PAIRS.ravel()  # of two bytes, the first one low
CELL = np.uint32((1 << TEXT) - 1)
