"""The parts that the grammar of expressions names, as nodes; apart, as stored rules need no parser."""

from __future__ import annotations

from math import isinf
from typing import Any

from lark import Token, Transformer, v_args

from undersong.datafiles.yaml_loader import did_you_mean
from undersong.patterns.language.expressions import (
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
)  # fmt: skip

_HOURS = {"day": 24.0, "hour": 1.0}
_MOST_ROWS = 1_000_000_000  # of one window: more than any history has, and safe in 64 bits


def window(name: str, arguments: list[Any]) -> Window:
    """A window from a call's arguments: one value, then clauses such as ``last 5 rows`` as (name, value) pairs."""
    values = [argument for argument in arguments if isinstance(argument, Node)]
    clauses = [argument for argument in arguments if not isinstance(argument, Node)]
    names = [clause[0] for clause in clauses]
    if len(values) != 1:
        raise ExpressionError(f"{name}() over past rows takes one value, not {len(values)}")
    twice = next((clause for clause in names if names.count(clause) > 1), None)
    if twice:
        raise ExpressionError(f"'{twice}' stands twice in {name}()")
    options = dict(clauses)
    if "window" not in options:
        raise ExpressionError(f"{name}() needs a window: last N rows, last N days or so far")
    unit, size = options.pop("window")
    if unit == "row" and size < 1:
        raise ExpressionError(f"a window of {size} rows holds nothing")
    rows = int(size) if unit == "row" else None
    if max(rows or 0, options.get("lag", 0), options.get("at_least", 0)) > _MOST_ROWS:
        raise ExpressionError(f"a window of more than {_MOST_ROWS:,} rows is none; write so far")
    if rows is not None and name != "ewma" and options.get("at_least", 0) > rows:
        raise ExpressionError(f"a window of {rows} rows never holds {options['at_least']}")
    hours = size * _HOURS[unit] if unit in _HOURS else None
    return Window(name, values[0], rows=rows, hours=hours, **options)


Clause = tuple[str, Any]


@v_args(inline=True)
class Builder(Transformer[Token, Node]):
    """Methods are named as the rules and terminals of grammar.lark."""

    NAME = VARIABLE = SIGN = FACTOR = str
    field, variable, member, not_, is_null = Field, Variable, Member, Not, IsNull

    def start(self, node: Node) -> Node:
        return node

    def COMPARE(self, operator: str) -> str:  # noqa: N802 - the name of a terminal
        return "=" if operator == "==" else str(operator)

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

    def disjunction(self, *parts: Node) -> Node:
        return Either(parts)

    def conjunction(self, *parts: Node) -> Node:
        return Both(parts)

    def compare(self, left: Node, operator: str, right: Node) -> Node:
        return Compare(operator, left, right)

    def one_of(self, part: Node, *options: Number | Text | Truth) -> Node:
        return OneOf(part, tuple(option.value for option in options))

    def none_of(self, part: Node, *options: Number | Text | Truth) -> Node:
        return Not(self.one_of(part, *options))

    def is_known(self, part: Node) -> Node:
        return Not(IsNull(part))

    def arithmetic(self, left: Node, operator: str, right: Node) -> Node:
        return Arithmetic(operator, left, right)

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
        return "over", scope

    def at_least(self, size: str) -> Clause:
        return "at_least", _whole(size, f"at least {size}")

    def call(self, name: str, *arguments: Any) -> Call | Window | Compare:
        if name == "absent":  # how often it happened is 0
            return Compare("=", self.call("count", *arguments), Number(0.0))
        if any(isinstance(argument, tuple) for argument in arguments):
            return window(str(name), list(arguments))
        return Call(str(name), arguments)


def _whole(size: str, clause: str) -> int:
    if not size.isdigit():
        raise ExpressionError(f"'{clause}' is no number of rows")
    return int(size)
