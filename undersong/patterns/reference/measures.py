"""Measures of a match: aggregates over the rows that it binds, and conditions on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from undersong.patterns.language import types
from undersong.patterns.language.expressions import Call, Field, Node, Variable
from undersong.patterns.language.fields import Context, row_leaf
from undersong.patterns.language.logic import Evaluate, Value, compile_tree
from undersong.patterns.reference import windows

MATCH = "MATCH"  # all rows bound to a named variable; ANY are the rows passed over


class MatchRows(NamedTuple):
    """The rows of a match per variable, in order, and the measures computed so far."""

    rows: Mapping[str, Sequence[Context]]
    measures: dict[str, Value]


def compile_measure(tree: Node) -> Evaluate:
    """A function of ``MatchRows``."""
    return compile_tree(tree, _leaf)


def measure(rows: Mapping[str, Sequence[Context]], compiled: Mapping[str, Evaluate]) -> dict[str, Value]:
    """Every measure in the order written; a later one may use an earlier one."""
    bound = MatchRows(rows, {})
    for name, evaluate in compiled.items():
        bound.measures[name] = evaluate(bound)
    return bound.measures


def _leaf(node: Node) -> Evaluate:
    if isinstance(node, Call):
        return _aggregate(node)
    if isinstance(node, Field):
        name = node.name
        return lambda bound: bound.measures[name]
    raise TypeError(f"{node} has no value for a match")


def _aggregate(node: Call) -> Evaluate:
    argument, function = node.arguments[0], node.name
    if isinstance(argument, Variable):
        counted = argument.name
        return lambda bound: float(len(bound.rows[counted]))
    variable = types.single_variable(node)
    value = compile_tree(argument, row_leaf)
    if function in ("first", "last"):
        return lambda bound: _end(bound.rows[variable], value, 0 if function == "first" else -1)

    def evaluate(bound: MatchRows) -> Value:
        values = [number for row in bound.rows[variable] if (number := value(row)) is not None]
        return windows.over(function, values)

    return evaluate


def _end(rows: Sequence[Context], value: Evaluate, index: int) -> Value:
    return value(rows[index]) if rows else None
