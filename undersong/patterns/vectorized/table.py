"""Rows as arrays: one timeline after the other, each in order; fields are read when a rule asks for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from undersong.patterns.language.expressions import Field
from undersong.patterns.vectorized.exact_sum import I
from undersong.patterns.vectorized.jit import kernel, machine
from undersong.patterns.vectorized.vector_logic import B, Codes, Leaves, Masks

DAY = 86_400_000_000  # microseconds
_BLOCK = 1 << 17  # rows of a table whose numbers stay in a cache while they are brought into order
_WIDE = 4  # bytes of a value; narrower ones stay in a cache anyway
_WORTH = 4  # arrays of wide values from which on the two steps of an index are worth their making


class FieldSource(Leaves, Protocol):
    """Where the fields come from: rows in any order, a leaf is a field or ``indicator``, ``flag`` or ``signal``."""

    @property
    def size(self) -> int:
        """How many rows."""
        ...


class _IndexSteps(NamedTuple):
    """An index in two steps. Of each block of rows of a table: their places in the source, ascending; and for each of
    its rows, which of these is its own.
    """

    places: Codes
    own: Codes


class RowTable:
    """The rows of many timelines. ``index[i]`` is the place of row i in its source (None: row i itself).

    ``bounds`` are the first rows of the timelines, with the number of rows at the end; ``times`` are microseconds since
    1970, 0 in a timeline that is not ``timed``; ``targets`` and ``conversations`` are codes, -1 for none.
    """

    def __init__(
        self, source: FieldSource, index: I | None, bounds: I, times: I | Callable[[], I], timed: B, read: B
    ) -> None:
        self.source, self.index, self.bounds = source, index, bounds
        self._times, self.timed, self.read = times, timed, read
        self._asked = 0

    @cached_property
    def times(self) -> I:
        """The time of each row; made when a rule asks for it."""
        return self._times() if callable(self._times) else self._times

    @property
    def size(self) -> int:
        """How many rows."""
        return len(self.read)

    @cached_property
    def timeline(self) -> I:
        """The timeline of each row."""
        return np.repeat(np.arange(len(self.timed)), np.diff(self.bounds))

    def text_codes(self, name: str) -> Codes:
        """The codes of a text field, row by row of this table."""
        codes = self.source.text(Field(name))
        return self.taken(codes)  # type: ignore[no-any-return]

    def taken(self, values: Any) -> Any:
        """Values of the source (an array, or one for all rows), row by row of this table."""
        if self.index is None or not np.ndim(values):
            return values
        self._asked += values.itemsize >= _WIDE
        often = values.itemsize >= _WIDE and self._asked >= _WORTH
        if not often or not machine(self.size) or self._steps is None:
            return picked(values, self.index)
        output = np.empty(self.size, dtype=values.dtype)
        _take.at(self.size)(np.ascontiguousarray(values), *self._steps, _BLOCK, output)
        return output

    @cached_property
    def _steps(self) -> _IndexSteps | None:
        """Each step stays within a cache, where the index goes to and fro in the whole source.

        None where a row of the source stands in several rows of the table, as a card does in many shuffles.
        """
        steps = _IndexSteps(*(np.empty(self.size, dtype=np.int32) for _ in _IndexSteps._fields))
        blocks = np.full(self.source.size, -1, dtype=np.int32)
        first = np.arange(0, self.size, _BLOCK)
        return steps if _part.at(self.size)(self.index, _BLOCK, first, blocks, *steps) else None

    @cached_property
    def targets(self) -> Codes:
        """Who each row is directed at."""
        return self.text_codes("target")

    @cached_property
    def conversations(self) -> Codes:
        """The conversation of each row."""
        return self.text_codes("conversation")

    def only(self, selected: B) -> RowTable:
        """The table with some of its rows; timelines that lose all of them stay, empty."""
        rows = np.flatnonzero(selected)
        index = rows if self.index is None else self.index[rows]
        bounds = np.concatenate([[0], np.cumsum(selected)])[self.bounds]
        return RowTable(self.source, index, bounds, lambda: self.times[rows], self.timed, self.read[rows])


@kernel
def _part(index, block, first, blocks, places, own):  # type: ignore[no-untyped-def]
    """Puts an index of different places apart into two steps; ``blocks`` is -1 for each row of the source.

    False where a place comes again: then there are no such steps.
    """
    for row in range(len(index)):
        if blocks[index[row]] >= 0:
            return False
        blocks[index[row]] = row // block
    following = first.copy()
    for place in range(len(blocks)):
        number = blocks[place]
        if number >= 0:
            places[following[number]] = place
            blocks[place] = following[number] - first[number]
            following[number] += 1
    for row in range(len(index)):
        own[row] = blocks[index[row]]
    return True


@kernel
def _take(values, places, own, block, output):  # type: ignore[no-untyped-def]
    near = np.empty(min(block, len(output)), dtype=values.dtype)
    for first in range(0, len(output), block):
        last = min(first + block, len(output))
        for row in range(first, last):
            near[row - first] = values[places[row]]
        for row in range(first, last):
            output[row] = near[own[row]]


def picked(values: Any, rows: npt.NDArray[np.integer]) -> Any:
    """``values[rows]``, for rows that are no negative numbers."""
    if not machine(len(rows)):
        return values[rows]
    output = np.empty(len(rows), dtype=values.dtype)
    _pick.at(len(rows))(values, rows, output)
    return output


@kernel
def _pick(values, rows, output):  # type: ignore[no-untyped-def]
    for k in range(len(rows)):
        output[k] = values[np.uint64(rows[k])]  # machine code need not ask whether it is negative


def fitting(masks: Masks, wanted: int) -> I:
    """The places of masks with one of the wanted bits, ascending."""
    if machine(len(masks)):
        places = np.empty(len(masks) + 1, dtype=np.int64)
        return places[: _fit.at(len(masks))(masks, masks.dtype.type(wanted), places)].copy()
    return np.flatnonzero(masks & masks.dtype.type(wanted))


@kernel
def _fit(masks, wanted, places):  # type: ignore[no-untyped-def]
    number = 0
    for place in range(len(masks)):
        places[number] = place
        number += masks[place] & wanted != 0
    return number


def ranges(first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]) -> I:
    """All whole numbers from each ``first`` up to its ``last``, one range after the other."""
    sizes = last - first
    ends = np.cumsum(sizes)
    whole = int(ends[-1]) if len(ends) else 0
    if machine(whole):
        numbers = np.empty(whole, dtype=np.int64)
        _count_up.at(whole)(first, last, numbers)
        return numbers
    return np.arange(whole, dtype=np.int64) + np.repeat(first - (ends - sizes), sizes)  # type: ignore[no-any-return]


@kernel
def _count_up(first, last, numbers):  # type: ignore[no-untyped-def]
    used = 0
    for k in range(len(first)):
        for value in range(first[k], last[k]):
            numbers[used] = value
            used += 1
