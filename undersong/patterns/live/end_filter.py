"""Whether a match of a rule can end with a new row: necessary conditions, for a look at some rows, not a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from undersong.models import Row
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.fields import Context, row_leaf
from undersong.patterns.language.logic import Evaluate, compile_tree
from undersong.patterns.language.row_pattern import at_end
from undersong.patterns.reference.partitions import Entry
from undersong.patterns.set_indicators import asked_of_findings
from undersong.patterns.vectorized.rule_plan import plan
from undersong.patterns.vectorized.start_filter import MatchRequirements, nfa_of

OUTSIDE = -1  # the mask of a row that the rule does not see
MANY = 8  # new rows of one timeline from which on they are not looked at one by one


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


class MatchEndFilter:
    """The read rows of one timeline as one rule sees them, row by row on their own.

    A row that comes last changes the matches of a rule only where one can end with it.
    """

    def __init__(self, rule: PatternRule) -> None:
        self._rule, self._conditions = rule, _end_conditions(rule)
        self._masks: list[int] = []
        self._seen = 0

    def append(self, entries: Sequence[Entry], new: int) -> bool:
        """Take the last ``new`` of the timeline's rows; whether they can change what the rule matches."""
        places = range(len(entries) - new, len(entries))
        masks = [self._mask(entries[place]) for place in places]
        self._masks += masks
        for mask in masks:
            self._seen |= max(mask, 0)
        conditions = self._conditions
        if conditions.always:
            return any(mask >= 0 for mask in masks)
        last = conditions.last
        closing = [place for place, mask in zip(places, masks, strict=True) if mask >= 0 and (not last or mask & last)]
        if not closing or conditions.asks:
            return bool(closing)
        if conditions.wanted & ~self._seen:
            return False
        return len(closing) > MANY or any(self._can_end(entries, place) for place in closing)

    def _mask(self, entry: Entry) -> int:
        rule, row = self._rule, entry.row
        if not entry.read or (rule.where is not None and rule.where(Context(row, {})) is not True):
            return OUTSIDE
        context = Context(row, {})
        return sum(1 << bit for bit, fits in enumerate(self._conditions.rows) if fits is None or fits(context) is True)

    def _can_end(self, entries: Sequence[Entry], end: int) -> bool:
        """Whether the rows before one that closes a match, as far as one can reach, hold what each match needs."""
        need = self._conditions.requirements
        alone = "target" not in self._rule.file.partition_by or entries[end].row.target is not None
        lacking = dict(need.needs)
        passed = 0
        for count, mask in enumerate(self._before(entries, end), 1):
            passed = 0 if mask & need.bound else passed + 1
            lacking = {kinds: number - (mask & kinds != 0) for kinds, number in lacking.items()}
            if all(number <= 0 for number in lacking.values()):
                return True
            too_far = (need.gap is not None and passed > need.gap) or count == need.longest
            if alone and too_far:
                return False
        return False

    def _before(self, entries: Sequence[Entry], end: int) -> Iterator[int]:
        """The masks of the rows that may be of one sequence with the last one, from it on backwards."""
        last, by, within = entries[end], self._rule.file.partition_by, self._rule.within
        for place in range(end, -1, -1):
            entry = entries[place]
            if within is not None and entry.time is not None and (last.time or 0) - entry.time > within:
                return
            if self._masks[place] >= 0 and _joins(entry.row, last.row, by):
                yield self._masks[place]


def _joins(row: Row, last: Row, by: Sequence[str]) -> bool:
    """Whether two rows may be of one sequence: public rows are of everybody's."""
    if "conversation" in by and row.conversation != last.conversation:
        return False
    return "target" not in by or None in (row.target, last.target) or row.target == last.target
