"""Sliding windows over the rows before each row of many sequences at once, as ``columns.derive`` has them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from undersong.patterns.language.expressions import Window
from undersong.patterns.reference.columns import Sliding
from undersong.patterns.vectorized.exact_sum import (
    ExactTotal,
    F,
    I,
    NotVectorizable,
    counts,
    mean,
    quotient,
    running,
    split,
    total,
)
from undersong.patterns.vectorized.jit import kernel, machine
from undersong.patterns.vectorized.vector_logic import B

_HOUR = 3_600_000_000  # microseconds
SUMMED = frozenset({"mean", "sum", "count"})


class WindowEvents(NamedTuple):
    """A value per row, and whether the row counts; a condition without rows of its own is one value for all."""

    values: F
    counted: B

    def spread(self, size: int) -> WindowEvents:
        """One value and one answer for each of so many rows."""
        return WindowEvents(np.broadcast_to(self.values, size), np.broadcast_to(self.counted, size))


def over_sequences(window: Window, events: WindowEvents, bounds: I, times: I, timed: B) -> F:
    """The window's result at every row, from the rows before it in its sequence; NaN where it is unknown.

    ``bounds`` are the first rows of the sequences with the number of rows at the end, ``timed`` says of each whether
    its rows have times.
    """
    if window.function not in SUMMED:
        return _one_by_one(window, events, bounds, times, timed)
    if machine(len(times)) and not window.lag:
        return _in_one_go(window, events, bounds, times, timed)
    starts = np.repeat(bounds[:-1], np.diff(bounds))
    number = counts(events.counted)
    first, last = number[starts], np.maximum(number[:-1] - window.lag, number[starts])
    if window.rows is not None:
        first = np.maximum(first, last - window.rows)
    timed_rows = None
    if window.hours is not None:
        timed_rows = np.repeat(timed, np.diff(bounds))
        oldest = at_or_after(times, np.asarray(times - window.hours * _HOUR, dtype=np.float64), starts)
        first = np.minimum(np.maximum(first, number[oldest]), last)
    sums = running(events.values[events.counted])
    result = summed(window, sums.at(last) - sums.at(first), last - first)
    return result if timed_rows is None else np.where(timed_rows, result, np.nan)


def _in_one_go(window: Window, events: WindowEvents, bounds: I, times: I, timed: B) -> F:
    output = np.full(len(times), np.nan)
    values, counted = np.ascontiguousarray(events.values), np.ascontiguousarray(events.counted)
    number, is_mean = float(np.count_nonzero(counted)), window.function == "mean"
    if window.rows is None and window.hours is None:
        sums = np.empty((4, len(times)))
        fits = _accumulate.at(len(times))(values, counted, number, bounds, is_mean, least(window), sums, output)
    else:
        usable = timed if window.hours is not None else np.ones(len(timed), dtype=np.bool_)
        span = np.inf if window.hours is None else float(window.hours * _HOUR)
        fits = _slide.at(len(times))(
            values, counted, number, bounds, times, usable, window.rows or 0, span, is_mean, least(window), output
        )
    if not fits:
        raise NotVectorizable("a value has digits beyond 2**-72, or is too large")
    return output


def least(window: Window) -> int:
    """How many values a window needs for a result."""
    return 0 if window.function == "count" and window.rows is None else window.at_least or window.rows or 1


@kernel
def _accumulate(values, counted, number, bounds, mean, needed, sums, output):  # type: ignore[no-untyped-def]
    """Sums over all counted rows before each row of its sequence; False where a value does not fit.

    ``sums`` (4, rows) is space for limbs and numbers: the loops that split and divide take some rows at once.
    """
    firsts, seconds, thirds, numbers = sums[0], sums[1], sums[2], sums[3]
    unfit = 0
    for row in range(len(values)):
        firsts[row], seconds[row], thirds[row], fits = split(values[row] if counted[row] else 0.0, number)
        unfit += not fits
    for sequence in range(len(bounds) - 1):
        n, a, b, c = 0.0, 0.0, 0.0, 0.0
        for row in range(bounds[sequence], bounds[sequence + 1]):
            first, second, third = firsts[row], seconds[row], thirds[row]
            firsts[row], seconds[row], thirds[row], numbers[row] = a, b, c, n
            n, a, b, c = n + counted[row], a + first, b + second, c + third
    for row in range(len(values)):
        n = numbers[row]
        result = quotient(firsts[row], seconds[row], thirds[row], n if mean and n > 0.0 else 1.0)
        output[row] = result if n >= needed and (n > 0.0 or not mean) else np.nan
    return unfit == 0


@kernel
def _slide(  # type: ignore[no-untyped-def]
    values, counted, number, bounds, times, usable, rows, span, mean, needed, output
):
    """Sums over the counted rows from ``oldest`` to before each row; False where a value does not fit."""
    for sequence in range(len(usable)):
        oldest, n, a, b, c = bounds[sequence], 0, 0.0, 0.0, 0.0
        for row in range(bounds[sequence], bounds[sequence + 1]):
            while (rows > 0 and n > rows) or (oldest < row and times[oldest] < times[row] - span):
                if counted[oldest]:
                    first, second, third, _ = split(values[oldest], number)
                    n, a, b, c = n - 1, a - first, b - second, c - third
                oldest += 1
            if usable[sequence] and n >= needed and (n > 0 or not mean):
                output[row] = quotient(a, b, c, float(n) if mean else 1.0)
            if counted[row]:
                first, second, third, fits = split(values[row], number)
                if not fits:
                    return False
                n, a, b, c = n + 1, a + first, b + second, c + third
    return True


def summed(window: Window, sums: ExactTotal, number: I) -> F:
    """The result of exact sums over so many values; NaN where the window holds too little."""
    result = mean(sums, number) if window.function == "mean" else total(sums)
    return np.where(number >= least(window), result, np.nan)


def at_or_after(times: I, wanted: F, starts: I) -> I:
    """For each row the first one of its sequence that is not before the wanted time: at most the row itself."""
    low, high = starts.copy(), np.arange(len(times))
    while (low < high).any():
        middle = (low + high) // 2
        early = times[middle] < wanted
        low, high = np.where(early & (low < high), middle + 1, low), np.where(early, high, middle)
    return low


def _one_by_one(window: Window, events: WindowEvents, bounds: I, times: I, timed: B) -> F:
    """The same through the reference's own window, row by row."""
    results = np.full(len(times), np.nan)
    values, counted, moments = events.values.tolist(), events.counted.tolist(), times.tolist()
    for sequence, (first, last) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        sliding, has_time = Sliding(window), bool(timed[sequence])
        for row in range(first, last):
            time = moments[row] if has_time else None
            result = sliding.at(time)
            if result is not None:
                results[row] = result
            if counted[row]:
                sliding.take(time, values[row])
    return results
