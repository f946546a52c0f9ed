"""What ``having`` asks of single rows of a match: rows that every match of the rule binds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from undersong.patterns.expressions import (
    Arithmetic,
    Call,
    Compare,
    Field,
    Member,
    Node,
    Number,
    Text,
    Variable,
    replaced,
    walk,
)  # fmt: skip
from undersong.patterns.kinds import single_variable
from undersong.patterns.measures import MATCH

_SIDES = (">", ">=", "<", "<=")
_ONE_ROW = ("first", "last", "min", "max", "mean")  # they are on one side of a limit only where one of their rows is
_ONCE = Number(1.0)
_MANY = 8  # kinds of rows from which on it is not written out which of them must be there


class RowKind(NamedTuple):
    """Rows that are bound to ``variable`` and meet ``condition`` (None: any of them)."""

    variable: str
    condition: Node | None


class RowRequirement(NamedTuple):
    """At least ``number`` rows, each of any of these kinds."""

    number: int
    kinds: tuple[RowKind, ...]


def row_requirements(part: Node) -> Iterator[RowRequirement]:
    """What must be there where this condition on a match holds; nothing where it is not understood."""
    if not isinstance(part, Compare):
        return
    least = _least(part)
    if least > 0:
        yield from _counted(part.left, least)
    if isinstance(part.left, Call) and isinstance(part.right, Number | Text) and _of_one_row(part.left, part.operator):
        of_row = Compare(part.operator, _of_one(part.left.arguments[0]), part.right)
        yield RowRequirement(1, (RowKind(single_variable(part.left), of_row),))


def _of_one_row(call: Call, operator: str) -> bool:
    """Whether one row of the match meets what the aggregate does: ``last(A.x) > 1`` asks for such a row of A."""
    return call.name in _ONE_ROW and (operator in _SIDES or (operator == "=" and call.name != "mean"))


def _least(part: Compare) -> int:
    """The least whole number that the left side must reach; 0 where there is none."""
    if not isinstance(part.right, Number) or part.operator not in (">", ">="):
        return 0
    return math.ceil(part.right.value) if part.operator == ">=" else math.floor(part.right.value) + 1


def _counted(left: Node, least: int) -> Iterator[RowRequirement]:
    """``count(A) + count(B) >= 3`` asks for three rows; with each count taken ``least(…, 1)`` for rows of three kinds.

    At least k of n kinds are there exactly where one of any n - k + 1 of them is.
    """
    terms = _terms(left)
    counts = [kind for term in terms if (kind := _count(term))]
    if len(counts) == len(terms):
        yield RowRequirement(math.ceil(least / _twice(counts)), tuple(counts))
        return
    once = [kind for term in terms if (kind := _once(term))]
    if len(once) == len(terms) <= _MANY and least <= len(terms):
        yield from (RowRequirement(1, chosen) for chosen in combinations(once, len(once) - least + 1))


def _twice(counts: Sequence[RowKind]) -> int:
    """How often a row may be counted: once where each count is of another variable, for a row is bound to one."""
    variables = {kind.variable for kind in counts}
    return 1 if len(variables) == len(counts) and (MATCH not in variables or len(counts) == 1) else len(counts)


def _terms(tree: Node) -> Sequence[Node]:
    if isinstance(tree, Arithmetic) and tree.operator == "+":
        return *_terms(tree.left), *_terms(tree.right)
    return (tree,)


def _count(term: Node) -> RowKind | None:
    """What a count counts."""
    if not isinstance(term, Call) or term.name != "count":
        return None
    value = term.arguments[0]
    return RowKind(single_variable(term), None if isinstance(value, Variable) else _of_one(value))


def _once(term: Node) -> RowKind | None:
    """What a count counts that is taken as 1 at most."""
    if not isinstance(term, Call) or term.name != "least" or len(term.arguments) != 2 or _ONCE not in term.arguments:
        return None
    return next((kind for each in term.arguments if (kind := _count(each))), None)


def _of_one(tree: Node) -> Node:
    """What is said of a variable's rows, of one row."""
    for part in walk(tree):
        if isinstance(part, Member):
            tree = replaced(tree, part, Field(part.name))
    return tree
