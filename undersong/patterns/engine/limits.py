"""How far a match may reach from each row of a frame."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from undersong.jit import kernel, machine
from undersong.patterns.engine.frames import SequenceFrame
from undersong.patterns.engine.sums import I
from undersong.patterns.engine.table import RowTable
from undersong.patterns.engine.vectors import B


class Bounds(NamedTuple):
    """What ends a match: microseconds after its first row, unread rows in a gap, ``until`` rows (of a frame), and the
    most rows that it takes. None: no bound.
    """

    within: int | None
    max_unread: int | None
    closed: B | None
    longest: int | None


class MatchLimits:
    """How far a match from each row of a frame may reach."""

    def __init__(self, frame: SequenceFrame, table: RowTable, bounds: Bounds) -> None:
        self.frame, self.table, self.bounds = frame, table, bounds

    @cached_property
    def times(self) -> I:
        """The time of each row."""
        return np.asarray(self.table.times[self.frame.rows])

    @cached_property
    def fences(self) -> I:
        """The rows that a match from an earlier row may not take: first ones of runs, after too many holes, closed."""
        frame, bounds = self.frame, self.bounds
        if bounds.max_unread is None and bounds.closed is None:
            return frame.bounds[np.flatnonzero(np.diff(frame.bounds, prepend=-1))]
        marked = np.zeros(len(frame.rows) + 1, dtype=np.bool_)
        marked[frame.bounds] = True
        if bounds.max_unread is not None:
            marked[:-1] |= frame.holes > bounds.max_unread
        if bounds.closed is not None:
            marked[:-1] |= bounds.closed
        return np.flatnonzero(marked)

    def fence(self, rows: I) -> I:
        """The next fence after each row."""
        return np.asarray(self.fences[after(self.fences, rows)])

    def of(self, rows: I) -> I:
        """For some rows, one past the furthest that a match from there may take (as ``partitions.limits``)."""
        bounds, last = self.bounds, self.fence(rows)
        if bounds.closed is not None:
            last = np.where(bounds.closed[rows], rows, last)
        if bounds.longest is not None:
            last = np.minimum(last, rows + bounds.longest)
        if bounds.within is None or not len(rows):
            return last
        return bisected(self.times, self.times[rows] + bounds.within + 1, rows, last)


def after(ordered: I, wanted: I) -> I:
    """``np.searchsorted(ordered, wanted, side="right")`` for wanted places in ascending order."""
    if machine(len(wanted)) and len(wanted) * 16 > len(ordered):
        return _after.at(len(wanted))(ordered, wanted)  # type: ignore[no-any-return]
    return np.searchsorted(ordered, wanted, side="right")


@kernel
def _after(ordered, wanted):  # type: ignore[no-untyped-def]
    places = np.empty(len(wanted), dtype=np.int64)
    place = 0
    for k in range(len(wanted)):
        while place < len(ordered) and ordered[place] <= wanted[k]:
            place += 1
        places[k] = place
    return places


def bisected(times: I, wanted: I, low: I, high: I) -> I:
    """For each range the first place whose time is not before the wanted one (its end where there is none)."""
    if machine(len(low)):
        return _bisect.at(len(low))(times, wanted, low, high)  # type: ignore[no-any-return]
    while (open_ := low < high).any():
        middle = (low + high) // 2
        early = open_ & (times[np.minimum(middle, len(times) - 1)] < wanted)
        low, high = np.where(early, middle + 1, low), np.where(open_ & ~early, middle, high)
    return low


@kernel
def _bisect(times, wanted, low, high):  # type: ignore[no-untyped-def]
    places = np.empty(len(low), dtype=np.int64)
    near = 0  # the last one found; the next is often that, or a few rows on
    for k in range(len(low)):
        first, last = low[k], high[k]
        if first <= near < last and times[near] < wanted[k]:
            first, step = near + 1, 1
            while first + step < last and times[first + step] < wanted[k]:
                first, step = first + step + 1, step * 2
            last = min(last, first + step)
        elif first <= near < last:
            first, last = near if first < near and times[near - 1] < wanted[k] else first, near
        while first < last:
            middle = (first + last) // 2
            if times[middle] < wanted[k]:
                first = middle + 1
            else:
                last = middle
        places[k] = near = first
    return places
