"""Sums over the distinct windows of texts in one pass, where numba is loaded; ``features`` says what windows are.

Without it NumPy sorts the windows of a block. The sums are the same both ways.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from undersong.jit import kernel

SPACE, WORD = 0x20, 1
COMPLETE = 0x80  # the mark of the start whose eight bytes have been seen
BYTE, LAST = np.uint64(8), np.uint64(56)
BEYOND_FOUR, BEYOND_SIX = np.uint64(32), np.uint64(16)  # bits of a window that shorter ones are without
HIGH, BUCKET, ONE = np.uint64(48), np.uint64(16), np.uint64(1)


@kernel
def window_sums(data: Any, ends: Any, kinds: Any, known: Any, golden: Any, layout: Any) -> Any:
    """The sums of weights and of squared idf, (texts, 3) each, over the distinct windows of each text.

    ``data`` (bytes): the texts, a byte between them, text ``t`` up to ``ends[t]``; ``kinds`` and ``known``: the tables
    of ``features`` and ``model``. ``layout`` is any odd number: sets are laid out by it, and the sums are the same.
    """
    sums = np.zeros((2, len(ends), 3), np.int64)
    longest, start = 0, 0
    for end in ends:
        longest, start = max(longest, end - start), end
    windows = np.empty(longest + 8, np.uint64)
    sets = np.empty((3, 2 << _bits(longest)), np.uint64)
    start = 0
    for text in range(len(ends)):
        size = starts_of(data, start, ends[text], kinds, windows)
        bits = _bits(size)
        sets[:, : 1 << bits] = 0
        add_up(windows, size, known, golden, layout, bits, sets, sums[:, text])
        start = ends[text] + 1
    return sums[0], sums[1]


@kernel
def _bits(size: int) -> int:
    """Of the number of a slot in a set that is half empty."""
    bits = 4
    while 1 << bits < 2 * size:
        bits += 1
    return bits


@kernel
def starts_of(data: Any, start: int, end: int, kinds: Any, windows: Any) -> int:
    """Write the eight bytes from each word start on, zeros after the end; returns how many starts there are."""
    while end > start and data[end - 1] <= SPACE:
        end -= 1
    window, marks, before, white, found = np.uint64(0), 0, 0, False, 0
    for place in range(start, end):
        byte = data[place]
        if byte <= SPACE:
            if white:
                continue
            white, byte = True, np.uint8(SPACE)
        else:
            white = False
        kind = kinds[byte]
        marks = (marks << 1) & 0xFF | (1 if kind > (before & WORD) else 0)
        before = kind
        window = (window >> BYTE) | (np.uint64(byte) << LAST)
        windows[found] = window
        found += 1 if marks & COMPLETE else 0
    for _ in range(8):
        marks <<= 1
        window >>= BYTE
        windows[found] = window
        found += 1 if marks & COMPLETE else 0
    return found


@kernel
def add_up(windows: Any, size: int, known: Any, golden: Any, layout: Any, bits: int, sets: Any, sums: Any) -> None:
    """Add weight and squared idf of each window that is there for the first time, the longest first.

    A window that is new has shorter ones in it that may be known; one that is known has known ones only.
    """
    shift = np.uint64(64 - bits)
    for at in range(size):
        window = windows[at]
        four = ((window << BEYOND_FOUR) * golden) >> HIGH
        six = ((window << BEYOND_SIX) * golden) >> HIGH
        eight = (window * golden) >> HIGH
        two = (four << BUCKET) | six
        if not _is_new(sets[2], ((two << BUCKET) | eight) + ONE, layout, shift):
            continue
        _count(known[2, eight], sums, 2)
        if not _is_new(sets[1], two + ONE, layout, shift):
            continue
        _count(known[1, six], sums, 1)
        if _is_new(sets[0], four + ONE, layout, shift):
            _count(known[0, four], sums, 0)


@kernel
def _is_new(slots: Any, key: Any, layout: Any, shift: Any) -> bool:
    """Whether a set has not had a key so far; it has it then. 0 is an empty slot."""
    at, last = (key * layout) >> shift, (~np.uint64(0)) >> shift
    while slots[at] != 0:
        if slots[at] == key:
            return False
        at = (at + ONE) & last
    slots[at] = key
    return True


@kernel
def _count(found: int, sums: Any, block: int) -> None:
    """Add what ``model`` keeps side by side: a weight in the low 16 bits, a square in the high ones."""
    sums[0, block] += ((found & 0xFFFF) ^ 0x8000) - 0x8000
    sums[1, block] += (found >> 16) & 0xFFFF
