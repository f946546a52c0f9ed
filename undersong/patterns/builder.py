"""Parse trees of the expression grammar → typed nodes; lark calls one method per rule."""

from __future__ import annotations

from math import isinf
from typing import Any

from lark import Token, Transformer, v_args

from undersong.patterns.expressions import (
    SCOPES,
    Arithmetic,
    Both,
    Call,
    Compare,
    Either,
    ExpressionError,
    Field,
    IsNull,
    Member,
    Node,
    Not,
    Number,
    OneOf,
    Text,
    Truth,
    Variable,
    Window,
    window,
)  # fmt: skip
from undersong.rulebook import did_you_mean

Clause = tuple[str, Any]


@v_args(inline=True)
class Builder(Transformer[Token, Node]):
    """Methods are named as the rules of grammar.lark."""

    def start(self, node: Node) -> Node:
        return node

    def number(self, token: str) -> Node:
        if isinf(float(token)):
            raise ExpressionError(f"{token[:20]}… is too large a number")
        return Number(float(token))

    def text(self, token: str) -> Node:
        return Text(str(token)[1:-1])

    def true(self) -> Node:
        return Truth(True)

    def false(self) -> Node:
        return Truth(False)

    def field(self, name: str) -> Node:
        return Field(str(name))

    def member(self, variable: str, name: str) -> Node:
        return Member(str(variable), str(name))

    def variable(self, name: str) -> Node:
        return Variable(str(name))

    def disjunction(self, *parts: Node) -> Node:
        return Either(parts)

    def conjunction(self, *parts: Node) -> Node:
        return Both(parts)

    def not_(self, part: Node) -> Node:
        return Not(part)

    def compare(self, left: Node, operator: str, right: Node) -> Node:
        return Compare("=" if operator == "==" else str(operator), left, right)

    def one_of(self, part: Node, *options: Number | Text | Truth) -> Node:
        return OneOf(part, tuple(option.value for option in options))

    def none_of(self, part: Node, *options: Number | Text | Truth) -> Node:
        return Not(self.one_of(part, *options))

    def is_null(self, part: Node) -> Node:
        return IsNull(part)

    def is_known(self, part: Node) -> Node:
        return Not(IsNull(part))

    def arithmetic(self, left: Node, operator: str, right: Node) -> Node:
        return Arithmetic(str(operator), left, right)

    def negate(self, part: Node) -> Node:
        return Arithmetic("-", Number(0.0), part)

    def last_rows(self, _last: str, size: str, unit: str | None = None) -> Clause:
        name = (unit or "row").removesuffix("s")
        return "window", (name, _whole(size, f"last {size}") if name == "row" else float(size))

    def so_far(self) -> Clause:
        return "window", ("all", 0.0)

    def where(self, condition: Node) -> Clause:
        return "where", condition

    def lag(self, size: str) -> Clause:
        return "lag", _whole(size, f"lag {size}")

    def over(self, scope: str) -> Clause:
        if scope not in SCOPES:
            raise ExpressionError(f"unknown rows 'over {scope}'; {did_you_mean(scope, list(SCOPES))}")
        return "over", str(scope)

    def at_least(self, size: str) -> Clause:
        return "at_least", _whole(size, f"at least {size}")

    def call(self, name: str, *arguments: Any) -> Call | Window | Compare:
        if name == "absent":  # how often it happened is 0
            return Compare("=", self.call("count", *arguments), Number(0.0))
        if any(isinstance(argument, tuple) for argument in arguments):
            return window(str(name), list(arguments))
        return Call(str(name), tuple(arguments))


def _whole(size: str, clause: str) -> int:
    if not size.isdigit():
        raise ExpressionError(f"'{clause}' is no number of rows")
    return int(size)
