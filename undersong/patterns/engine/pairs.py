"""In how many sequences of a table a rule could match at all, as ``discovery.pairs`` counts them."""

from __future__ import annotations

import numpy as np

from undersong.patterns.engine.run import TableSearch
from undersong.patterns.engine.sums import I
from undersong.patterns.engine.vectors import B
from undersong.patterns.needs import necessary_conditions
from undersong.patterns.possible import shortest
from undersong.patterns.rules import PatternRule


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
