"""Between what statistics surely lie, by ordinary sums: a fraction of what exact ones cost."""

from __future__ import annotations

import math

import numpy as np

from undersong.jit import kernel
from undersong.patterns.engine.paths import MATCH
from undersong.patterns.engine.statistics import LARGEST, MOST, SLOPE, STD

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
