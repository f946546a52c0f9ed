"""Windows over the rows before each row of many sequences at once, as ``columns.derive`` has them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from undersong.patterns.columns import Sliding
from undersong.patterns.engine.sums import F, I, Total, counts, mean, running, total
from undersong.patterns.engine.vectors import B
from undersong.patterns.expressions import Window

_HOUR = 3_600_000_000  # microseconds
SUMMED = frozenset({"mean", "sum", "count"})


class Events(NamedTuple):
    """A value per row, and whether the row counts; a condition without rows of its own is one value for all."""

    values: F
    counted: B

    def spread(self, size: int) -> Events:
        """One value and one answer for each of so many rows."""
        return Events(np.broadcast_to(self.values, size), np.broadcast_to(self.counted, size))


def over_sequences(window: Window, events: Events, bounds: I, times: I, timed: B) -> F:
    """The window's result at every row, from the rows before it in its sequence; NaN where it is unknown.

    ``bounds`` are the first rows of the sequences with the number of rows at the end, ``timed`` says of each whether
    its rows have times.
    """
    if window.function not in SUMMED:
        return _one_by_one(window, events, bounds, times, timed)
    starts = np.repeat(bounds[:-1], np.diff(bounds))
    number = counts(events.counted)
    first, last = number[starts], np.maximum(number[:-1] - window.lag, number[starts])
    if window.rows is not None:
        first = np.maximum(first, last - window.rows)
    known = None
    if window.hours is not None:
        known = np.repeat(timed, np.diff(bounds))
        oldest = at_or_after(times, np.asarray(times - window.hours * _HOUR, dtype=np.float64), starts)
        first = np.minimum(np.maximum(first, number[oldest]), last)
    sums = running(events.values[events.counted])
    found = summed(window, sums.at(last) - sums.at(first), last - first)
    return found if known is None else np.where(known, found, np.nan)


def summed(window: Window, sums: Total, number: I) -> F:
    """The result of exact sums over so many values; NaN where the window holds too little."""
    found = mean(sums, number) if window.function == "mean" else total(sums)
    if window.function == "count" and window.rows is None:
        return found
    return np.where(number >= (window.at_least or window.rows or 1), found, np.nan)


def at_or_after(times: I, wanted: F, starts: I) -> I:
    """For each row the first one of its sequence that is not before the wanted time: at most the row itself."""
    low, high = starts.copy(), np.arange(len(times))
    while (low < high).any():
        middle = (low + high) // 2
        early = times[middle] < wanted
        low, high = np.where(early & (low < high), middle + 1, low), np.where(early, high, middle)
    return low


def _one_by_one(window: Window, events: Events, bounds: I, times: I, timed: B) -> F:
    """The same through the reference's own window, row by row."""
    found = np.full(len(times), np.nan)
    values, counted, moments = events.values.tolist(), events.counted.tolist(), times.tolist()
    for sequence, (first, last) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        sliding, has_time = Sliding(window), bool(timed[sequence])
        for row in range(first, last):
            time = moments[row] if has_time else None
            result = sliding.at(time)
            if result is not None:
                found[row] = result
            if counted[row]:
                sliding.take(time, values[row])
    return found
