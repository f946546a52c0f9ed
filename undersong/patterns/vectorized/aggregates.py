"""Measures of many matches at once, and the conditions on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import proxy

import numpy as np

from undersong.patterns.language import types, windows
from undersong.patterns.language.expressions import Call, Compare, Field, Member, Node, Number, Variable, replaced, walk
from undersong.patterns.language.fields import Kind
from undersong.patterns.language.logic import Value
from undersong.patterns.language.row_pattern import ANY
from undersong.patterns.language.values import MATCH
from undersong.patterns.vectorized import statistics
from undersong.patterns.vectorized.environments import FrameVectors
from undersong.patterns.vectorized.exact_sum import F, I, NotVectorizable
from undersong.patterns.vectorized.jit import machine
from undersong.patterns.vectorized.paths import MATCH as BOUND
from undersong.patterns.vectorized.paths import MatchPaths, bound, some
from undersong.patterns.vectorized.vector_logic import B, Codes, Vectors

_ROUGHLY = ("mean", "std", "slope")
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

    def surely_fails(self, tree: Node) -> B | None:
        """Where a statistic is so far on the other side of a bound that no rounding matters; None: not of that kind.

        It is worked out with ordinary sums, a fraction of what exact ones cost.
        """
        if not machine(int(self.own.paths.sizes.sum())) or not isinstance(tree, Compare):
            return None
        left, right = tree.left, tree.right
        if not isinstance(right, Number) or not isinstance(left, Call) or left.name not in _ROUGHLY:
            return None
        low, high = self.own.rough(left)
        refused = {">": high < right.value, ">=": high < right.value, "<": low > right.value, "<=": low > right.value}
        return refused.get(tree.operator)


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
        if node.name not in statistics.FUNCTIONS:
            raise NotVectorizable(f"{node.name}() needs the values one by one")
        values = self._values(node.name, value)
        results = np.full(len(paths.starts), 0.0 if node.name in ("sum", "count") else np.nan)
        hard = np.zeros(len(paths.starts), dtype=np.bool_)
        work = statistics.statistic.at(int(paths.sizes.sum()) * _DEAR)
        work(statistics.FUNCTIONS[node.name], variable, *paths, values, results, hard)
        for k in np.flatnonzero(hard).tolist():
            own = self._bound(k, variable, values)
            result = own[-1] if node.name == "last" else windows.over(node.name, own[~np.isnan(own)].tolist())
            results[k] = np.nan if result is None else result
        return results

    def rough(self, node: Call) -> tuple[F, F]:
        """Between what a statistic of each match surely lies; NaN where that is not known."""
        argument, paths = node.arguments[0], self.paths
        variable, values = self._selector(types.single_variable(node)), self._values(node.name, value_in_row(argument))
        low, high = (np.full(len(paths.starts), np.nan) for _ in range(2))
        size, function = self._alike(variable), statistics.FUNCTIONS[node.name]
        if size:
            statistics.rough_whole.at(size * len(low))(function, size, paths.starts, values, low, high)
        else:
            statistics.rough.at(int(paths.sizes.sum()))(function, variable, *paths, values, low, high)
        return low, high

    def _alike(self, variable: int) -> int:
        """How many rows every match takes where all share their bindings, of this variable throughout; else 0."""
        paths = self.paths
        if not len(paths.first) or (paths.first != paths.first[0]).any() or (paths.last != paths.last[0]).any():
            return 0
        bindings = paths.bindings[paths.first[0] : paths.last[0]]
        fits = bindings >= 0 if variable == BOUND else bindings == variable
        return len(bindings) if fits.all() else 0

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
            return BOUND
        return -1 if name == ANY else self.names.index(name)

    def _bound(self, k: int, variable: int, values: F) -> F:
        bindings = self.paths.bindings[self.paths.first[k] : self.paths.last[k]]
        fits = bindings >= 0 if variable == BOUND else bindings == variable
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
