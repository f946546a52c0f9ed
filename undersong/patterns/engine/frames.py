"""The sequences that a rule runs over, one after the other, as places in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from undersong.jit import kernel, machine
from undersong.patterns.engine.sums import F, I
from undersong.patterns.engine.table import RowTable
from undersong.patterns.engine.vectors import UNKNOWN, Codes

_HOUR = 3_600_000_000  # microseconds


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
    shifted = second.astype(np.int64) + 1
    if not machine(len(first)) or shifted.max(initial=0) > 8 * len(first):
        return np.lexsort((second, first))
    order = np.arange(len(first))
    for key in (shifted, first):
        following = np.zeros(int(key.max(initial=0)) + 2, dtype=np.int64)
        order = _stable.at(len(order))(order, key, following)
    return order


@kernel
def _stable(order, key, following):  # type: ignore[no-untyped-def]
    """An order put by a key from 0 on; what has the same key stays as it is."""
    for i in order:
        following[key[i] + 1] += 1
    for value in range(1, len(following)):
        following[value] += following[value - 1]
    result = np.empty(len(order), dtype=np.int64)
    for i in order:
        result[following[key[i]]] = i
        following[key[i]] += 1
    return result


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
    if machine(len(rows)):
        room = len(rows) + 1  # one more: for a row that is not kept
        selected, holes = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        begins = np.empty(len(bounds), dtype=np.int64)
        number = _read_rows.at(len(rows))(table.read, rows, bounds, selected, holes, begins)
        return SequenceFrame(selected[:number], begins, holes[:number], *of, targets, whole)
    read = table.read[rows]
    number = np.concatenate([[0], np.cumsum(read)])
    selected = np.flatnonzero(read)
    return SequenceFrame(rows[selected], number[bounds], np.diff(selected, prepend=-1) - 1, *of, targets, whole)


@kernel
def _read_rows(read, rows, bounds, selected, holes, begins):  # type: ignore[no-untyped-def]
    """The read ones of some rows, the unread ones before each, and the first of each run; gives how many they are."""
    number = hole = 0
    for run in range(len(bounds) - 1):
        begins[run] = number
        for place in range(bounds[run], bounds[run + 1]):
            selected[number], holes[number] = rows[place], hole
            seen = int(read[rows[place]])
            number, hole = number + seen, (hole + 1) * (1 - seen)
    begins[-1] = number
    return number
