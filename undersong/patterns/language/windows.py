"""Sliding-window aggregates: push a value at the new end, drop one at the old end, read the result.

Sums are exact: every float64 is an integer times a power of 2, so sums of values, of squares and of index times value
are integers, and a result is rounded once. It depends on the values in the window alone, whatever came and went.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from undersong.patterns.language.logic import finite

USUAL = 64  # the scale of a new tally: from 2**-11 on a float64 is a multiple of 2**-64, as scores are
UNITS = 2.0**USUAL
LARGE = 2.0**900  # below it a value times ``UNITS`` is finite, and exact


class Aggregate(Protocol):
    """A window's running result."""

    def push(self, value: Any) -> None:
        """Take a known value at the new end."""
        ...

    def drop(self) -> None:
        """Forget the oldest value."""
        ...

    def result(self) -> float | None:
        """The result over the values now in the window; None where it is not defined."""
        ...


class RunningMoments(msgspec.Struct, frozen=True, gc=False):
    """Exact sums that only grow, without their values: each step is a new value, which can be stored and compared.

    ``summed`` and ``weighted`` (by place) are in units of 2**-scale, ``squares`` in units of 2**(-2 * scale).
    """

    size: int
    summed: int
    squares: int
    weighted: int
    scale: int

    def __deepcopy__(self, _memo: object) -> RunningMoments:
        return self

    def plus(self, value: float, *, moments: bool = False) -> RunningMoments:
        """With one more value; ``moments`` are only summed where ``std`` or ``slope`` is asked for."""
        if self.scale == USUAL and -LARGE < value < LARGE:
            units = value * UNITS
            exact = int(units)
            if exact == units:
                return self._with(exact, moments)
        return self._finely(value, moments)

    def _finely(self, value: float, moments: bool) -> RunningMoments:
        """As ``plus``, for a value of any size."""
        exact, unit = float(value).as_integer_ratio()
        bits = unit.bit_length() - 1
        if bits > self.scale:
            return self.finer(bits)._finely(value, moments)
        return self._with(exact << (self.scale - bits), moments)

    def _with(self, exact: int, moments: bool) -> RunningMoments:
        if not moments:
            return RunningMoments(self.size + 1, self.summed + exact, 0, 0, self.scale)
        weighted = self.weighted + self.size * exact
        return RunningMoments(self.size + 1, self.summed + exact, self.squares + exact * exact, weighted, self.scale)

    def finer(self, scale: int) -> RunningMoments:
        """The same in smaller units."""
        more = scale - self.scale
        return RunningMoments(self.size, self.summed << more, self.squares << 2 * more, self.weighted << more, scale)

    def less(self, part: RunningMoments) -> RunningMoments:
        """Without the values of another tally, all of which are in this one; for ``slope`` they are its first ones."""
        scale = max(self.scale, part.scale)
        whole, part = self.finer(scale), part.finer(scale)
        size, summed = whole.size - part.size, whole.summed - part.summed
        weighted = whole.weighted - part.weighted - part.size * summed
        return RunningMoments(size, summed, whole.squares - part.squares, weighted, scale)

    def result(self, function: str) -> float | None:
        """``mean``, ``std``, ``sum``, ``count`` or ``slope``; None where it is not known or too large for a float64."""
        n = self.size
        try:
            if function == "mean":
                return self.summed / (n << self.scale) if n else None
            if function in ("sum", "count"):
                return self.summed / (1 << self.scale)
            if n < 2 and (n == 0 or function == "slope"):
                return None
            if function == "std":
                return math.sqrt((n * self.squares - self.summed * self.summed) / (n * n << 2 * self.scale))
            return 6 * (2 * self.weighted - (n - 1) * self.summed) / (n * (n * n - 1) << self.scale)
        except OverflowError:
            return None


EMPTY = RunningMoments(0, 0, 0, 0, USUAL)


class Sums:
    """``mean``, ``std`` (population), ``sum``, ``count`` and ``slope`` (least squares): differences of running sums."""

    def __init__(self, function: str) -> None:
        self.function, self.moments = function, function in ("std", "slope")
        self.running: deque[RunningMoments] = deque([EMPTY])

    def push(self, value: float) -> None:
        """Take a value; a condition counts 1 or 0."""
        self.running.append(self.running[-1].plus(value, moments=self.moments))

    def drop(self) -> None:
        """Forget the oldest value."""
        self.running.popleft()

    def result(self) -> float | None:
        """The chosen statistic; None over no value (count and sum: 0), and where it is too large for a float64."""
        return self.running[-1].less(self.running[0]).result(self.function)


class Extreme:
    """``min`` or ``max``: a queue of the values that can still become the extreme one."""

    def __init__(self, function: str) -> None:
        self.better: Callable[[float, float], bool] = (
            (lambda a, b: a < b) if function == "min" else (lambda a, b: a > b)
        )
        self.queue: deque[tuple[int, float]] = deque()
        self.pushed = self.dropped = 0

    def push(self, value: float) -> None:
        """Take a value."""
        while self.queue and not self.better(self.queue[-1][1], value):
            self.queue.pop()
        self.queue.append((self.pushed, value))
        self.pushed += 1

    def drop(self) -> None:
        """Forget the oldest value."""
        if self.queue[0][0] == self.dropped:
            self.queue.popleft()
        self.dropped += 1

    def result(self) -> float | None:
        """The extreme value."""
        return self.queue[0][1] if self.queue else None


class FirstLast:
    """``delta``: the newest value less the oldest; ``rank``: the newest among the others, 0 lowest to 1 highest."""

    def __init__(self, function: str) -> None:
        self.ranked = function == "rank"
        self.values: deque[float] = deque()
        self.ordered: list[float] = []

    def push(self, value: float) -> None:
        """Take a value."""
        self.values.append(value)
        if self.ranked:
            insort(self.ordered, value)

    def drop(self) -> None:
        """Forget the oldest value."""
        value = self.values.popleft()
        if self.ranked:
            del self.ordered[bisect_left(self.ordered, value)]

    def result(self) -> float | None:
        """Needs two values; ties share the middle of their places."""
        if len(self.values) < 2:
            return None
        newest = self.values[-1]
        if not self.ranked:
            return finite(newest - self.values[0])
        below, upto = bisect_left(self.ordered, newest), bisect_right(self.ordered, newest)
        return (below + upto - 1) / 2 / (len(self.ordered) - 1)


class Distinct:
    """``count_distinct``: how many different values."""

    def __init__(self, _function: str) -> None:
        self.values: deque[Any] = deque()
        self.counts: Counter[Any] = Counter()

    def push(self, value: Any) -> None:
        """Take a value."""
        self.values.append(value)
        self.counts[value] += 1

    def drop(self) -> None:
        """Forget the oldest value."""
        value = self.values.popleft()
        self.counts[value] -= 1
        if not self.counts[value]:
            del self.counts[value]

    def result(self) -> float | None:
        """The number of different values."""
        return float(len(self.counts))


class Smoothed:
    """``ewma`` with span N: each new value weighs 2 / (N + 1), and older ones fade; nothing is dropped."""

    def __init__(self, span: int) -> None:
        self.weight = 2 / (span + 1)
        self.mean: float | None = None

    def push(self, value: float) -> None:
        """Take a value."""
        self.mean = value if self.mean is None else self.mean + self.weight * (value - self.mean)

    def drop(self) -> None:
        """Older values fade, they are not dropped."""

    def result(self) -> float | None:
        """The smoothed value; unknown from where it has left the float64 numbers."""
        return None if self.mean is None else finite(self.mean)


def aggregate(function: str, span: int | None = None) -> Aggregate:
    """An empty window for one of the functions in ``types.WINDOWED``; ``span`` is for ewma."""
    if function == "ewma":
        return Smoothed(span or 1)
    kinds: dict[str, Callable[[str], Aggregate]] = {
        "min": Extreme, "max": Extreme, "delta": FirstLast, "rank": FirstLast, "count_distinct": Distinct,
    }  # fmt: skip
    return kinds.get(function, Sums)(function)


def over(function: str, values: list[Any]) -> float | None:
    """A function over a list of known values."""
    window = aggregate(function)
    for value in values:
        window.push(value)
    return window.result()
