"""Three-valued logic: a typed tree → a plain Python function, where unknown (None) is neither true nor false.

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
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip


def compile_tree(node: Node, leaf: Leaf) -> Evaluate:
    """A function of one context value; ``leaf`` gives the functions of what depends on the context."""
    if isinstance(node, Number | Text | Truth):
        value = node.value
        return lambda _context: value
    if isinstance(node, Both | Either):
        return _joined([compile_tree(part, leaf) for part in node.parts], decisive=isinstance(node, Either))
    if isinstance(node, Compare | Arithmetic):
        return _binary(compile_tree(node.left, leaf), compile_tree(node.right, leaf), _BINARY[node.operator])
    if isinstance(node, Not):
        return _unary(compile_tree(node.part, leaf), operator.not_)
    if isinstance(node, OneOf):
        return _unary(compile_tree(node.part, leaf), frozenset(node.options).__contains__)
    if isinstance(node, IsNull):
        part = compile_tree(node.part, leaf)
        return lambda context: part(context) is None
    if isinstance(node, Call) and node.name in FUNCTIONS:
        return _function(node.name, [compile_tree(part, leaf) for part in node.arguments])
    return leaf(node)


def finite(value: float) -> float | None:
    """A result that a float64 can hold; None, unknown as a division by zero is, for one that is too large."""
    return value if -_LARGEST <= value <= _LARGEST else None


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


def _unary(part: Evaluate, apply: Callable[[Any], Value]) -> Evaluate:
    def evaluate(context: Any) -> Value:
        value = part(context)
        return None if value is None else apply(value)

    return evaluate


def _binary(left: Evaluate, right: Evaluate, apply: Callable[[Any, Any], Value]) -> Evaluate:
    def evaluate(context: Any) -> Value:
        one, other = left(context), right(context)
        return None if one is None or other is None else apply(one, other)

    return evaluate


def _function(name: str, parts: list[Evaluate]) -> Evaluate:
    if name == "coalesce":
        return lambda context: next((value for part in parts if (value := part(context)) is not None), None)
    apply = FUNCTIONS[name]

    def evaluate(context: Any) -> Value:
        values = [part(context) for part in parts]
        return None if None in values else apply(values)

    return evaluate


_BINARY: dict[str, Callable[[Any, Any], Value]] = {
    **COMPARE,
    "+": lambda one, other: finite(one + other),
    "-": lambda one, other: finite(one - other),
    "*": lambda one, other: finite(one * other),
    "/": lambda one, other: finite(one / other) if other else None,
}
# functions of values: each takes its arguments, all known; coalesce alone looks at unknown ones
FUNCTIONS: dict[str, Callable[[list[Any]], Value]] = {
    "abs": lambda values: abs(values[0]),
    "clip": lambda values: min(1.0, max(0.0, values[0])),
    "coalesce": lambda values: values[0],
    "least": min,
    "greatest": max,
}
