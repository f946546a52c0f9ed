"""Exact statistics over the rows of each match: sums of two float64, and quotients that are rounded once.

Values from 2**-20 to 16 are multiples of 2**-72, and so is 0; so a sum of up to 4096 of them, and of them
times their index, is exact as a pair of float64 values. Squares are not; there the error is bounded, and where the
bound leaves two results possible the match is marked as ``hard`` and left to whole numbers.
"""

from __future__ import annotations

import math

import numpy as np

from undersong.jit import kernel
from undersong.patterns.engine.paths import MATCH

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
