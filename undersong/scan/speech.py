"""The words of many messages as places and hashes, found for whole blocks at once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from undersong.scan.block import NONE, Block, Ints

Keys = npt.NDArray[np.uint64]
WORD = 8  # bytes that are looked at together
LONG = 3 * WORD  # bytes of a word beyond which it is hashed for itself
APOSTROPHE, SPACE, STOP = 0x27, 0x20, 0x01
BULLET = "•".encode()
STOPS = bytes([STOP])

# what is between words, byte by byte: all of ASCII but letters, underscores and the apostrophe of "don't"
SPACING = bytes(
    code if code > 0x7F or chr(code).isalpha() or chr(code) in "_'" else SPACE for code in range(256)
).lower()
_MASKS: Keys = np.array([(1 << 8 * length) - 1 for length in range(WORD + 1)], dtype=np.uint64)
# odd numbers without a pattern: the first digits of the square roots of 2, 3, 5, 7, 11, 13, 17 and 19
_MIX: Keys = np.array(
    [
        0x6A09E667F3BCC909, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    dtype=np.uint64,
)  # fmt: skip
_HALF = np.uint64(32)


class Speech:
    """Words of messages in order: word ``i`` is ``data[start[i]:end[i]]``, message ``m`` has words
    ``first[m]:first[m + 1]``. Equal words have equal ``keys``; two different ones share a key with chance 2**-64."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        parts = [_words(block) for block in blocks]
        sizes = np.cumsum([0, *(len(block.raw) for block in blocks)])
        self.data = b"".join(spaced for spaced, _, _, _ in parts)
        self.start: Ints = _joined([start + size for (_, start, _, _), size in zip(parts, sizes, strict=False)])
        self.end: Ints = _joined([end + size for (_, _, end, _), size in zip(parts, sizes, strict=False)])
        counts = _joined([count for _, _, _, count in parts])
        self.first: Ints = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
        keys = [_keys(spaced, start, end) for spaced, start, end, _ in parts]
        self.keys: Keys = np.concatenate(keys) if keys else np.zeros(0, dtype=np.uint64)

    def words(self, first: int, after: int) -> list[str]:
        """The words from ``first`` up to ``after``."""
        if after <= first:
            return []
        said = self.data[self.start[first] : self.end[after - 1]]
        if b" '" not in said and STOPS not in said:
            return said.decode().split()
        places = zip(self.start[first:after].tolist(), self.end[first:after].tolist(), strict=True)
        return [self.data[start:end].decode() for start, end in places]

    def of(self, message: int) -> list[str]:
        """The words of a message."""
        return self.words(int(self.first[message]), int(self.first[message + 1]))

    def grams(self, n: int) -> Keys:
        """A key for the ``n`` words from each word on; those at the end of a message run into the next one."""
        places = max(len(self.keys) - n + 1, 0)
        found = np.zeros(places, dtype=np.uint64)
        for offset in range(n):
            factor = _MIX[offset % 4] + np.uint64(2 * (offset // 4))
            found += self.keys[offset : offset + places] * factor
        return mixed(found)


def mixed(keys: Keys) -> Keys:
    """Keys in which every bit depends on all bits."""
    keys = (keys ^ (keys >> _HALF)) * _MIX[6]
    return keys ^ (keys >> _HALF)


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts) if parts else NONE


def _words(block: Block) -> tuple[bytes, Ints, Ints, Ints]:
    """The block with spaces between words, the start and end of each word, and the number of words of each text."""
    spaced = block.raw.translate(SPACING)
    if BULLET in spaced:
        spaced = spaced.replace(BULLET, bytes([STOP] * len(BULLET)))
    data = np.frombuffer(spaced, dtype=np.uint8)
    is_word = data > SPACE
    edges = np.flatnonzero(is_word[1:] != is_word[:-1]) + 1
    start, end = edges[0::2], edges[1::2]
    quoted = data[start] == APOSTROPHE
    if quoted.any():  # an apostrophe after a space opens a quotation; one at the very start of a text stays
        start = start + (quoted & (data[start - 1] == SPACE) & ~np.isin(start, block.starts))
        start, end = start[start < end], end[start < end]
    return spaced, start, end, np.diff(np.searchsorted(start, np.append(block.starts, len(spaced))))


def _keys(spaced: bytes, start: Ints, end: Ints) -> Keys:
    data = spaced + bytes(2 * WORD)
    window = np.ndarray((len(spaced) + WORD,), dtype="<u8", buffer=data, strides=(1,))
    length = end - start
    keys = mixed((window[start] & _MASKS[np.minimum(length, WORD)]) * _MIX[4] + length.astype(np.uint64))
    longer = np.flatnonzero(length > WORD)
    if len(longer):
        from_, to, size = start[longer], end[longer], length[longer]
        second = window[from_ + WORD] & _MASKS[np.minimum(size - WORD, WORD)]
        last = window[to - WORD]
        keys[longer] = mixed(keys[longer] + second * _MIX[5] + mixed(last) * _MIX[7])
    for index in np.flatnonzero(length > LONG).tolist():
        digest = hashlib.blake2b(spaced[start[index] : end[index]], digest_size=8).digest()
        keys[index] = int.from_bytes(digest, "little")
    return keys
