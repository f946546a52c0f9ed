"""Necessary conditions of a match, and the family of tests: the sequences whose rows meet them in some order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import (
    Arithmetic,
    Both,
    Call,
    Compare,
    Either,
    Field,
    Node,
    Number,
    Text,
    Variable,
    Window,
    replaced,
    walk,
)
from undersong.patterns.language.fields import FIELDS, MESSAGE_FIELDS, ROW_FUNCTIONS, Context, row_leaf
from undersong.patterns.language.logic import Evaluate, compile_tree
from undersong.patterns.language.types import single_variable
from undersong.patterns.language.values import MATCH
from undersong.patterns.reference.partitions import Entry, PartitionGroup, Timeline, groups
from undersong.patterns.reference.search import filtered
from undersong.patterns.vectorized.aggregates import value_in_row
from undersong.patterns.vectorized.exact_sum import I, NotVectorizable
from undersong.patterns.vectorized.rule_plan import plan
from undersong.patterns.vectorized.run import TableSearch
from undersong.patterns.vectorized.start_filter import shortest
from undersong.patterns.vectorized.vector_logic import B

_LARGE = 500  # parts of a column or measure from which on it is not written out: it may stand for anything
Counts = npt.NDArray[np.int64]
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


def conditions_written_out(rule: PatternRule) -> tuple[dict[str, Node], dict[str, Node]]:
    """The columns of a rule, and its conditions by variable, each in terms of fields."""
    columns = written_out(rule.trees.columns)
    return columns, {name: inserted(tree, columns) for name, tree in zip(rule.names, rule.trees.define, strict=True)}


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
        of_row = Compare(part.operator, value_in_row(part.left.arguments[0]), part.right)
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
    return RowKind(single_variable(term), None if isinstance(value, Variable) else value_in_row(value))


def _once(term: Node) -> RowKind | None:
    """What a count counts that is taken as 1 at most."""
    if not isinstance(term, Call) or term.name != "least" or len(term.arguments) != 2 or _ONCE not in term.arguments:
        return None
    return next((kind for each in term.arguments if (kind := _count(each))), None)


def family_size(rules: Iterable[PatternRule], timelines: Sequence[Timeline], run: TableSearch) -> int:
    """How many (sequence, rule) pairs there are in which the rule could match, as ``possible_pairs`` counts them.

    ``run`` holds the rows of the timelines as arrays.
    """
    return sum(_pairs_of(rule, timelines, run) for rule in rules)


def _pairs_of(rule: PatternRule, timelines: Sequence[Timeline], run: TableSearch) -> int:
    try:
        return possible_pairs_in_table(rule, run)
    except (NotVectorizable, FloatingPointError):
        return possible_pairs(rule, timelines)


def possible_pairs(rule: PatternRule, timelines: Iterable[Timeline]) -> int:
    """In how many sequences the rule could match at all, in some order of its messages.

    As many read rows as its shortest match takes, and as many of each kind as ``necessary_conditions`` says; at least
    one of them directed where the sequence has a target.
    """
    least = np.array([shortest(rule.program), *(need.number for need in necessary_conditions(rule))])
    asked = [compile_tree(need.condition, row_leaf) for need in necessary_conditions(rule)]
    by = rule.file.partition_by
    possible_counts = (
        _possible(group, least, asked) for each in timelines for group in groups(filtered(rule, each), by)
    )
    return sum(possible_counts)


def _possible(group: PartitionGroup, least: Counts, asked: Sequence[Evaluate]) -> int:
    public = _counts(group.public, asked)
    directed = [_counts(entries, asked) for entries in group.directed.values()]
    enough = [public >= least, *(public + own >= least for own in directed if own[0] > 0)]
    return sum(bool(each.all()) for each in enough)


def _counts(entries: Iterable[Entry], asked: Sequence[Evaluate]) -> Counts:
    """How many rows were read, and how many of them meet each condition."""
    contexts = [Context(entry.row, {}) for entry in entries if entry.read]
    return np.array([len(contexts), *(sum(holds(each) is True for each in contexts) for holds in asked)])


def possible_pairs_in_table(rule: PatternRule, run: TableSearch) -> int:
    """In how many sequences the rule could match at all, in some order, over arrays; raises NotVectorizable."""
    by, where = rule.file.partition_by, rule.trees.where
    vectors, layout = run.vectors(where), run.layout(where, by)
    order, read = layout.order, vectors.table.read
    wanted = [(shortest(rule.program), read)]
    wanted += [(need.number, read & vectors.holds(need.condition)) for need in necessary_conditions(rule)]
    if "target" not in by:
        enough = [_count_between(rows[order.rows], order.bounds) >= least for least, rows in wanted]
        return int(np.count_nonzero(np.logical_and.reduce(enough)))
    parts = layout.parts
    alone, with_own = [], [_count_between(read[order.rows][parts.chain], parts.bounds) > 0]
    for least, rows in wanted:
        public = _count_between(rows[order.rows][parts.public], parts.public_before[order.bounds])
        own = _count_between(rows[order.rows][parts.chain], parts.bounds)
        alone.append(public >= least)
        with_own.append(public[parts.groups] + own >= least)
    return sum(int(np.count_nonzero(np.logical_and.reduce(enough))) for enough in (alone, with_own))


def _count_between(rows: B, bounds: I) -> I:
    """How many of the rows lie between each bound and the next."""
    return np.diff(np.concatenate([[0], np.cumsum(rows)])[bounds])
