"""Code → its pairs of neighbouring tokens as numbers, so that two codes are compared in a few passes."""

from __future__ import annotations

import re

import numpy as np

from undersong.scan.speech import MIX, Keys, joined_keys, keys_at, keys_of

_TOKEN = re.compile(r"\w+|[^\w\s]")
_EDGE: Keys = MIX[2:3]  # the token before the first one, and after the last one
_WORD, _MARK = 1, 2
# of each byte of ASCII: part of a word, a mark by itself, or white space
_KINDS = bytes(_WORD if chr(c).isalnum() or c == ord("_") else 0 if chr(c).isspace() else _MARK for c in range(256))


def pairs_of(code: str) -> Keys:
    """The pairs of neighbouring tokens, rising and all different: one that stands again is another pair each time.

    Order is seen, and the cost is linear for any text but for sorting. Different ones are equal with chance 2**-64.
    """
    tokens = _ascii_tokens(code.encode()) if code.isascii() else keys_of(_TOKEN.findall(code))
    keys = np.concatenate((_EDGE, tokens, _EDGE))
    pairs = joined_keys((keys[:-1], keys[1:]))
    pairs.sort()
    fresh = np.flatnonzero(np.concatenate(([True], pairs[1:] != pairs[:-1])))
    if len(fresh) < len(pairs):
        times = np.arange(len(pairs)) - np.repeat(fresh, np.diff(fresh, append=len(pairs)))
        pairs += times.astype(np.uint64) * MIX[1]
        pairs.sort()
    return pairs


def likeness(one: Keys, other: Keys) -> float:
    """How much of two codes is the same, 0 to 1: shared pairs, of the mean of both (Dice)."""
    return 2.0 * len(np.intersect1d(one, other, assume_unique=True)) / (len(one) + len(other))


def _ascii_tokens(code: bytes) -> Keys:
    """The keys of the tokens: what ``_TOKEN`` finds, for a whole text at once."""
    data = b" %b " % code
    kinds = np.frombuffer(data.translate(_KINDS), dtype=np.uint8)
    starts = np.flatnonzero(kinds[1:] > (kinds[:-1] & _WORD)) + 1
    ends = np.flatnonzero(kinds[:-1] > (kinds[1:] & _WORD)) + 1
    return keys_at(data, starts, ends)
