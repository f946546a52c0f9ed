"""Derived columns of a partition: expressions with windows over the rows before the current one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from undersong.patterns.language.expressions import Window
from undersong.patterns.language.fields import Context
from undersong.patterns.language.logic import Value
from undersong.patterns.language.values import Column, WindowColumn
from undersong.patterns.language.windows import Aggregate, aggregate
from undersong.patterns.reference.partitions import Entry, Partition

HOUR = 3_600_000_000  # microseconds
DAY = 24 * HOUR
Derived = list[dict[str, Value]]


def derive(partition: Partition, columns: Iterable[Column], cache: dict[str, list[Value]]) -> Derived:
    """Per read row: ``gap_hours``, ``day`` and every column.

    ``cache`` belongs to one rule and one timeline: it keeps the values that do not depend on the partition.
    """
    derived = [_place(partition, i) for i in range(len(partition.rows))]
    for column in columns:
        for window in column.windows:
            for cells, value in zip(derived, _windowed(partition, window, derived, cache), strict=True):
                cells[window.key] = value
        for entry, cells in zip(partition.rows, derived, strict=True):
            cells[column.name] = column.value(Context(entry.row, cells))
    return derived


def _place(partition: Partition, i: int) -> dict[str, Value]:
    time, before = partition.rows[i].time, partition.rows[i - 1].time if i else None
    gap = None if time is None or before is None else (time - before) / HOUR
    return {"gap_hours": gap, "day": None if time is None else time / DAY}


class Sliding:
    """The window at one row after the other: events come in, leave, and wait ``lag`` rows before they count."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.aggregate: Aggregate = aggregate(window.function, window.rows)
        self.waiting: deque[tuple[int | None, Value]] = deque()
        self.times: deque[int | None] = deque()
        self.seen = 0
        smoothed = window.function == "ewma"
        self.rows = None if smoothed else window.rows
        self.needed = window.at_least or window.rows or 1

    def take(self, time: int | None, value: Value) -> None:
        """A past row with a known value."""
        self.waiting.append((time, value))
        if len(self.waiting) <= self.window.lag:
            return
        time, value = self.waiting.popleft()
        self.aggregate.push(value)
        self.times.append(time)
        self.seen += 1
        if self.rows is not None and len(self.times) > self.rows:
            self._drop()

    def at(self, time: int | None) -> Value:
        """The result for a row at ``time``; unknown while the window holds too little."""
        if self.window.hours is not None:
            if time is None:
                return None
            while self.times and (self.times[0] or 0) < time - self.window.hours * HOUR:
                self._drop()
        if len(self.times) < self.needed and not (self.window.function == "count" and self.window.rows is None):
            return None
        return self.aggregate.result()

    def _drop(self) -> None:
        self.times.popleft()
        self.aggregate.drop()


def _windowed(
    partition: Partition, column: WindowColumn, derived: Derived, cache: dict[str, list[Value]]
) -> list[Value]:
    """The window's result at each read row of the partition, from rows before it only."""
    events = list(_events(partition, column, derived, cache))
    sliding, results, following = Sliding(column.window), [], 0
    for entry in partition.rows:
        while following < len(events) and events[following][0].place < entry.place:
            sliding.take(events[following][0].time, events[following][1])
            following += 1
        results.append(sliding.at(entry.time))
    return results


def _events(
    partition: Partition, column: WindowColumn, derived: Derived, cache: dict[str, list[Value]]
) -> Iterable[tuple[Entry, Value]]:
    """The rows that the window ranges over, with their known values; ``where`` and unknown values leave rows out."""
    over = column.window.over
    if over == "partition" and not column.of_row_only:
        for entry, cells in zip(partition.rows, derived, strict=True):
            value = gathered(column, Context(entry.row, cells))
            if value is not None:
                yield entry, value
        return
    if column.key not in cache:
        cache[column.key] = [
            gathered(column, Context(e.row, {})) if e.read else None for e in partition.timeline.entries
        ]
    values = cache[column.key]
    for entry in _ranged(partition, over):
        if (value := values[entry.place]) is not None:
            yield entry, value


def _ranged(partition: Partition, over: str) -> Sequence[Entry]:
    if over == "partition":
        return partition.rows
    entries = partition.timeline.entries
    if over == "agent":
        return entries
    return [entry for entry in entries if entry.row.target not in (None, partition.target)]


def gathered(column: WindowColumn, context: Context) -> Value:
    """What a window takes of a past row; None where it does not count or is unknown."""
    if column.counts is not None and column.counts(context) is not True:
        return None
    value = column.value(context)
    return value is True if column.window.function == "count" else value
