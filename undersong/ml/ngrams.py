"""Text → the distinct hashed word and character n-grams in it: the same code in training and at run time.

No vocabulary and no Python ``hash()``: a text has the same buckets on every platform and in every version. What a
text is made of is all that counts, so a message's features cannot depend on what else is in a batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

VERSION = 1  # raise it with any change that moves a bucket: models of another version are refused
BITS = 16  # buckets per block; 2^20 instead of 2^16 gains less than .005 in mean Spearman, at 16 times the size
BUCKETS = 1 << BITS
SHORTEST, LONGEST = 2, 5  # bytes of a character n-gram: 2-5 measured best of 2-4, 2-5, 2-6, 3-5, 3-6
PIECE = 1 << 18  # bytes read at a time, so that memory stays bounded; n-grams across a cut are not seen

Hashes = npt.NDArray[np.uint64]
Buckets = npt.NDArray[np.uint16]

GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio, for Fibonacci hashing
_MASK = (1 << 64) - 1
SPELLINGS = {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2014": "-", "\u2013": "-", "\u2026": "..."}
_SPACE, _WORD, _MARK = 0, 1, 2
_TOKEN = re.compile(rb"[A-Za-z0-9_'\x80-\xff]+|[^\x00-\x20\x7fA-Za-z0-9_'\x80-\xff]")


class Grams(NamedTuple):
    """Distinct buckets of a text, rising: one block for words, one for characters."""

    words: Buckets
    chars: Buckets


def _kinds() -> npt.NDArray[np.uint8]:
    """Byte → space, part of a word (letters, digits, ``_``, ``'``, all of UTF-8 beyond ASCII), or a mark by itself."""
    kinds = bytearray([_SPACE] * 33 + [_MARK] * 94 + [_SPACE] + [_WORD] * 128)
    for char in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_'":
        kinds[char] = _WORD
    return np.frombuffer(bytes(kinds), dtype=np.uint8)


def multipliers(count: int) -> Hashes:
    """Odd 64-bit numbers of the splitmix64 sequence: fixed and well spread."""
    numbers = []
    for step in range(1, count + 1):
        z = (step * GOLDEN) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        numbers.append(z ^ (z >> 31) | 1)
    return np.array(numbers, dtype=np.uint64)


_KINDS = _kinds()
_PLACES = multipliers(64)  # a multiplier per place in a word; longer words use them again
_NEXT = multipliers(65)[64]


def grams(text: str) -> Grams:
    """The distinct word 1-2-grams and character 2-5-grams of a text; letter case and punctuation count."""
    words, chars = [], []
    for piece in _pieces(encode(text)):
        words.append(_distinct(_buckets(_word_grams(piece))))
        chars.append(_distinct(_buckets(np.concatenate([*_char_grams(piece)]))))
    if len(words) == 1:
        return Grams(words[0], chars[0])
    return Grams(_distinct(np.concatenate(words)), _distinct(np.concatenate(chars)))


def words_of(text: str) -> tuple[list[str], list[int]]:
    """The words and marks of a text as they are hashed, then each pair of neighbours, with their buckets.

    For explaining a score: in the order of the text, repeats included.
    """
    words, buckets = list[str](), list[int]()
    for piece in _pieces(encode(text)):
        single = [word.decode("utf-8", "replace") for word in _TOKEN.findall(piece)]
        words += [*single, *(f"{first} {second}" for first, second in pairwise(single))]
        buckets += _buckets(_word_grams(piece)).tolist()
    return words, buckets


def encode(text: str) -> bytes:
    """UTF-8 with curly quotes and long dashes made plain; lone surrogates pass."""
    if not text.isascii():
        for char, plain in SPELLINGS.items():
            text = text.replace(char, plain)
    return text.encode("utf-8", "surrogatepass")


def _pieces(data: bytes) -> Iterator[bytes]:
    """At most ``PIECE`` bytes at a time, white space made single; one empty piece where there is no text."""
    for start in range(0, len(data) or 1, PIECE):
        yield b" ".join(data[start : start + PIECE].split())


def _word_grams(data: bytes) -> Hashes:
    """A 64-bit hash per word or mark, then one per neighbouring pair."""
    letters = np.frombuffer(data, dtype=np.uint8)
    kinds = _KINDS.take(letters)
    begins = kinds == _MARK
    begins[1:] |= kinds[1:] != kinds[:-1]
    begins[:1] = True
    inside = kinds != _SPACE
    begins &= inside
    starts = np.flatnonzero(begins)
    if not starts.size:
        return np.zeros(0, dtype=np.uint64)
    single: Hashes = np.add.reduceat(letters * inside * _PLACES.take(_places(starts, letters.size) & 63), starts)
    return np.concatenate([single, single[:-1] * _NEXT + single[1:]])


def _places(starts: npt.NDArray[np.intp], size: int) -> npt.NDArray[np.intp]:
    """The place of each of ``size`` letters within what began last; before the first start they do not count."""
    steps = np.ones(size, dtype=np.intp)
    steps[starts[0]] = 0
    steps[: starts[0]] = 0
    steps[starts[1:]] -= starts[1:] - starts[:-1]
    return np.cumsum(steps)


def _char_grams(data: bytes) -> Iterator[Hashes]:
    """The n-grams of each length, packed into an integer with the length in the top byte: exact, no collision yet."""
    text = np.frombuffer(b" " + data + b" ", dtype=np.uint8).astype(np.uint64)
    packed = text
    for length in range(2, LONGEST + 1):
        packed = packed[:-1] | (text[length - 1 :] << np.uint64(8 * (length - 1)))
        if length >= SHORTEST:
            yield packed + np.uint64(length << 56)


def _buckets(hashes: Hashes) -> Buckets:
    mixed = (hashes ^ (hashes >> np.uint64(29))) * np.uint64(GOLDEN)
    return (mixed >> np.uint64(64 - BITS)).astype(np.uint16)


def _distinct(buckets: Buckets) -> Buckets:
    if buckets.size < 2:
        return buckets
    buckets.sort(kind="stable")  # stable = radix sort for 16-bit integers: linear in the length
    first = np.empty(buckets.size, dtype=np.bool_)
    first[0] = True
    np.not_equal(buckets[1:], buckets[:-1], out=first[1:])
    distinct: Buckets = buckets[first]
    return distinct
