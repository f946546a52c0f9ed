"""Exact statistics over the rows of each match: sums of two float64, and quotients that are rounded once.

Values from 2**-20 to 16 are multiples of 2**-72, and so is 0; so a sum of up to 4096 of them, and of them
times their index, is exact as a pair of float64 values. Squares are not; there the error is bounded, and where the
bound leaves two results possible the match is marked as ``hard`` and left to whole numbers.
"""

from __future__ import annotations

import math

import numpy as np

from undersong.patterns.vectorized.jit import kernel
from undersong.patterns.vectorized.paths import MATCH

MEAN, SUM, STD, SLOPE, MIN, MAX, FIRST, LAST = range(8)
FUNCTIONS = {
    "mean": MEAN, "sum": SUM, "count": SUM, "std": STD, "slope": SLOPE, "min": MIN, "max": MAX, "first": FIRST,
    "last": LAST,
}  # fmt: skip
MOST = 4096  # values of a match up to which its sums are exact pairs
_LEAST, LARGEST = 2.0**-20, 16.0  # between them a float64 is a multiple of 2**-72
_SPLIT = 134_217_729.0  # 2**27 + 1: Veltkamp's constant
_LOST = 2.0**-100  # of a sum of squares, by each value that is added: some times what rounding a pair loses


@kernel
def two_product(one: float, other: float) -> tuple[float, float]:
    """The product and its error (Dekker)."""
    product = one * other
    upper = one * _SPLIT
    upper = upper - (upper - one)
    lower = one - upper
    high = other * _SPLIT
    high = high - (high - other)
    low = other - high
    return product, ((upper * high - product) + upper * low + lower * high) + lower * low


@kernel
def add(high: float, low: float, more: float, rest: float) -> tuple[float, float]:
    """The pair plus another."""
    both = high + more
    back = both - high
    error = (high - (both - back)) + (more - back)
    error += low + rest
    near = both + error
    back = near - both
    return near, (both - (near - back)) + (error - back)


@kernel
def divide(high: float, low: float, by: float) -> tuple[float, float, bool]:
    """The pair over a whole number, as a pair; and whether it is exactly that."""
    first = high / by
    product, error = two_product(first, by)
    rest = (high - product) - error
    left = rest + low
    back = left - rest
    lost = (rest - (left - back)) + (low - back)
    second = left / by
    product, error = two_product(second, by)
    return first, second, lost == 0.0 and product == left and error == 0.0


@kernel
def rounding_certain(high: float, low: float, error: float) -> bool:
    """Whether everything within the error rounds to the same."""
    return high + (low - error) == high + (low + error)


@kernel
def spread(values, start: int, rows, size: int) -> tuple[float, bool]:  # type: ignore[no-untyped-def]
    """Population standard deviation of some values; and whether it is settled."""
    first = values[start + rows[0]]
    sum_high = sum_low = square_high = square_low = 0.0
    for i in range(size):
        value = values[start + rows[i]]
        high = value - first
        back = high - value
        low = (value - (high - back)) - (first + back)
        sum_high, sum_low = add(sum_high, sum_low, high, low)
        product, error = two_product(high, high)
        square_high, square_low = add(square_high, square_low, product, error + 2.0 * high * low)
    if square_high == 0.0:
        return 0.0, True
    n = float(size)
    high, low = two_product(square_high, n)
    low += square_low * n
    product, error = two_product(sum_high, sum_high)
    high, low = add(high, low, -product, -(error + 2.0 * sum_high * sum_low))
    high, low, _ = divide(high, low, n * n)
    return math.sqrt(max(high + low, 0.0)), rounding_certain(high, low, (size + 32) * _LOST * square_high / n)


@kernel
def trend(values, start: int, rows, size: int) -> tuple[float, bool]:  # type: ignore[no-untyped-def]
    """Least-squares slope of some values on their index; and whether it is settled."""
    first = values[start + rows[0]]
    total_high = total_low = 0.0
    for i in range(size):
        high, low = add(values[start + rows[i]], 0.0, -first, 0.0)
        weight = 2.0 * i - (size - 1)
        product, error = two_product(high, weight)
        total_high, total_low = add(total_high, total_low, product, error + low * weight)
    if total_high == 0.0:
        return 0.0, True
    high, low = two_product(total_high, 6.0)
    high, low, exact = divide(high, low + total_low * 6.0, size * (size * size - 1.0))
    return high + low, exact or rounding_certain(high, low, abs(low) * 2.0**-48)


@kernel
def average(values, start: int, rows, size: int, mean: bool) -> float:  # type: ignore[no-untyped-def]
    """Mean or sum of some values, rounded once."""
    high = low = 0.0
    for i in range(size):
        high, low = add(high, low, values[start + rows[i]], 0.0)
    if mean:
        high, low, _ = divide(high, low, float(size))
    return high + low


@kernel
def extreme(values, start: int, rows, size: int, least: bool) -> float:  # type: ignore[no-untyped-def]
    """The least or the greatest of some values; of equals the last."""
    best = values[start + rows[0]]
    for i in range(1, size):
        value = values[start + rows[i]]
        if value <= best if least else value >= best:
            best = value
    return float(best)


@kernel
def statistic(function, variable, starts, first, last, bindings, values, output, hard):  # type: ignore[no-untyped-def]
    """A function over the known values of the rows that each match binds to a variable.

    ``output`` stays NaN where the result is unknown; ``hard`` marks what has to be worked out in another way.
    """
    rows = np.empty(MOST, dtype=np.int64)
    for k in range(len(starts)):
        size = chosen(variable, values, starts[k], bindings, first[k], last[k], function >= FIRST, rows)
        if size > MOST and function != FIRST:
            hard[k] = True
        elif function == SUM:
            output[k] = average(values, starts[k], rows, size, False)
        elif size:
            output[k], sure = result(function, values, starts[k], rows, size)
            hard[k] = not sure


@kernel
def chosen(variable, values, start, bindings, first, last, unknown, rows):  # type: ignore[no-untyped-def]
    """How many rows of a match are bound to a variable; their places in it go to ``rows``, as many as it holds.

    Rows with an unknown value count only where ``unknown`` says so. A value whose sums may not be exact makes the
    number too large to go on.
    """
    size = 0
    for i in range(last - first):
        bound = bindings[first + i]
        if bound == variable or (variable == MATCH and bound >= 0):
            value = values[start + i]
            if unknown or value == value:
                if size < len(rows):
                    rows[size] = i
                size += 1
                if value != 0.0 and not _LEAST <= abs(value) <= LARGEST and not unknown:
                    size += MOST
    return size


@kernel
def result(function, values, start, rows, size):  # type: ignore[no-untyped-def]
    """A function of at least one value, NaN where it needs two; and whether it is settled."""
    if function == MEAN:
        return average(values, start, rows, size, True), True
    if function == STD:
        return spread(values, start, rows, size)
    if function == SLOPE:
        return trend(values, start, rows, size) if size > 1 else (np.nan, True)
    if function == FIRST or function == LAST:  # noqa: SIM109 - numba's tuples are slow
        return values[start + rows[0 if function == FIRST else size - 1]], True
    return extreme(values, start, rows, size, function == MIN), True


_ROUGH = 2.0**-34  # more than ordinary sums of MOST values lose, of the sum of what their parts come to without signs
_AGAIN = 64  # starts after which sums that went along are made anew
_TINY = 2.0**-960  # more than falls below the least float64


@kernel
def rough(function, variable, starts, begins, ends, bindings, values, low, high):  # type: ignore[no-untyped-def]
    """Between what a mean, a spread or a trend surely lies, by ordinary sums; NaN where that is not known."""
    for k in range(len(starts)):
        size, total, parts, squares, first = 0, 0.0, 0.0, 0.0, 0.0
        weighted = weighted_parts = 0.0
        for i in range(ends[k] - begins[k]):
            bound = bindings[begins[k] + i]
            value = values[starts[k] + i]
            if value == value and (bound == variable or (variable == MATCH and bound >= 0)):
                if abs(value) > LARGEST:
                    size = MOST + 1
                    break
                first = value if size == 0 else first
                value -= first
                total, parts, squares = total + value, parts + abs(value), squares + value * value
                weighted, weighted_parts = weighted + size * value, weighted_parts + size * abs(value)
                size += 1
        if 2 <= size <= MOST:
            low[k], high[k] = _between(function, size, first, total, parts, squares, weighted, weighted_parts)


@kernel
def rough_whole(function, size, starts, values, low, high):  # type: ignore[no-untyped-def]
    """As ``rough``, of as many rows from each start on, all of which count; NaN also where one is unknown or large."""
    if not 2 <= size <= MOST:
        return
    for k in range(len(starts)):
        first = values[starts[k]]
        total, parts, squares, weighted, weighted_parts = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(1, size):
            value = values[starts[k] + i] - first
            if not abs(value) <= LARGEST:
                parts = np.inf
                break
            total, parts, squares = total + value, parts + abs(value), squares + value * value
        if function == SLOPE and parts <= LARGEST:
            for i in range(1, size):
                value = values[starts[k] + i] - first
                weighted, weighted_parts = weighted + i * value, weighted_parts + i * abs(value)
        if abs(first) + parts <= LARGEST:
            low[k], high[k] = _between(function, size, first, total, parts, squares, weighted, weighted_parts)


@kernel
def wide_enough(size, starts, values, least, passing):  # type: ignore[no-untyped-def]
    """The starts from which the spread of so many rows may reach ``least``, which is above 0; gives their number.

    From one start to the next the sums go along; ``seen`` are the squares that went into them.
    """
    number, left, total, squares, seen, origin = 0, 0, 0.0, 0.0, 0.0, 0.0
    needed, share = least * least * size * (1.0 - _ROUGH), 1.0 / size
    for k in range(len(starts)):
        start = starts[k]
        if left > 0 and start == starts[k - 1] + 1:
            gone, more = values[start - 1] - origin, values[start + size - 1] - origin
            total, squares = total + (more - gone), squares + (more * more - gone * gone)
            seen, left = seen + more * more, left - 1
        else:
            origin, total, squares, left = values[start], 0.0, 0.0, _AGAIN
            for i in range(1, size):
                value = values[start + i] - origin
                total, squares = total + value, squares + value * value
            seen = squares
        passing[number] = start
        number += not squares - total * total * share + seen * _ROUGH + _TINY < needed  # an unknown value refuses none
    return number


@kernel
def _between(  # type: ignore[no-untyped-def]
    function, size, first, total, parts, squares, weighted, weighted_parts
):
    """The bounds of a statistic of values whose differences to the first one come to this."""
    if function == STD:
        square, error = (squares - total * total / size) / size, squares / size * _ROUGH + _TINY
        return math.sqrt(max(square - error, 0.0)), math.sqrt(max(square + error, 0.0))
    if function == SLOPE:
        scale = 6.0 / (size * (size * size - 1.0))
        near = (2.0 * weighted - (size - 1.0) * total) * scale
        error = (2.0 * weighted_parts + (size - 1.0) * parts) * scale * _ROUGH + _TINY
    else:
        near, error = first + total / size, (abs(first) + parts / size) * _ROUGH + _TINY
    return near - error, near + error
