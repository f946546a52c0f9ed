"""How many sequences of a table are long enough for a rule, as ``discovery.pairs`` counts them."""

from __future__ import annotations

import numpy as np

from undersong.patterns.engine.run import Run
from undersong.patterns.engine.sums import I
from undersong.patterns.engine.vectors import B
from undersong.patterns.possible import shortest
from undersong.patterns.rules import PatternRule


def pairs(rule: PatternRule, run: Run) -> int:
    """In how many sequences the rule could match at all."""
    least, by = shortest(rule.program), rule.file.partition_by
    table, layout = run.vectors(rule.trees.where).table, run.layout(rule.trees.where, by)
    read = table.read[layout.order.rows]
    if "target" not in by:
        return int(np.count_nonzero(_each(read, layout.order.bounds) >= least))
    parts = layout.parts
    public = _each(read[parts.public], parts.public_before[layout.order.bounds])
    own = _each(read[parts.chain], parts.bounds)
    long_enough = (own > 0) & (public[parts.groups] + own >= least)
    return int(np.count_nonzero(public >= least) + np.count_nonzero(long_enough))


def _each(read: B, bounds: I) -> I:
    """How many read rows lie between each bound and the next."""
    return np.diff(np.concatenate([[0], np.cumsum(read)])[bounds])
