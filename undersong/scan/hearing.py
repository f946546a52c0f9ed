"""Words and repeated grams of a block in one pass each, where numba is loaded; ``speech`` and ``repeats`` say what.

Without it NumPy does the same in some twenty passes. Words, keys and repeated grams are the same both ways.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from undersong.jit import kernel

SPACE, APOSTROPHE = 0x20, 0x27
HALF = np.uint64(32)
SPARE = 8  # cells for each gram, at least: one gram in as many is looked at in vain
MOST_BITS = 24  # of the number of a cell


@kernel
def stirred(key: Any, factor: Any) -> Any:
    """See ``speech.mixed``."""
    return (key ^ (key >> HALF)) * factor


@kernel
def hear(spaced: Any, window: Any, texts: Any, masks: Any, mix: Any, short: int) -> Any:
    """Start, end and key of each word, the number of words of each text, and which words are longer than ``short``.

    ``spaced`` (bytes): not over SPACE between words; ``window``: the eight bytes from each place on; ``texts``: where
    each text starts, then where the last one ends. Keys of words longer than ``short`` are not told.
    """
    most = len(spaced) // 2 + 1
    start, end = np.empty(most, np.int64), np.empty(most, np.int64)
    keys, counts = np.empty(most, np.uint64), np.zeros(len(texts) - 1, np.int64)
    edges, lengthy = np.empty(len(spaced) + 1, np.int64), np.empty(len(spaced) // short + 1, np.int64)
    found = long = 0
    for text in range(len(texts) - 1):
        before, size = 0, 0
        for place in range(texts[text], texts[text + 1]):
            inside = 1 if spaced[place] > SPACE else 0
            edges[size] = place
            size += inside ^ before
            before = inside
        known = found
        for edge in range(0, size, 2):
            first, after = edges[edge], edges[edge + 1]
            if spaced[first] == APOSTROPHE and spaced[first - 1] == SPACE and first != texts[text]:
                first += 1
                if first == after:
                    continue
            length = after - first
            key = (window[first] & masks[min(length, 8)]) * mix[4]
            if length > 8:
                second = window[first + 8] & masks[min(length - 8, 8)]
                key += stirred(second * mix[5] + np.uint64(length), mix[6]) + stirred(
                    window[after - 8] * mix[7], mix[6]
                )
                if length > short:
                    lengthy[long] = found
                    long += 1
            start[found], end[found], keys[found] = first, after, stirred(key, mix[6])
            found += 1
        counts[text] = found - known
    return start[:found], end[:found], keys[:found], counts, lengthy[:long]


@kernel
def likely(keys: Any, first: Any, group: Any, salts: Any, mix: Any, n: int, cells: Any, bits: Any) -> Any:
    """Place, message and key of a few grams, by place; those that stand twice in a group are all among them.

    ``cells`` are bytes, 2 ** ``bits`` of them. A gram is told where others share its cell, by its high bits, and still
    some share it by its low ones.
    """
    most = len(keys)
    grams, places, messages = np.empty(most, np.uint64), np.empty(most, np.int64), np.empty(most, np.int64)
    found = 0
    for message in range(len(group)):
        if group[message] < 0:
            continue
        for place in range(first[message], first[message + 1] - n + 1):
            gram = keys[place]
            for offset in range(1, n):
                gram = gram * mix[0] + keys[place + offset]
            grams[found], places[found], messages[found] = gram + salts[message], place, message
            found += 1
    found = _shared(grams, places, messages, found, cells, np.uint64(64) - bits, ~np.uint64(0))
    found = _shared(grams, places, messages, found, cells, np.uint64(0), (np.uint64(1) << bits) - np.uint64(1))
    return places[:found].copy(), messages[:found].copy(), grams[:found].copy()


@kernel
def _shared(grams: Any, places: Any, messages: Any, size: int, cells: Any, shift: Any, mask: Any) -> int:
    """Keep the first ``size`` grams that share a cell, and say how many these are."""
    cells[:] = 0
    for at in range(size):
        cell = (grams[at] >> shift) & mask
        cells[cell] = min(cells[cell] + 1, 2)
    found = 0
    for at in range(size):
        shared = cells[(grams[at] >> shift) & mask] > 1
        grams[found], places[found], messages[found] = grams[at], places[at], messages[at]
        found += 1 if shared else 0
    return found
