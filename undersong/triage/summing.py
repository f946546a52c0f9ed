"""Sums over the distinct windows of texts in one pass, where numba is loaded; ``features`` says what windows are.

Without it NumPy sorts the windows of a block. The sums are the same both ways.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from undersong.jit import kernel

SPACE = 0x20
SEEN = np.uint64(7)  # the bit of a start whose eight bytes have been seen
BYTE, LAST = np.uint64(8), np.uint64(56)
BEYOND_FOUR, BEYOND_SIX = np.uint64(32), np.uint64(16)  # bits of a window that shorter ones are without
HIGH, BUCKET, ONE = np.uint64(48), np.uint64(16), np.uint64(1)


@kernel
def window_sums(data: Any, ends: Any, kinds: Any, known: Any, golden: Any, layout: Any) -> Any:
    """The sums of weights and of squared idf, (texts, 3) each, over the distinct windows of each text.

    ``data`` (bytes): the texts, a byte between them, text ``t`` up to ``ends[t]``; ``kinds`` and ``known``: the tables
    of ``features`` and ``model``. ``layout`` is any odd number: sets are laid out by it, and the sums are the same.
    """
    weights, squares = np.zeros((len(ends), 3), np.int64), np.zeros((len(ends), 3), np.int64)
    longest, start = 0, 0
    for end in ends:
        longest, start = max(longest, end - start), end
    windows, slots = np.empty(longest + 8, np.uint64), 1 << _bits(longest)
    fours, sixes, eights = np.empty(slots, np.uint64), np.empty(slots, np.uint64), np.empty(slots, np.uint64)
    start = 0
    for text in range(len(ends)):
        size = _windows(data, start, ends[text], kinds, windows)
        start = ends[text] + 1
        bits = _bits(size)
        slots, shift = 1 << bits, np.uint64(64 - bits)
        fours[:slots], sixes[:slots], eights[:slots] = 0, 0, 0
        weight_4 = weight_6 = weight_8 = square_4 = square_6 = square_8 = 0
        for at in range(size):
            window = windows[at]
            four = ((window << BEYOND_FOUR) * golden) >> HIGH
            six = ((window << BEYOND_SIX) * golden) >> HIGH
            eight = (window * golden) >> HIGH
            of_four, of_six, of_eight = known[0, four], known[1, six], known[2, eight]  # at once: memory is slow
            two = (four << BUCKET) | six
            if not _is_new(eights, ((two << BUCKET) | eight) + ONE, layout, shift):
                continue  # its shorter windows are known, too
            weight_8 += _weight(of_eight)
            square_8 += _square(of_eight)
            if not _is_new(sixes, two + ONE, layout, shift):
                continue
            weight_6 += _weight(of_six)
            square_6 += _square(of_six)
            if _is_new(fours, four + ONE, layout, shift):
                weight_4 += _weight(of_four)
                square_4 += _square(of_four)
        weights[text, 0], weights[text, 1], weights[text, 2] = weight_4, weight_6, weight_8
        squares[text, 0], squares[text, 1], squares[text, 2] = square_4, square_6, square_8
    return weights, squares


@kernel
def _bits(size: int) -> int:
    """Of the number of a slot in a set that is half empty."""
    bits = 4
    while 1 << bits < 2 * size:
        bits += 1
    return bits


@kernel
def _windows(data: Any, start: int, end: int, kinds: Any, windows: Any) -> int:
    """Write the eight bytes from each word start on, zeros after the end; returns how many starts there are."""
    while end > start and data[end - 1] <= SPACE:
        end -= 1
    window, marks, before, found = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    white = 0
    for place in range(np.uint64(start), np.uint64(end)):
        byte = data[place]
        here = 1 if byte <= SPACE else 0
        if here & white:
            continue
        white, byte = here, max(byte, np.uint8(SPACE))
        kind = np.uint64(kinds[byte])  # a start: a mark, or a word's first byte
        marks = (marks << ONE) | (kind >> ONE) | (kind & ~before & ONE)
        before = kind
        window = (window >> BYTE) | (np.uint64(byte) << LAST)
        windows[found] = window
        found += (marks >> SEEN) & ONE
    for _ in range(8):
        marks <<= ONE
        window >>= BYTE
        windows[found] = window
        found += (marks >> SEEN) & ONE
    return int(found)


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
def _weight(found: int) -> int:
    """What ``model`` keeps in the low 16 bits, with its sign."""
    return ((found & 0xFFFF) ^ 0x8000) - 0x8000


@kernel
def _square(found: int) -> int:
    """What ``model`` keeps in the high 16 bits."""
    return (found >> 16) & 0xFFFF
