"""Tokenisation with hashing: the words of many messages as offsets and 64-bit keys."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.scan.text_batch import Ints, TextBatch

Keys = npt.NDArray[np.uint64]
WORD = 8  # bytes that are looked at together
LONG = 3 * WORD  # bytes of a word beyond which it is hashed for itself
SPACE, APOSTROPHE, STOP = 0x20, 0x27, 0x01
BULLET = "•".encode()
STOPS = bytes([STOP])

# what is between words, byte by byte: all of ASCII but letters, underscores and the apostrophe of "don't"
SPACING = bytes(
    code if code > 0x7F or chr(code).isalpha() or chr(code) in "_'" else SPACE for code in range(256)
).lower()
_MASKS: Keys = np.array([(1 << 8 * length) - 1 for length in range(WORD + 1)], dtype=np.uint64)
# odd numbers without a pattern: the first digits of the square roots of 2, 3, 5, 7, 11, 13, 17 and 19
MIX: Keys = np.array(
    [
        0x6A09E667F3BCC909, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    dtype=np.uint64,
)  # fmt: skip
_HALF = np.uint64(32)


class TokenIndex:
    """Words of messages in order: word ``i`` is ``data[start[i]:end[i]]``, message ``m`` has words
    ``first[m]:first[m + 1]``. Equal words have equal ``keys``; two different ones share a key with chance 2**-64."""

    def __init__(self, blocks: Sequence[TextBatch], non_prose: Mapping[int, Sequence[Ints]] | None = None) -> None:
        """``non_prose`` has, for a block by its index, starts and ends of stretches in which nothing is a word."""
        none: Sequence[Ints] = ()
        spaced = [_spaced(block, (non_prose or {}).get(index, none)) for index, block in enumerate(blocks)]
        parts = [_words(data, block.starts) for data, block in zip(spaced, blocks, strict=True)]
        sizes = np.cumsum([0, *map(len, spaced)])
        self.data = b"".join(spaced)
        self.start: Ints = _joined([each.start for each in parts])
        self.end: Ints = _joined([each.end for each in parts])
        if len(parts) > 1:
            before = np.repeat(sizes[:-1], [len(each.start) for each in parts])
            self.start, self.end = self.start + before, self.end + before
        self.counts: Ints = _joined([each.counts for each in parts])
        self.first: Ints = np.append(0, np.cumsum(self.counts))
        self.keys: Keys = _joined([each.keys for each in parts])

    def words(self, first: int, after: int) -> list[str]:
        """The words from ``first`` up to ``after``."""
        if after <= first:
            return []
        stretch = self.data[self.start[first] : self.end[after - 1]]
        if b" '" not in stretch and STOPS not in stretch:
            return stretch.decode().split()
        places = zip(self.start[first:after].tolist(), self.end[first:after].tolist(), strict=True)
        return [self.data[start:end].decode() for start, end in places]

    def of(self, message: int) -> list[str]:
        """The words of a message."""
        return self.words(int(self.first[message]), int(self.first[message + 1]))

    def grams(self, n: int) -> Keys:
        """A key for the ``n`` words from each word on; those at the end of a message run into the next one.

        The high bits of a key depend on every word.
        """
        places = max(len(self.keys) - n + 1, 0)
        return joined_keys([self.keys[offset : offset + places] for offset in range(n)])


def joined_keys(columns: Sequence[Keys]) -> Keys:
    """A key for words in a row, from the keys of the first ones, of the second ones and so on."""
    combined = columns[0].copy()
    for keys in columns[1:]:
        combined *= MIX[0]
        combined += keys
    return combined


def keys_of(words: Sequence[str]) -> Keys:
    """The keys of words that are not in a message."""
    data = [word.encode("utf-8", "surrogatepass") for word in words]
    lengths = np.fromiter(map(len, data), dtype=np.int64, count=len(data))
    end = np.cumsum(lengths)
    return keys_at(b"".join(data), end - lengths, end)


def mixed(keys: Keys) -> Keys:
    """Keys of which every bit depends on all bits of the given ones."""
    scrambled: Keys = (keys ^ (keys >> _HALF)) * MIX[6]
    return scrambled


class _Words(NamedTuple):
    """The start and end of each word of a block, its key, and the number of words of each text."""

    start: Ints
    end: Ints
    keys: Keys
    counts: Ints


def _joined(parts: Sequence[Any]) -> Any:
    """The arrays as one; a single one as it is."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _spaced(block: TextBatch, non_prose: Sequence[Ints]) -> bytes:
    """The bytes of a block with nothing but spaces and STOPs between words."""
    spaced = block.raw.translate(SPACING)
    if non_prose:
        blanked = bytearray(spaced)
        for start, end in zip(*(each.tolist() for each in non_prose), strict=True):
            blanked[start:end] = b" " * (end - start)
        spaced = bytes(blanked)
    if not block.raw.isascii() and BULLET in spaced:  # a search for three bytes costs as much as all words
        spaced = spaced.replace(BULLET, bytes([STOP] * len(BULLET)))
    return spaced


def _words(spaced: bytes, texts: Ints) -> _Words:
    data = np.frombuffer(spaced, dtype=np.uint8)
    is_word = data > SPACE
    edges = np.flatnonzero(is_word[1:] != is_word[:-1]) + 1
    start, end = edges[0::2].copy(), edges[1::2].copy()
    quoted = np.flatnonzero(data.take(start) == APOSTROPHE)
    if len(quoted):  # an apostrophe after a space opens a quotation; one at the very start of a text stays
        places = start[quoted]
        opening = quoted[(data[places - 1] == SPACE) & ~np.isin(places, texts)]
        start[opening] += 1
        nonempty = start < end
        start, end = start[nonempty], end[nonempty]
    counts = np.diff(np.searchsorted(start, np.append(texts, len(spaced))))
    return _Words(start, end, keys_at(spaced, start, end), counts)


def keys_at(data: bytes, starts: Ints, ends: Ints) -> Keys:
    """A number for each word: words of up to 24 bytes by what they consist of, longer ones by their hash."""
    window = _window(data)
    length = ends - starts
    keys: Keys = window[starts]
    keys &= _MASKS.take(np.minimum(length, WORD))
    keys *= MIX[4]
    longer = np.flatnonzero(length > WORD)
    if len(longer):
        start, end, size = starts[longer], ends[longer], length[longer]
        second = window[start + WORD] & _MASKS[np.minimum(size - WORD, WORD)]
        keys[longer] += mixed(second * MIX[5] + size.astype(np.uint64)) + mixed(window[end - WORD] * MIX[7])
        long = longer[size > LONG]
        keys[long] = _hashes(data, starts[long], ends[long])
    return mixed(keys)


def _window(spaced: bytes) -> Keys:
    """The eight bytes from each place on, as numbers."""
    return np.ndarray((len(spaced) + 1,), dtype="<u8", buffer=spaced + bytes(WORD), strides=(1,))


def _hashes(spaced: bytes, starts: Ints, ends: Ints) -> Keys:
    """The first 64 bits of the hash of each of some words."""
    words = (spaced[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True))
    digests = b"".join([hashlib.blake2b(word, digest_size=WORD).digest() for word in words])
    return np.frombuffer(digests, dtype="<u8")
