"""A table of rows as arrays: one timeline after the other, each in order; fields are read when a rule asks for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from undersong.patterns.language.expressions import Field
from undersong.patterns.vectorized.exact_sum import I
from undersong.patterns.vectorized.jit import kernel, machine
from undersong.patterns.vectorized.vector_logic import B, Codes, Leaves, Masks

DAY = 86_400_000_000  # microseconds


class FieldSource(Leaves, Protocol):
    """Where the fields come from: rows in any order, a leaf is a field or ``indicator``, ``flag`` or ``signal``."""

    @property
    def size(self) -> int:
        """How many rows."""
        ...


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
        return picked(values, self.index)

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
    return np.flatnonzero(masks & masks.dtype.type(wanted) != 0)


def ranges(first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]) -> I:
    """All whole numbers from each ``first`` up to its ``last``, one range after the other."""
    sizes = last - first
    ends = np.cumsum(sizes)
    whole = int(ends[-1]) if len(ends) else 0
    return np.arange(whole, dtype=np.int64) + np.repeat(first - (ends - sizes), sizes)  # type: ignore[no-any-return]
