"""Aggregates over many matches at once, exact, and the conditions on them.

A sum is two float64, and a quotient is rounded once. Values from 2**-20 to 16 are multiples of 2**-72, and so is 0; so
a sum of up to 4096 of them, and of them times their index, is exact as a pair of float64 values. Squares are not; there
the error is bounded, and where the bound leaves two results possible the match is marked as ``hard`` and left to whole
numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any
from weakref import proxy

import numpy as np

from undersong.patterns.language import types, windows
from undersong.patterns.language.expressions import Call, Field, Member, Node, Variable, replaced, walk
from undersong.patterns.language.fields import Kind
from undersong.patterns.language.logic import Value
from undersong.patterns.language.row_pattern import ANY
from undersong.patterns.language.values import MATCH
from undersong.patterns.vectorized.environments import FrameVectors
from undersong.patterns.vectorized.exact_sum import F, I, NotVectorizable
from undersong.patterns.vectorized.jit import kernel
from undersong.patterns.vectorized.layout import ALL_BOUND, MatchPaths, bound, ranges, some
from undersong.patterns.vectorized.vector_logic import B, Codes, Vectors

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
    return first, second, (lost == 0.0) & (product == left) & (error == 0.0)


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
        size = bound_rows(variable, values, starts[k], bindings, first[k], last[k], function >= FIRST, rows)
        if size > MOST and function != FIRST:
            hard[k] = True
        elif function == SUM:
            output[k] = average(values, starts[k], rows, size, False)
        elif size:
            output[k], sure = result(function, values, starts[k], rows, size)
            hard[k] = not sure


@kernel
def bound_rows(variable, values, start, bindings, first, last, unknown, rows):  # type: ignore[no-untyped-def]
    """How many rows of a match are bound to a variable; their places in it go to ``rows``, as many as it holds.

    Rows with an unknown value count only where ``unknown`` says so. A value whose sums may not be exact makes the
    number too large to go on.
    """
    size = 0
    for i in range(last - first):
        bound = bindings[first + i]
        if bound == variable or (variable == ALL_BOUND and bound >= 0):
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


@statistic.otherwise
def _statistics(function, variable, starts, first, last, bindings, values, output, hard):  # type: ignore[no-untyped-def]
    """The same for all matches at once: the n-th value of each match in one step, in the same order of operations."""
    flat = ranges(first, last)
    owner = np.repeat(np.arange(len(starts)), last - first)
    of_row = values[flat + np.repeat(starts - first, last - first)]
    counted = bindings[flat] >= 0 if variable == ALL_BOUND else bindings[flat] == variable
    if function < FIRST:
        counted &= of_row == of_row
    gathered, owner = of_row[counted], owner[counted]
    size = np.bincount(owner, minlength=len(starts))
    if function < FIRST:
        size[owner[(gathered != 0.0) & ~((np.abs(gathered) >= _LEAST) & (np.abs(gathered) <= LARGEST))]] += MOST
    hard |= (size > MOST) & (function != FIRST)
    begin = np.searchsorted(owner, np.arange(len(starts)))
    if function == SUM:
        output[~hard] = 0.0
    left = np.flatnonzero((size > (function == SLOPE)) & ~hard)
    left = left[np.argsort(-size[left], kind="stable")]
    if len(left):
        output[left], sure = _results(function, gathered, begin[left], size[left])
        hard[left] = ~sure


def _results(function: int, values: F, begin: I, size: I) -> tuple[F, B]:
    """A function over some values from each place of ``begin`` on; ``size``, of each how many, descends."""
    sure = np.ones(len(size), dtype=np.bool_)
    if function in (FIRST, LAST):
        return values[begin if function == FIRST else begin + size - 1], sure
    if function in (MIN, MAX):
        best = values[begin]
        for these, value in _in_turn(values, begin, size):
            better = value <= best[these] if function == MIN else value >= best[these]
            best[these] = np.where(better, value, best[these])
        return best, sure
    n, weight, (high, low) = size.astype(np.float64), -(size - 1.0), np.zeros((2, len(size)))
    if function == STD:
        return _spreads(n, values, begin, size)
    for these, value in _in_turn(values, begin, size):
        more, rest = value, np.zeros(len(value))
        if function == SLOPE:
            more, rest = add(value, rest, -values[begin[these]], rest)
            product, error = two_product(more, weight[these])
            more, rest = product, error + rest * weight[these]
            weight += 2.0
        high[these], low[these] = add(high[these], low[these], more, rest)
    if function == SLOPE:
        return _trends(n, high, low)
    if function == MEAN:
        high, low, _ = divide(high, low, n)
    return high + low, sure


def _in_turn(values: F, begin: I, size: I) -> Iterator[tuple[slice, F]]:
    """The first value of each, then the second of those that have one, and so on."""
    for i in range(int(size[0])):
        these = slice(int(np.searchsorted(-size, -i)))
        yield these, values[begin[these] + i]


def _spreads(n: F, values: F, begin: I, size: I) -> tuple[F, B]:
    """As ``spread``."""
    sum_high, sum_low, square_high, square_low = np.zeros((4, len(size)))
    for these, value in _in_turn(values, begin, size):
        high, low = add(value, np.zeros(len(value)), -values[begin[these]], np.zeros(len(value)))
        sum_high[these], sum_low[these] = add(sum_high[these], sum_low[these], high, low)
        product, error = two_product(high, high)
        square_high[these], square_low[these] = add(
            square_high[these], square_low[these], product, error + 2.0 * high * low
        )
    high, low = two_product(square_high, n)
    low = low + square_low * n
    product, error = two_product(sum_high, sum_high)
    high, low = add(high, low, -product, -(error + 2.0 * sum_high * sum_low))
    high, low, _ = divide(high, low, n * n)
    sure = rounding_certain(high, low, (n + 32) * _LOST * square_high / n) | (square_high == 0.0)
    return np.where(square_high == 0.0, 0.0, np.sqrt(np.maximum(high + low, 0.0))), sure


def _trends(n: F, total_high: F, total_low: F) -> tuple[F, B]:
    """As ``trend``, from the weighted sums of differences from the first value."""
    high, low = two_product(total_high, 6.0)
    high, low, exact = divide(high, low + total_low * 6.0, n * (n * n - 1.0))
    sure = exact | rounding_certain(high, low, np.abs(low) * 2.0**-48) | (total_high == 0.0)
    return np.where(total_high == 0.0, 0.0, high + low), sure


_ROUGH = 2.0**-34  # more than ordinary sums of MOST squares lose, of the sum of the squares
_TINY = 2.0**-960  # more than falls below the least float64
_AGAIN = 64  # starts after which sums that went along are made anew


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


_DEAR = 8  # steps of other loops that a row of an exact statistic takes, at least
Measured = dict[str, Any]  # per measure an array: numbers with NaN, or a pair of where it holds and where it fails


class MatchVectors(Vectors):
    """Expressions over matches. ``rows`` evaluates over the rows that the starts of the paths are places in."""

    def __init__(
        self, names: tuple[str, ...], paths: MatchPaths, rows: FrameVectors, measures: Mapping[str, Node]
    ) -> None:
        self.own = _MatchLeaves(self, names, paths, rows, measures)
        super().__init__(self.own)

    def only(self, selected: B) -> MatchVectors:
        """Some of the matches, with all that is known of them; the rows are the same."""
        subset = self.on(some(self.own.paths, selected), self.own.rows)
        subset._known = {key: values[selected] if np.ndim(values) else values for key, values in self._known.items()}
        return subset

    def on(self, paths: MatchPaths, rows: FrameVectors) -> MatchVectors:
        """The same matches on other rows, with all that is known of them."""
        moved = MatchVectors(self.own.names, paths, rows, self.own.measures)
        moved._known = self._known
        return moved


class _MatchLeaves:
    def __init__(
        self,
        vectors: Vectors,
        names: tuple[str, ...],
        paths: MatchPaths,
        rows: FrameVectors,
        measures: Mapping[str, Node],
    ) -> None:
        self.vectors: Vectors = proxy(vectors)
        self.names, self.paths, self.rows, self.measures = names, paths, rows, measures

    @property
    def codes(self) -> Mapping[str, int]:
        return self.rows.leaves.codes

    def kind(self, node: Node) -> Kind:
        if isinstance(node, Field):
            return self.vectors.kind(self.measures[node.name])
        if isinstance(node, Call) and node.name in ("first", "last"):
            return self.rows.kind(value_in_row(node.arguments[0]))
        return "number"

    def number(self, node: Node) -> F:
        if isinstance(node, Field):
            return self.vectors.number(self.measures[node.name])
        if not isinstance(node, Call):
            raise TypeError(f"{node} has no value for a match")
        return self._statistic(node)

    def text(self, node: Node) -> Codes:
        raise NotVectorizable(f"{node} is a text of a match")

    def truth(self, node: Node, wanted: bool) -> B:
        if not isinstance(node, Field):
            raise NotVectorizable(f"{node} is a condition of a single row")
        return self.vectors.is_(self.measures[node.name], wanted)  # type: ignore[no-any-return]

    def _statistic(self, node: Call) -> F:
        argument, paths = node.arguments[0], self.paths
        if isinstance(argument, Variable):
            return self._counted(argument.name)
        variable, value = self._selector(types.single_variable(node)), value_in_row(argument)
        if node.name not in FUNCTIONS:
            raise NotVectorizable(f"{node.name}() needs the values one by one")
        values = self._values(node.name, value)
        results = np.full(len(paths.starts), 0.0 if node.name in ("sum", "count") else np.nan)
        hard = np.zeros(len(paths.starts), dtype=np.bool_)
        work = statistic.at(int(paths.sizes.sum()) * _DEAR)
        work(FUNCTIONS[node.name], variable, *paths, values, results, hard)
        for k in np.flatnonzero(hard).tolist():
            own = self._bound(k, variable, values)
            result = own[-1] if node.name == "last" else windows.over(node.name, own[~np.isnan(own)].tolist())
            results[k] = np.nan if result is None else result
        return results

    def _values(self, function: str, value: Node) -> F:
        if self.rows.kind(value) == "boolean":
            if function != "count":
                raise NotVectorizable(f"{function}() of a condition")
            values = np.where(self.rows.holds(value), 1.0, np.where(self.rows.fails(value), 0.0, np.nan))
        elif self.rows.kind(value) == "text":
            raise NotVectorizable(f"{function}() of a text")
        else:
            values = self.rows.number(value)
        return np.ascontiguousarray(np.broadcast_to(values, len(self.rows.rows)))

    def _counted(self, name: str) -> F:
        return bound(self.paths, self._selector(name)).astype(np.float64)

    def _selector(self, name: str) -> int:
        if name == MATCH:
            return ALL_BOUND
        return -1 if name == ANY else self.names.index(name)

    def _bound(self, k: int, variable: int, values: F) -> F:
        bindings = self.paths.bindings[self.paths.first[k] : self.paths.last[k]]
        fits = bindings >= 0 if variable == ALL_BOUND else bindings == variable
        return np.asarray(values[self.paths.starts[k] + np.flatnonzero(fits)])


def measured(vectors: MatchVectors, measures: Mapping[str, Node], size: int) -> Measured:
    """Every measure of every match."""
    computed: Measured = {}
    for name, tree in measures.items():
        if vectors.kind(tree) == "number":
            computed[name] = np.broadcast_to(vectors.number(tree), size)
        elif vectors.kind(tree) == "boolean":
            computed[name] = np.broadcast_to(vectors.holds(tree), size), np.broadcast_to(vectors.fails(tree), size)
        else:
            raise NotVectorizable(f"measure {name} is a text")
    return computed


def chosen(computed: Measured, selected: I | B) -> Measured:
    """The measures of some matches."""
    return {
        name: (values[0][selected], values[1][selected]) if isinstance(values, tuple) else values[selected]
        for name, values in computed.items()
    }


def joined(parts: list[Measured]) -> Measured:
    """The measures of several lots of matches, one after the other."""
    return {
        name: tuple(np.concatenate([part[name][i] for part in parts]) for i in range(2))
        if isinstance(parts[0][name], tuple)
        else np.concatenate([part[name] for part in parts])
        for name in parts[0]
    }


def value_of(values: Any, k: int) -> Value:
    """A measure of one match, None where it is unknown."""
    if isinstance(values, tuple):
        return True if values[0][k] else False if values[1][k] else None
    number = float(values[k])
    return None if number != number else number


def value_in_row(tree: Node) -> Node:
    """The value of a single row that an aggregate gathers: its members are fields there."""
    for part in walk(tree):
        if isinstance(part, Member):
            tree = replaced(tree, part, Field(part.name))
    return tree
