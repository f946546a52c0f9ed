"""The expressions of pattern files, from text to a small typed tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import accumulate
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from lark import Token, Transformer, v_args

from undersong.datafiles.yaml_loader import did_you_mean

if TYPE_CHECKING:
    from lark import Lark


Scope = Literal["partition", "agent", "others"]
SCOPES: tuple[Scope, ...] = ("partition", "agent", "others")
_GRAMMARS = Path(__file__).parent
EXPRESSIONS = "grammar.lark"
_HOURS = {"day": 24.0, "hour": 1.0}
_LONGEST = 4000  # characters of one expression
_MOST_ROWS = 1_000_000_000  # of one window: more than any history has, and safe in 64 bits
_DEEPEST = 50  # groups within groups; keeps the tree far from Python's recursion limit


class ExpressionError(ValueError):
    """An expression cannot be read or makes no sense; the text says why, without the file."""


class _Node(msgspec.Struct, frozen=True, cache_hash=True):
    """A part of an expression: immutable, compared by value, with a position-free hash."""


class Number(_Node, frozen=True):
    """A number as written, in float64."""

    value: float


class Text(_Node, frozen=True):
    """A quoted text."""

    value: str


class Truth(_Node, frozen=True):
    """``true`` or ``false``."""

    value: bool


class Field(_Node, frozen=True):
    """A row field, a column or an earlier measure, by its name."""

    name: str


class Member(_Node, frozen=True):
    """``VARIABLE.field``: a field of the rows that a match binds to a variable."""

    variable: str
    name: str


class Variable(_Node, frozen=True):
    """The rows that a match binds to a variable."""

    name: str


class Not(_Node, frozen=True):
    """True where its part is false."""

    part: Node


class Both(_Node, frozen=True):
    """``and``: true where every part is."""

    parts: tuple[Node, ...]


class Either(_Node, frozen=True):
    """``or``: true where any part is."""

    parts: tuple[Node, ...]


class Compare(_Node, frozen=True):
    """Two numbers or two texts compared."""

    operator: str
    left: Node
    right: Node


class OneOf(_Node, frozen=True):
    """``x in (…)``."""

    part: Node
    options: tuple[float | str | bool, ...]


class IsNull(_Node, frozen=True):
    """``x is null``: never itself unknown."""

    part: Node


class Arithmetic(_Node, frozen=True):
    """``+ - * /`` on numbers; a division by zero, and a result that no float64 holds, is unknown."""

    operator: str
    left: Node
    right: Node


class Call(_Node, frozen=True):
    """A function of values, or in measures an aggregate over the rows of a match."""

    name: str
    arguments: tuple[Node, ...]


class Window(_Node, frozen=True):
    """An aggregate over past rows: the last ``rows``, or the last ``hours``, or (both None) all so far."""

    function: str
    value: Node
    rows: int | None = None
    hours: float | None = None
    where: Node | None = None
    lag: int = 0
    over: Scope = "partition"
    at_least: int | None = None


Node: TypeAlias = (
    Number | Text | Truth | Field | Member | Variable | Not | Both | Either | Compare | OneOf | IsNull | Arithmetic
    | Call | Window
)  # fmt: skip


@lru_cache(maxsize=4096)  # variants of a rule share most of their expressions; trees cannot be changed
def parse(text: str) -> Node:
    """The tree of an expression; raises ExpressionError with the place where reading stopped."""
    tree: Node = parse_with(EXPRESSIONS, text)
    return tree


def parse_with(grammar: str, text: str) -> Any:
    """``text`` under one of the grammar files beside this module: an expression's own tree, else the parse tree."""
    from lark.exceptions import UnexpectedInput

    if len(text) > _LONGEST:
        raise ExpressionError(f"is longer than {_LONGEST} characters")
    if max(accumulate(_nesting(text), initial=0)) > _DEEPEST:
        raise ExpressionError(f"has more than {_DEEPEST} groups within each other")
    try:
        return _parser(grammar).parse(text)
    except UnexpectedInput as error:
        stopped = -1 if getattr(error, "token", None) == "" else error.pos_in_stream  # an empty token is the text's end
        column = len(text) if stopped is None or stopped < 0 else stopped
        rest = text[column : column + 20]
        place = f"at '{rest}' (character {column + 1})" if rest.strip() else "at its end"
        raise ExpressionError(f"cannot read '{text}' {place}") from error


def _nesting(text: str) -> Iterator[int]:
    """+1 where a group opens (or ``not`` and ``-`` repeat, which nest as well), -1 where one closes."""
    words = re.findall(r"[()]|\bnot\b|-", text)
    return (-1 if word == ")" else 1 for word in words)


@cache
def _parser(grammar: str) -> Lark:
    from lark import Lark

    builder = Builder() if grammar == EXPRESSIONS else None  # it builds while the text is read
    return Lark((_GRAMMARS / grammar).read_text(encoding="utf-8"), parser="lalr", transformer=builder)


def children(node: Node) -> list[Node]:
    """The parts of a node, in order."""
    values: list[Any] = [getattr(node, name) for name in node.__struct_fields__]
    parts: list[Any] = []
    for value in values:
        parts += value if isinstance(value, tuple) else [value]
    return [part for part in parts if isinstance(part, _Node)]  # type: ignore[misc]


def walk(node: Node) -> list[Node]:
    """The node and everything below it."""
    nodes, open_nodes = [], [node]
    while open_nodes:
        nodes.append(open_nodes.pop())
        open_nodes.extend(children(nodes[-1]))
    return nodes


def replaced(node: Node, old: Node, new: Node) -> Node:
    """The tree with every ``old`` part replaced by ``new``."""
    if node == old:
        return new
    values = {name: _replaced(getattr(node, name), old, new) for name in node.__struct_fields__}
    return type(node)(**values)


def _replaced(value: Any, old: Node, new: Node) -> Any:
    if isinstance(value, tuple):
        return tuple(_replaced(each, old, new) for each in value)
    return replaced(value, old, new) if isinstance(value, Node) else value


def window(name: str, arguments: list[Any]) -> Window:
    """A window from a call's arguments: one value, then clauses such as ``last 5 rows`` as (name, value) pairs."""
    values = [argument for argument in arguments if isinstance(argument, _Node)]
    clauses = [argument for argument in arguments if not isinstance(argument, _Node)]
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
    return Window(name, values[0], rows=rows, hours=hours, **options)  # type: ignore[arg-type]


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
