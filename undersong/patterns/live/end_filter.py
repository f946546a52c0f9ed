"""Whether a match of a rule can end with a new row: necessary conditions, for a look at some rows, not a search."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from undersong.models import Row
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.fields import Context, row_leaf
from undersong.patterns.language.logic import Evaluate, compile_tree
from undersong.patterns.language.row_pattern import at_end
from undersong.patterns.reference.partitions import Entry
from undersong.patterns.set_indicators import asked_of_findings
from undersong.patterns.vectorized.exact_sum import NotVectorizable
from undersong.patterns.vectorized.row_source import RowSource
from undersong.patterns.vectorized.rule_plan import plan
from undersong.patterns.vectorized.start_filter import MatchRequirements, nfa_of
from undersong.patterns.vectorized.vector_logic import Vectors

OUTSIDE = -1  # the mask of a row that the rule does not see
MANY = 8  # new rows of one timeline from which on they are not looked at one by one
TOGETHER = 20  # rows from which on arrays give the masks of a rule sooner than its functions row by row


class _EndConditions(NamedTuple):
    """``last``: the bits of which the last row of a match fits one (0: any row); ``wanted``: those that each match has.

    ``always``: a row of any kind can change what matches (``$``). ``asks``: findings set indicators that it asks for on
    earlier rows, so that these say nothing here. ``rows`` are what a row alone must say to fit each
    variable, None for anything.
    """

    rows: tuple[Evaluate | None, ...]
    last: int
    wanted: int
    always: bool
    asks: bool
    requirements: MatchRequirements


@lru_cache(maxsize=256)
def _end_conditions(rule: PatternRule) -> _EndConditions:
    nfa = nfa_of(rule.program)
    masks = [wanted for wanted, after in zip(nfa.wanted, nfa.after, strict=True) if -1 in after]
    last = 0
    for mask in masks:
        last |= mask
    wanted = sum(1 << index for index in rule.required)
    always, asks = at_end(rule.trees.part), bool(asked_of_findings(rule))
    trees = [condition.row for condition in plan(rule).conditions]
    rows = tuple(None if tree is None else compile_tree(tree, row_leaf) for tree in trees)
    return _EndConditions(rows, 0 if 0 in masks else last, wanted, always, asks, plan(rule).requirements)


def row_masks(rule: PatternRule, rows: Sequence[Row], vectors: Vectors | None) -> list[int]:
    """Of each row the bits of the variables that it fits on its own; OUTSIDE where the rule does not see it.

    ``vectors`` are expressions over the same rows; None: row by row.
    """
    if vectors is not None:
        try:
            return _masks_of_arrays(rule, rows, vectors)
        except (NotVectorizable, FloatingPointError):
            pass
    conditions = _end_conditions(rule).rows
    return [_mask(rule, conditions, row) for row in rows]


def vectors_over(rows: Sequence[Row]) -> Vectors | None:
    """Expressions over rows, where they are many enough to be quicker than row by row."""
    return Vectors(RowSource(rows)) if len(rows) >= TOGETHER else None


def _masks_of_arrays(rule: PatternRule, rows: Sequence[Row], vectors: Vectors) -> list[int]:
    bits = vectors.bits(tuple(condition.row for condition in plan(rule).conditions))
    masks: list[int] = np.broadcast_to(bits, len(rows)).tolist()
    inside = np.array([row.state == "scored" for row in rows], dtype=np.bool_)
    if rule.trees.where is not None:
        inside &= vectors.holds(rule.trees.where)
    for place in np.flatnonzero(~inside).tolist():
        masks[place] = OUTSIDE
    return masks


def _mask(rule: PatternRule, conditions: Sequence[Evaluate | None], row: Row) -> int:
    context = Context(row, {})
    if row.state != "scored" or (rule.where is not None and rule.where(context) is not True):
        return OUTSIDE
    return sum(1 << bit for bit, fits in enumerate(conditions) if fits is None or fits(context) is True)


class MatchEndFilter:
    """The read rows of one timeline as one rule sees them, row by row on their own.

    A row that comes last changes the matches of a rule only where one can end with it.
    """

    def __init__(self, rule: PatternRule) -> None:
        self._rule, self._conditions = rule, _end_conditions(rule)
        self._masks: list[int] = []
        self._seen = 0

    def append(self, entries: Sequence[Entry], masks: Sequence[int]) -> bool:
        """Take the last of the timeline's rows, by their ``masks``; whether they can change what the rule matches."""
        first = len(self._masks)
        self._masks += masks
        for mask in masks:
            self._seen |= max(mask, 0)
        conditions = self._conditions
        if conditions.always:
            return any(mask >= 0 for mask in masks)
        last = conditions.last
        closing = [place for place, mask in enumerate(masks, first) if mask >= 0 and (not last or mask & last)]
        if not closing or conditions.asks:
            return bool(closing)
        if conditions.wanted & ~self._seen:
            return False
        return len(closing) > MANY or any(self._can_end(entries, place) for place in closing)

    def _can_end(self, entries: Sequence[Entry], end: int) -> bool:
        """Whether the rows before one that closes a match, as far as one can reach, hold what each match needs."""
        need, masks, by = self._conditions.requirements, self._masks, self._rule.file.partition_by
        last = entries[end].row
        conversation, target = last.conversation if "conversation" in by else None, last.target
        alone = "target" not in by or target is not None
        lacking, wanted = _still_lacking(dict(need.needs))
        bounded = alone and (need.gap is not None or need.longest is not None)
        passed = count = 0
        for place in range(end, self._first_within(entries, end) - 1, -1):
            mask = masks[place]
            if mask < 0 or (not bounded and lacking and not mask & wanted):
                continue
            row = entries[place].row
            if conversation is not None and row.conversation != conversation:
                continue
            if "target" in by and row.target is not None and target not in (None, row.target):
                continue  # public rows are of everybody's sequences
            count += 1
            passed = 0 if mask & need.bound else passed + 1
            if mask & wanted:
                lacking, wanted = _still_lacking({kinds: n - (mask & kinds != 0) for kinds, n in lacking.items()})
            if not lacking:
                return True
            if bounded and ((need.gap is not None and passed > need.gap) or count == need.longest):
                return False
        return False

    def _first_within(self, entries: Sequence[Entry], end: int) -> int:
        """The first row that may be of one match with the row at ``end``, as far as time tells."""
        within, time = self._rule.within, entries[end].time
        if within is None or time is None:
            return 0
        return bisect_left(entries, time - within, hi=end, key=lambda entry: entry.time or 0)


def _still_lacking(lacking: dict[int, int]) -> tuple[dict[int, int], int]:
    """What is lacking of rows of each kind, without those of which there are enough; the bits of any of them."""
    left = {kinds: number for kinds, number in lacking.items() if number > 0}
    wanted = 0
    for kinds in left:
        wanted |= kinds
    return left, wanted
