"""The expressions of pattern files, from text to a small typed tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from lark import Lark


Scope = Literal["partition", "agent", "others"]
SCOPES: tuple[Scope, ...] = ("partition", "agent", "others")
_GRAMMARS = Path(__file__).parent
EXPRESSIONS = "grammar.lark"
_LONGEST = 4000  # characters of one expression
_DEEPEST = 50  # groups within groups; keeps the tree far from Python's recursion limit


class ExpressionError(ValueError):
    """An expression cannot be read or makes no sense; the text says why, without the file."""


class _Node(msgspec.Struct, frozen=True, cache_hash=True, tag=True):
    """A part of an expression: immutable, compared by value, with a position-free hash; stored with its class name."""


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

    from undersong.patterns.language.expression_builder import Builder

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
