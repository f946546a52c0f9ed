"""Many tests at once: the Benjamini-Hochberg value of each, and how many tests there were."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.fields import Context, row_leaf
from undersong.patterns.language.logic import Evaluate, compile_tree
from undersong.patterns.reference.partitions import Entry, PartitionGroup, Timeline, groups
from undersong.patterns.reference.search import filtered
from undersong.patterns.significance.necessary_conditions import necessary_conditions
from undersong.patterns.vectorized.exact_sum import I, NotVectorizable
from undersong.patterns.vectorized.row_source import table_of
from undersong.patterns.vectorized.run import TableSearch
from undersong.patterns.vectorized.start_filter import shortest
from undersong.patterns.vectorized.vector_logic import B, Vectors

Counts = npt.NDArray[np.int64]


def false_discovery(values: Sequence[float], family: int) -> list[float]:
    """The q of each p-value among ``family`` tests; those that are not given count as 1.

    q is the smallest share of false discoveries to expect if this test and all with a smaller p-value are believed:
    the least p * family / rank over this rank and those above it (Benjamini and Hochberg 1995). Raises ValueError where
    more values than tests are given.
    """
    if len(values) > family:
        raise ValueError(f"{len(values)} p-values for {family} tests")
    order = sorted(range(len(values)), key=lambda index: values[index], reverse=True)
    q_values = [1.0] * len(values)
    least = 1.0
    for rank, index in zip(range(len(values), 0, -1), order, strict=True):
        least = min(least, values[index] * family / rank)
        q_values[index] = least
    return q_values


def family_size(rules: Iterable[PatternRule], timelines: Sequence[Timeline], run: TableSearch | None = None) -> int:
    """How many (sequence, rule) pairs there are in which the rule could match, as ``possible_pairs`` counts them.

    ``run`` holds the rows of the timelines as arrays, where they are there already.
    """
    if run is None:
        table = table_of(timelines)
        run = TableSearch(table, Vectors(table.source))
    return sum(_counted(rule, timelines, run) for rule in rules)


def _counted(rule: PatternRule, timelines: Sequence[Timeline], run: TableSearch) -> int:
    try:
        return possible_pairs_in_table(rule, run)
    except (NotVectorizable, FloatingPointError):
        return possible_pairs(rule, timelines)


def possible_pairs(rule: PatternRule, timelines: Iterable[Timeline]) -> int:
    """In how many sequences the rule could match at all, in some order of what was said there.

    As many read rows as its shortest match takes, and as many of each kind as ``necessary_conditions`` says; at least
    one of them
    directed where the sequence has a target.
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
    """In how many sequences the rule could match at all, in some order; raises Unsuited where arrays do not do."""
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
