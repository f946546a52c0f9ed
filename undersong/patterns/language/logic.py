"""A typed tree → a plain Python function, with three-valued logic: unknown (None) is neither true nor false.

A comparison with unknown is unknown. ``and`` is false as soon as one part is false, ``or`` true as soon as one part is
true, whatever else is unknown; ``not`` unknown is unknown. A condition holds only where it is true.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from undersong.patterns.language.expressions import (  # fmt: skip
    Arithmetic,
    Both,
    Call,
    Compare,
    Either,
    IsNull,
    Node,
    Not,
    Number,
    OneOf,
    Text,
    Truth,
)

Value: TypeAlias = float | str | bool | None
Evaluate: TypeAlias = Callable[[Any], Value]
Leaf: TypeAlias = Callable[[Node], Evaluate]

_LARGEST = sys.float_info.max
_LOWEST = -_LARGEST
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[Any, Any], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


def compile_tree(node: Node, leaf: Leaf) -> Evaluate:
    """A function of one context value; ``leaf`` gives the functions of what depends on the context."""
    builder = _BUILDERS.get(type(node))
    if isinstance(node, Call) and node.name in FUNCTIONS:
        builder = _function
    if builder is None:
        return leaf(node)
    return builder(node, leaf)


def _constant(node: Number | Text | Truth, _leaf: Leaf) -> Evaluate:
    value = node.value
    return lambda _context: value


def _not(node: Not, leaf: Leaf) -> Evaluate:
    part = compile_tree(node.part, leaf)

    def evaluate(context: Any) -> Value:
        value = part(context)
        return None if value is None else not value

    return evaluate


def _both(node: Both, leaf: Leaf) -> Evaluate:
    return _joined([compile_tree(part, leaf) for part in node.parts], decisive=False)


def _either(node: Either, leaf: Leaf) -> Evaluate:
    return _joined([compile_tree(part, leaf) for part in node.parts], decisive=True)


def _joined(parts: list[Evaluate], *, decisive: bool) -> Evaluate:
    def evaluate(context: Any) -> Value:
        unknown = False
        for part in parts:
            value = part(context)
            if value is None:
                unknown = True
            elif value is decisive:
                return decisive
        return None if unknown else not decisive

    return evaluate


def _compare(node: Compare, leaf: Leaf) -> Evaluate:
    left, holds = compile_tree(node.left, leaf), COMPARE[node.operator]
    if isinstance(node.right, Number):
        return _compare_with(left, holds, node.right.value)
    right = compile_tree(node.right, leaf)

    def evaluate(context: Any) -> Value:
        one, other = left(context), right(context)
        return None if one is None or other is None else holds(one, other)

    return evaluate


def _compare_with(left: Evaluate, holds: Callable[[Any, Any], bool], constant: float) -> Evaluate:
    def evaluate(context: Any) -> Value:
        one = left(context)
        return None if one is None else holds(one, constant)

    return evaluate


def _one_of(node: OneOf, leaf: Leaf) -> Evaluate:
    part, options = compile_tree(node.part, leaf), frozenset(node.options)

    def evaluate(context: Any) -> Value:
        value = part(context)
        return None if value is None else value in options

    return evaluate


def _is_null(node: IsNull, leaf: Leaf) -> Evaluate:
    part = compile_tree(node.part, leaf)
    return lambda context: part(context) is None


def _arithmetic(node: Arithmetic, leaf: Leaf) -> Evaluate:
    left, right, apply = compile_tree(node.left, leaf), compile_tree(node.right, leaf), _ARITHMETIC[node.operator]
    if node.operator == "/" and not (isinstance(node.right, Number) and node.right.value):
        return _quotient(left, right)
    if isinstance(node.right, Number):
        return _with_constant(left, apply, node.right.value)

    def evaluate(context: Any) -> Value:
        one, other = left(context), right(context)
        if one is None or other is None:
            return None
        value = apply(one, other)
        return value if _LOWEST <= value <= _LARGEST else None  # as finite(), in the innermost loop

    return evaluate


def _with_constant(left: Evaluate, apply: Callable[[Any, Any], float], constant: float) -> Evaluate:
    def evaluate(context: Any) -> Value:
        one = left(context)
        if one is None:
            return None
        value = apply(one, constant)
        return value if _LOWEST <= value <= _LARGEST else None

    return evaluate


def finite(value: float) -> float | None:
    """A result that a float64 can hold; None, unknown as a division by zero is, for one that is too large."""
    return value if _LOWEST <= value <= _LARGEST else None


def _quotient(left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(context: Any) -> Value:
        one, other = left(context), right(context)
        if one is None or other is None or other == 0:
            return None
        value: float = operator.truediv(one, other)
        return value if _LOWEST <= value <= _LARGEST else None

    return evaluate


def _function(node: Call, leaf: Leaf) -> Evaluate:
    parts = [compile_tree(part, leaf) for part in node.arguments]
    if node.name == "coalesce":
        return _coalesce(parts)
    apply = FUNCTIONS[node.name]

    def evaluate(context: Any) -> Value:
        values = [part(context) for part in parts]
        return None if None in values else apply(values)

    return evaluate


def _coalesce(parts: list[Evaluate]) -> Evaluate:
    def evaluate(context: Any) -> Value:
        for part in parts:
            value = part(context)
            if value is not None:
                return value
        return None

    return evaluate


# functions of values: each takes its arguments, all known; coalesce alone looks at unknown ones
FUNCTIONS: dict[str, Callable[[list[Any]], Value]] = {
    "abs": lambda values: abs(values[0]),
    "clip": lambda values: min(1.0, max(0.0, values[0])),
    "coalesce": lambda values: values[0],
    "least": min,
    "greatest": max,
}
_BUILDERS: dict[type, Callable[[Any, Leaf], Evaluate]] = {
    Number: _constant, Text: _constant, Truth: _constant, Not: _not, Both: _both, Either: _either, Compare: _compare,
    OneOf: _one_of, IsNull: _is_null, Arithmetic: _arithmetic,
}  # fmt: skip
