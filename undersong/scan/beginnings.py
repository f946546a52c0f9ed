"""Strings that begin where a word does, found in one pass, where numba is loaded; the engines say what is found.

An automaton waits at every byte for what the byte before led to. Here the eight bytes with which a word begins are
looked up among those of the strings, and most words end there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undersong.jit import Loop, kernel
from undersong.scan.normalise import is_word

KEY, SHORT_KEY = 8, 3  # bytes that are looked up: of strings that have so many, and of shorter ones
CELLS, SHORT_CELLS = 15, 12  # bits of the numbers of cells: both tables stay in the processor's first cache
MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: Knuth, The Art of Computer Programming, 6.4
REST = np.uint64(40)  # bits of what follows SHORT_KEY in KEY
LONG = np.uint64(1 << CELLS)  # the number of the first cell of short strings
FROM, SHORT_FROM = np.uint64(64 - CELLS), np.uint64(64 - SHORT_CELLS)
WORD, ANYWHERE = 1, 2  # kinds of bytes: of a word; of no word, and some string begins with it
FEW = 1 << 14  # occurrences that there is room for at first
NOBODY = -1


@kernel
def begun(
    data: Any, window: Any, kinds: Any, likely: Any, cells: Any, after: Any, said: Any, spans: Any, found: Any
) -> int:
    """Write string and start of every occurrence that begins with a word, as far as ``found`` has room; how many.

    ``window``: the eight bytes from each place of ``data`` on, which has eight more than are searched; ``kinds``: of
    each byte. ``likely`` says of a cell whether a string begins so, first of long ones, then of short ones; ``cells``
    names the first string of each, ``after`` the next one of the same cell; ``spans`` are the starts of the strings in
    ``said``, then its end.
    """
    size = len(data) - KEY
    places = np.empty(size + 1, np.int64)
    starts = before = 0
    for place in range(size):
        kind = kinds[data[place]]
        places[starts] = place
        starts += int(kind & ~before & 1 | kind >> 1)
        before = kind
    hopeful = 0
    for at in range(starts):
        place = places[at]
        key = window[place]
        places[hopeful] = place
        hopeful += int(likely[(key * MIX) >> FROM] | likely[LONG + (((key << REST) * MIX) >> SHORT_FROM)])
    number = 0
    for at in range(hopeful):
        place = places[at]
        key = window[place]
        for short in range(2):
            cell = LONG + (((key << REST) * MIX) >> SHORT_FROM) if short else (key * MIX) >> FROM
            string = cells[cell]
            while string != NOBODY:
                first = spans[string]
                length = spans[string + 1] - first
                same = place + length <= size
                byte = 0
                while same and byte < length:
                    same = data[place + byte] == said[first + byte]
                    byte += 1
                if same:
                    if number < len(found):
                        found[number, 0] = string
                        found[number, 1] = place
                    number += 1
                string = after[string]
    return number


class Beginnings:
    """Strings as tables. Each must begin with a byte of no word, or only be wanted where a word begins."""

    def __init__(self, strings: Sequence[bytes]) -> None:
        """Raises ValueError for a string of less than SHORT_KEY bytes."""
        if any(len(string) < SHORT_KEY for string in strings):
            raise ValueError(f"a string has less than {SHORT_KEY} bytes")
        self._kinds = np.array([WORD if code < 0x80 and is_word(chr(code)) else 0 for code in range(256)], np.uint8)
        first = {string[0] for string in strings}
        self._kinds[[byte for byte in first if self._kinds[byte] != WORD]] = ANYWHERE
        self._said = np.frombuffer(b"".join(strings), dtype=np.uint8)
        self._spans = np.cumsum([0, *map(len, strings)], dtype=np.int64)
        self._after = np.full(len(strings), NOBODY, dtype=np.int32)
        self._cells = np.full((1 << CELLS) + (1 << SHORT_CELLS), NOBODY, dtype=np.int32)
        keys = np.array([int.from_bytes(string[:KEY], "little") for string in strings], dtype=np.uint64)
        cells, short_cells = (keys * MIX) >> FROM, LONG + (((keys << REST) * MIX) >> SHORT_FROM)
        for string, cell in enumerate(np.where(np.diff(self._spans) < KEY, short_cells, cells).tolist()):
            self._after[string] = self._cells[cell]
            self._cells[cell] = string
        self._likely = (self._cells != NOBODY).astype(np.uint8)

    @property
    def ready(self) -> bool:
        """Whether the machine code is loaded."""
        return begun.ready

    def find(self, data: bytes) -> list[tuple[int, int, int]]:
        """See Matcher; only what begins where a word does, or with a byte of no word."""
        with np.errstate(over="ignore"):  # products are meant to lose their upper half
            return self._found(data, begun.compiled if begun.ready else begun.plain)

    def _found(self, data: bytes, search: Loop) -> list[tuple[int, int, int]]:
        text = np.frombuffer(data + bytes(KEY), dtype=np.uint8)
        window = np.ndarray((len(data) + 1,), np.uint64, text.data, strides=(1,))
        room = FEW
        while True:
            found = np.empty((room, 2), dtype=np.int64)
            number = search(
                text, window, self._kinds, self._likely, self._cells, self._after, self._said, self._spans, found
            )
            if number <= room:
                break
            room = number
        strings, starts = found[:number].T
        ends = starts + np.diff(self._spans)[strings]
        return list(zip(strings.tolist(), starts.tolist(), ends.tolist(), strict=True))
