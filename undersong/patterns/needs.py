"""What rows a match needs, in whatever order they stand: a sequence without them has no match in any shuffle."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from undersong.patterns.engine.plan import plan
from undersong.patterns.expressions import (
    Both,
    Call,
    Compare,
    Either,
    Field,
    Member,
    Node,
    Number,
    Text,
    Variable,
    Window,
    replaced,
    walk,
)  # fmt: skip
from undersong.patterns.fields import FIELDS, FIELDS_SAID, ROW_FUNCTIONS
from undersong.patterns.kinds import single_variable
from undersong.patterns.measures import MATCH
from undersong.patterns.rules import PatternRule
from undersong.patterns.sequences import ANY

_LARGE = 500  # parts of a column or measure from which on it is not written out: it may stand for anything
_SIDES = (">", ">=", "<", "<=")
_ONE_ROW = ("first", "last", "min", "max", "mean")  # they are on one side of a limit only where one of their rows is


class Need(NamedTuple):
    """At least ``number`` read rows of the sequence must meet ``condition``, which no shuffle changes."""

    number: int
    condition: Node


class _Asked(NamedTuple):
    """At least ``number`` rows that are bound to ``variable`` must meet ``condition`` (None: nothing more)."""

    number: int
    variable: str
    condition: Node | None


@lru_cache(maxsize=256)
def needs(rule: PatternRule) -> tuple[Need, ...]:
    """What the pattern and ``having`` ask of single rows, as far as it is about their words alone, or places alone.

    A shuffle moves words over places, so it changes neither how many messages say something nor how many places are of
    a kind. Conditions about both, or about other rows, are left out: they may hold somewhere.
    """
    columns = _written_out(rule.trees.columns)
    parts = [tuple(_parts(_inserted(tree, columns))) for tree in rule.trees.define]
    found: list[Need] = []
    for mask, number in plan(rule).outlook.needs:
        found += _each(number, [parts[index] for index in range(len(parts)) if mask >> index & 1])
    for asked in _asked(rule):
        bound = dict(zip(rule.names, parts, strict=True)) | {ANY: ()}
        more = () if asked.condition is None else tuple(_parts(_inserted(asked.condition, columns)))
        meant = parts if asked.variable == MATCH else [bound[asked.variable]]
        found += _each(asked.number, [(*own, *more) for own in meant])
    return tuple(dict.fromkeys(found))


def _each(number: int, meant: Sequence[Sequence[Node]]) -> Iterator[Need]:
    """The needs of rows that meet all parts of any of these conditions: those about words, and those about places."""
    for of_words in (True, False):
        chosen = [tuple(part for part in each if _is(part, of_words)) for each in meant]
        if chosen and all(chosen):
            yield Need(number, Either(tuple(map(Both, chosen))))


def _asked(rule: PatternRule) -> Iterator[_Asked]:
    """What ``having`` asks of single rows of a match, measures written out."""
    measures = _written_out(rule.trees.measures)
    for tree in rule.trees.having:
        for part in _parts(_inserted(tree, measures)):
            if isinstance(part, Compare) and isinstance(part.left, Call) and isinstance(part.right, Number | Text):
                yield from _of_rows(part, part.left)


def _of_rows(part: Compare, call: Call) -> Iterator[_Asked]:
    """``last(A.x) > 1`` asks for one such row of A; ``count(A.x > 1) >= 2`` for two."""
    value = call.arguments[0]
    if call.name == "count" and part.operator in (">", ">=") and isinstance(part.right, Number):
        least = math.ceil(part.right.value) if part.operator == ">=" else math.floor(part.right.value) + 1
        if least > 0:
            yield _Asked(least, single_variable(call), None if isinstance(value, Variable) else _of_one(value))
    elif call.name in _ONE_ROW and (part.operator in _SIDES or (part.operator == "=" and call.name != "mean")):
        yield _Asked(1, single_variable(call), Compare(part.operator, _of_one(value), part.right))


def _of_one(tree: Node) -> Node:
    """What is said of a variable's rows, of one row."""
    for part in walk(tree):
        if isinstance(part, Member):
            tree = replaced(tree, part, Field(part.name))
    return tree


def _parts(tree: Node) -> Iterator[Node]:
    """What must hold where a condition does."""
    if isinstance(tree, Both):
        for part in tree.parts:
            yield from _parts(part)
    else:
        yield tree


def _is(part: Node, of_words: bool) -> bool:
    """Whether a condition is about words alone, or about places alone."""
    leaves = [node for node in walk(part) if isinstance(node, Field | Window) or _row_function(node)]
    return bool(leaves) and all(_of_words(leaf) is of_words for leaf in leaves)


def _of_words(leaf: Node) -> bool | None:
    if isinstance(leaf, Call):
        return True
    known = isinstance(leaf, Field) and leaf.name in FIELDS
    return leaf.name in FIELDS_SAID if known and isinstance(leaf, Field) else None


def _row_function(node: Node) -> bool:
    return isinstance(node, Call) and node.name in ROW_FUNCTIONS


def _written_out(columns: Mapping[str, Node]) -> dict[str, Node]:
    """Columns by name, each in terms of fields; those that would be very large are left out."""
    found: dict[str, Node] = {}
    for name, tree in columns.items():
        whole = _inserted(tree, found)
        if len(walk(whole)) <= _LARGE:
            found[name] = whole
    return found


def _inserted(tree: Node, columns: Mapping[str, Node]) -> Node:
    for name, column in columns.items():
        tree = replaced(tree, Field(name), column)
    return tree
