"""What rows a match needs, in whatever order they stand: a sequence without them has no match in any shuffle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from undersong.patterns.engine.plan import plan
from undersong.patterns.expressions import Both, Call, Either, Field, Node, Window, replaced, walk
from undersong.patterns.fields import FIELDS, MESSAGE_FIELDS, ROW_FUNCTIONS
from undersong.patterns.having import RowKind, RowRequirement, row_requirements
from undersong.patterns.measures import MATCH
from undersong.patterns.rules import PatternRule

_LARGE = 500  # parts of a column or measure from which on it is not written out: it may stand for anything
Parts = tuple[Node, ...]  # conditions that must all hold


class NecessaryCondition(NamedTuple):
    """At least ``number`` read rows of the sequence must meet ``condition``, which no shuffle changes."""

    number: int
    condition: Node


@lru_cache(maxsize=256)
def necessary_conditions(rule: PatternRule) -> tuple[NecessaryCondition, ...]:
    """What the pattern and ``having`` ask of single rows, as far as it is about their words alone, or places alone.

    A shuffle moves words over places, so it changes neither how many messages say something nor how many places are of
    a kind. Conditions about both, or about other rows, are left out: they may hold somewhere.
    """
    columns = written_out(rule.trees.columns)
    parts = [tuple(_parts(inserted(tree, columns))) for tree in rule.trees.define]
    conditions: list[NecessaryCondition] = []
    for mask, number in plan(rule).requirements.needs:
        conditions += _conditions_of(number, [parts[index] for index in range(len(parts)) if mask >> index & 1])
    bound = dict(zip(rule.names, parts, strict=True))
    for wanted in _of_having(rule):
        conditions += _conditions_of(
            wanted.number, [each for kind in wanted.kinds for each in _row_conditions(kind, bound, columns)]
        )
    return tuple(dict.fromkeys(conditions))


def _row_conditions(kind: RowKind, bound: Mapping[str, Parts], columns: Mapping[str, Node]) -> list[Parts]:
    """What a row of this kind meets: the condition of its variable, or of any variable, and what is asked beyond."""
    more = () if kind.condition is None else tuple(_parts(inserted(kind.condition, columns)))
    own = [*bound.values()] if kind.variable == MATCH else [bound.get(kind.variable, ())]  # rows passed over meet none
    return [(*each, *more) for each in own]


def _conditions_of(number: int, row_conditions: Sequence[Parts]) -> Iterator[NecessaryCondition]:
    """The needs of rows that meet all parts of any of these conditions: those about words, and those about places."""
    for of_words in (True, False):
        chosen = [tuple(part for part in each if _is(part, of_words)) for each in row_conditions]
        if chosen and all(chosen):
            yield NecessaryCondition(number, Either(tuple(map(Both, chosen))))


def _of_having(rule: PatternRule) -> Iterator[RowRequirement]:
    """What ``having`` asks of single rows."""
    return (each for tree in rule.trees.having for each in requirements_of(rule, tree))


def requirements_of(rule: PatternRule, condition: Node) -> Iterator[RowRequirement]:
    """What one condition of ``having`` asks of single rows, measures written out."""
    for part in _parts(measured(rule, condition)):
        yield from row_requirements(part)


def measured(rule: PatternRule, condition: Node) -> Node:
    """A condition of ``having`` with its measures written out, but for those that would be very large."""
    return inserted(condition, written_out(rule.trees.measures))


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
    is_field = isinstance(leaf, Field) and leaf.name in FIELDS
    return leaf.name in MESSAGE_FIELDS if is_field and isinstance(leaf, Field) else None


def _row_function(node: Node) -> bool:
    return isinstance(node, Call) and node.name in ROW_FUNCTIONS


def written_out(columns: Mapping[str, Node]) -> dict[str, Node]:
    """Columns by name, each in terms of fields; those that would be very large are left out."""
    expanded: dict[str, Node] = {}
    for name, tree in columns.items():
        whole = inserted(tree, expanded)
        if len(walk(whole)) <= _LARGE:
            expanded[name] = whole
    return expanded


def inserted(tree: Node, columns: Mapping[str, Node]) -> Node:
    for name, column in columns.items():
        tree = replaced(tree, Field(name), column)
    return tree
