"""Windows that grow one row at a time, with the values of ``columns.derive`` and without keeping what they need not."""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

from undersong.patterns.language.expressions import Window
from undersong.patterns.language.logic import Value, finite
from undersong.patterns.language.windows import EMPTY, LARGE, UNITS, USUAL, RunningMoments, aggregate
from undersong.patterns.reference.columns import Sliding

TALLIED = frozenset({"mean", "sum", "count", "std"})  # of these the rows to others are all less one's own
_GROWING = TALLIED | {"slope"}


class LiveWindow(Protocol):
    """A window at one row after the other."""

    def take(self, time: int | None, value: Value) -> None:
        """A past row with a known value."""
        ...

    def at(self, time: int | None) -> Value:
        """The result for a row at ``time``; times never fall."""
        ...


def live_window(window: Window) -> LiveWindow:
    """An empty window."""
    if is_tally(window):
        return _Moments(window) if moments(window) else _total(window)
    bounded = window.hours is not None or (window.rows is not None and window.function != "ewma")
    return Sliding(window) if bounded else _SoFar(window)


def _total(window: Window) -> LiveWindow:
    return _TrueCount() if window.function == "count" else _Total(window.function, needed(window))


def needed(window: Window) -> int:
    """How many values a window must hold to have a result."""
    if window.function == "count" and window.rows is None:
        return 0
    return window.at_least or window.rows or 1


def is_tally(window: Window) -> bool:
    """Whether all that a window needs is a running sum: so far, from the row before on."""
    return window.function in TALLIED and window.rows is None and window.hours is None and not window.lag


def moments(window: Window) -> bool:
    """Whether a running sum must also keep squares and weighted values."""
    return window.function in ("std", "slope")


class _TrueCount:
    """How many of all conditions so far held."""

    __slots__ = ("count",)

    def __init__(self, count: int = 0) -> None:
        self.count = count

    def __deepcopy__(self, _memo: object) -> _TrueCount:
        return _TrueCount(self.count)

    def take(self, _time: int | None, value: Value) -> None:
        """A past row on which the condition is known."""
        self.count += bool(value)

    def at(self, _time: int | None) -> Value:
        """The number of those that held."""
        return float(self.count)


class _Total:
    """``mean`` or ``sum`` of all rows so far: a running sum in units of 2**-64.

    ``fine`` is a Tally instead, from the first value on that is no whole number of these units.
    """

    __slots__ = ("fine", "function", "needed", "size", "summed")

    def __init__(
        self, function: str, needed: int, size: int = 0, summed: int = 0, fine: RunningMoments | None = None
    ) -> None:
        self.function, self.needed, self.size, self.summed, self.fine = function, needed, size, summed, fine

    def __deepcopy__(self, _memo: object) -> _Total:
        return _Total(self.function, self.needed, self.size, self.summed, self.fine)

    def take(self, _time: int | None, value: Value) -> None:
        """A past row with a known value."""
        units = value * UNITS  # type: ignore[operator]
        if self.fine is None and -LARGE < value < LARGE and (exact := int(units)) == units:  # type: ignore[operator]
            self.summed += exact
        else:
            so_far = self.fine or RunningMoments(self.size, self.summed, 0, 0, USUAL)
            self.fine = so_far.plus(value)  # type: ignore[arg-type]
        self.size += 1

    def at(self, _time: int | None) -> Value:
        """The result; unknown while too little is known."""
        if self.size < self.needed:
            return None
        if self.fine is not None:
            return self.fine.result(self.function)
        return (self.summed / self.size if self.function == "mean" else self.summed) / UNITS


class _Moments:
    """All rows so far, of which sums of values and of squares are needed."""

    __slots__ = ("function", "needed", "tally")

    def __init__(self, window: Window) -> None:
        self.function, self.needed, self.tally = window.function, needed(window), EMPTY

    def take(self, _time: int | None, value: Value) -> None:
        """A past row with a known value."""
        self.tally = self.tally.plus(value, moments=True)  # type: ignore[arg-type]

    def at(self, _time: int | None) -> Value:
        """The result; unknown while too little is known."""
        tally = self.tally
        return None if tally.size < self.needed else tally.result(self.function)


class _SoFar:
    """All rows so far (``ewma``: with weights that fade), ``lag`` of them waiting."""

    def __init__(self, window: Window) -> None:
        self.lag, self.needed, self.size = window.lag, needed(window), 0
        self.waiting: deque[Value] = deque()
        self.grown = _grown(window)

    def take(self, _time: int | None, value: Value) -> None:
        """A past row with a known value."""
        if self.lag:
            self.waiting.append(value)
            if len(self.waiting) <= self.lag:
                return
            value = self.waiting.popleft()
        self.grown.push(value)
        self.size += 1

    def at(self, _time: int | None) -> Value:
        """The result; unknown while too little is known."""
        return None if self.size < self.needed else self.grown.result()


class _Grown(Protocol):
    def push(self, value: Any) -> None: ...

    def result(self) -> float | None: ...


class _Sum:
    def __init__(self, window: Window) -> None:
        self.function, self.moments, self.tally = window.function, moments(window), EMPTY

    def push(self, value: Any) -> None:
        self.tally = self.tally.plus(value, moments=self.moments)

    def result(self) -> float | None:
        return self.tally.result(self.function)


class _Extreme:
    def __init__(self, window: Window) -> None:
        self.least = window.function == "min"
        self.value: float | None = None

    def push(self, value: Any) -> None:
        if self.value is None or (value <= self.value if self.least else value >= self.value):
            self.value = value

    def result(self) -> float | None:
        return self.value


class _Delta:
    def __init__(self, _window: Window) -> None:
        self.ends: tuple[float, ...] = ()

    def push(self, value: Any) -> None:
        self.ends = (*self.ends[:1], value)

    def result(self) -> float | None:
        return finite(self.ends[1] - self.ends[0]) if len(self.ends) > 1 else None


class _Distinct:
    def __init__(self, _window: Window) -> None:
        self.values: set[Any] = set()

    def push(self, value: Any) -> None:
        self.values.add(value)

    def result(self) -> float | None:
        return float(len(self.values))


def _grown(window: Window) -> _Grown:
    kinds: dict[str, type[_Extreme | _Delta | _Distinct]] = {
        "min": _Extreme, "max": _Extreme, "delta": _Delta, "count_distinct": _Distinct,
    }  # fmt: skip
    if window.function in _GROWING:
        return _Sum(window)
    kind = kinds.get(window.function)
    return kind(window) if kind else aggregate(window.function, window.rows)
