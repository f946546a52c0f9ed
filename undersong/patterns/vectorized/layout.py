"""A table of rows as arrays, and sequences and matches as index ranges of it.

A table has one timeline after the other, each in order; fields are read when a rule asks for them. Sequences are its
rows by partition, matches the rows that each of them takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from undersong.patterns.language.expressions import Field, Window
from undersong.patterns.vectorized.exact_sum import F, I, counts
from undersong.patterns.vectorized.jit import kernel, machine
from undersong.patterns.vectorized.vector_logic import UNKNOWN, B, Codes, Leaves, Masks

DAY = 86_400_000_000  # microseconds
_HOUR = 3_600_000_000  # microseconds


class FieldSource(Leaves, Protocol):
    """Where the fields come from: rows in any order, a leaf is a field or ``indicator``, ``flag`` or ``signal``."""

    @property
    def size(self) -> int:
        """How many rows."""
        ...


class RowTable:
    """The rows of many timelines. ``index[i]`` is the place of row i in its source (None: row i itself).

    ``bounds`` are the first rows of the timelines, with the number of rows at the end; ``times`` are microseconds since
    1970, 0 in a timeline that is not ``timed``; ``targets`` and ``conversations`` are codes, -1 for none. ``windows``
    gives the values of a window over the agent's rows where they are there already.
    """

    def __init__(
        self,
        source: FieldSource,
        index: I | None,
        bounds: I,
        times: I | Callable[[], I],
        timed: B,
        read: B,
        windows: Callable[[Window], F | None] | None = None,
    ) -> None:
        self.source, self.index, self.bounds, self.windows = source, index, bounds, windows
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


class FramePositions(NamedTuple):
    """Where a frame's rows are in the lists of all read rows, the public ones and the directed ones by target.

    So many of the second list come before each row (``directed``), and of both lists before each run (``before``). Of
    each run, too: how many of either list come before its sequence.
    """

    directed: Codes
    before: I
    public_first: I
    directed_first: I


class SequenceFrame(NamedTuple):
    """Runs of read rows, each of one sequence: ``rows`` are places in the table, ``bounds`` the first row of each run.

    ``holes[i]`` is the number of unread rows between row i and the read row before it. Of each run: its timeline,
    conversation and target (codes, -1 for none). ``whole`` is False where runs are only the parts of their sequences
    in which something can match; ``at`` then tells where each row stands in the whole.
    """

    rows: I
    bounds: I
    holes: I
    timelines: I
    conversations: Codes
    targets: Codes
    whole: bool = True
    at: FramePositions | None = None

    @property
    def starts(self) -> I:
        """The first row of each row's run."""
        return np.repeat(self.bounds[:-1], np.diff(self.bounds))

    @property
    def filled(self) -> int:
        """How many runs hold a row."""
        return int(np.count_nonzero(np.diff(self.bounds)))

    def gap_hours(self, table: RowTable) -> F:
        """Hours since the row before in the same run; NaN for the first one and without times."""
        if not len(self.rows):
            return np.zeros(0)
        times = table.times[self.rows]
        hours = np.concatenate([[np.nan], np.diff(times) / _HOUR])
        hours[self.bounds[:-1][np.diff(self.bounds) > 0]] = np.nan
        timed = np.repeat(table.timed[self.timelines], np.diff(self.bounds))
        return np.where(timed, hours, np.nan)


class RowOrder(NamedTuple):
    """The rows of a table group by group: each timeline's, or those of each of its conversations."""

    rows: I
    bounds: I
    timelines: I
    conversations: Codes


def grouped(table: RowTable, partition_by: Sequence[str]) -> RowOrder:
    """The groups in the order of timelines and, within one, of the names of conversations."""
    everything = np.arange(table.size)
    if "conversation" not in partition_by:
        none = np.full(len(table.timed), UNKNOWN, dtype=np.int32)
        return RowOrder(everything, table.bounds, np.arange(len(table.timed)), none)
    rows = sorted_by(table.timeline, table.conversations)
    timeline, conversation = table.timeline[rows], table.conversations[rows]
    new = np.ones(table.size, dtype=np.bool_)
    new[1:] = (timeline[1:] != timeline[:-1]) | (conversation[1:] != conversation[:-1])
    first = np.flatnonzero(new)
    return RowOrder(rows, np.append(first, table.size), timeline[first], conversation[first])


def sorted_by(first: I, second: Codes) -> I:
    """Places by ``first``, which ascends already, then by the codes ``second``, then as they stand."""
    keys = first * (int(second.max(initial=0)) + 2) + second
    return np.argsort(keys, kind="stable")


def undirected(table: RowTable, order: RowOrder) -> SequenceFrame:
    """A sequence per group, whoever its rows are directed at."""
    none = np.full(len(order.timelines), UNKNOWN, dtype=np.int32)
    return framed(table, order.rows, order.bounds, order, np.arange(len(order.timelines)), none)


def framed(
    table: RowTable,
    rows: I,
    bounds: I,
    order: RowOrder,
    groups: I,
    targets: Codes,
    whole: bool = True,
) -> SequenceFrame:
    """The frame of runs that still hold their unread rows; ``groups`` are those of the runs."""
    of = order.timelines[groups], order.conversations[groups]
    read = table.read[rows]
    number = np.concatenate([[0], np.cumsum(read)])
    selected = np.flatnonzero(read)
    return SequenceFrame(rows[selected], number[bounds], np.diff(selected, prepend=-1) - 1, *of, targets, whole)


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
        return np.asarray(picked(self.table.times, self.frame.rows))

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
    return np.searchsorted(ordered, wanted, side="right")


def bisected(times: I, wanted: I, low: I, high: I) -> I:
    """For each range the first place whose time is not before the wanted one (its end where there is none)."""
    if machine(len(low), _bisect):
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


Bindings = np.ndarray[tuple[int], np.dtype[np.int8]]
ALL_BOUND = -2  # all rows that are bound to a variable; -1 are those passed over


class MatchPaths(NamedTuple):
    """Matches: their first rows, and from which to before which place their ``bindings`` stand.

    A binding is the variable of a row (-1: passed over). Matches may share bindings, and between them may stand some of
    no match. A start without a match has a path of no rows.
    """

    starts: I
    first: I
    last: I
    bindings: Bindings

    @property
    def sizes(self) -> I:
        """The rows that each match takes."""
        return self.last - self.first


def sized(starts: I, sizes: I) -> MatchPaths:
    """Matches of so many rows each, one after the other; their bindings are still to be written."""
    last = np.cumsum(sizes, dtype=np.int64)
    return MatchPaths(starts, last - sizes, last, np.empty(int(last[-1]) if len(last) else 0, dtype=np.int8))


def some(paths: MatchPaths, selected: I | npt.NDArray[np.bool_]) -> MatchPaths:
    """Some of the matches."""
    return MatchPaths(paths.starts[selected], paths.first[selected], paths.last[selected], paths.bindings)


def compact(paths: MatchPaths) -> MatchPaths:
    """The same without bindings of no match, one match after the other."""
    result = sized(paths.starts, paths.sizes)
    result.bindings[:] = paths.bindings[ranges(paths.first, paths.last)]
    return result


def joined(parts: list[MatchPaths]) -> MatchPaths:
    """Matches one after the other."""
    sizes = np.array([len(part.bindings) for part in parts])
    before = np.cumsum(sizes) - sizes
    return MatchPaths(
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.first + shift for part, shift in zip(parts, before, strict=True)]),
        np.concatenate([part.last + shift for part, shift in zip(parts, before, strict=True)]),
        np.concatenate([part.bindings for part in parts]),
    )


def bound(paths: MatchPaths, variable: int) -> I:
    """How many rows each match binds to a variable."""
    least, most = (0, 127) if variable == ALL_BOUND else (variable, variable)
    size = int(paths.sizes.sum())
    if machine(size):
        return _count.at(size)(paths.first, paths.last, paths.bindings, np.int8(least), np.int8(most))  # type: ignore[no-any-return]
    before = counts((paths.bindings >= least) & (paths.bindings <= most))
    return before[paths.last] - before[paths.first]


@kernel
def _count(first, last, bindings, least, most):  # type: ignore[no-untyped-def]
    number = np.zeros(len(first), dtype=np.int64)
    for k in range(len(first)):
        for binding in bindings[first[k] : last[k]]:
            number[k] += (binding >= least) & (binding <= most)
    return number
