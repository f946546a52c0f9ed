"""Columns and measures as functions: the values that a rule derives of a row, and of a match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from undersong.patterns.language import types, windows
from undersong.patterns.language.expressions import Call, Field, Node, Variable, Window, walk
from undersong.patterns.language.fields import Context, of_row_alone, row_leaf
from undersong.patterns.language.logic import Evaluate, Value, compile_tree

MATCH = "MATCH"  # all rows bound to a named variable; ANY are the rows passed over


class WindowColumn(NamedTuple):
    """A window and what it needs per row: the value it gathers, and whether a row counts."""

    key: str
    window: Window
    value: Evaluate
    counts: Evaluate | None
    of_row_only: bool


class Column(NamedTuple):
    """A named column: its windows first, then its expression over them."""

    name: str
    windows: tuple[WindowColumn, ...]
    value: Evaluate


def compile_columns(trees: Mapping[str, Node]) -> tuple[Column, ...]:
    """The columns in the order written; a later one may use an earlier one."""
    return tuple(_column(name, tree) for name, tree in trees.items())


def _column(name: str, tree: Node) -> Column:
    window_columns: dict[Window, WindowColumn] = {}
    for node in walk(tree):
        if isinstance(node, Window) and node not in window_columns:
            window_columns[node] = _window_column(f"{name}#{len(window_columns)}", node)

    def leaf(node: Node) -> Evaluate:
        if not isinstance(node, Window):
            return row_leaf(node)
        key = window_columns[node].key
        return lambda context: context.derived[key]

    return Column(name, tuple(window_columns.values()), compile_tree(tree, leaf))


def _window_column(key: str, window: Window) -> WindowColumn:
    value = compile_tree(window.value, row_leaf)
    counts = None if window.where is None else compile_tree(window.where, row_leaf)
    local = of_row_alone(window.value) and (window.where is None or of_row_alone(window.where))
    return WindowColumn(key, window, value, counts, local)


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
