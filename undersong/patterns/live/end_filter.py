"""Whether a match of a rule can end with a new row: necessary conditions, for a look at some rows, not a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from undersong.models import Row
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Field, Member, Node, Window, walk
from undersong.patterns.language.fields import Context, row_leaf
from undersong.patterns.language.logic import Evaluate, compile_tree
from undersong.patterns.language.row_pattern import at_end
from undersong.patterns.live.agent_sums import TOGETHER, AgentSums, SumsSoFar, summed_so_far
from undersong.patterns.live.columns import GrowingArray, GrowingColumns
from undersong.patterns.set_indicators import asked_of_findings
from undersong.patterns.vectorized.backward_steps import BackwardSteps
from undersong.patterns.vectorized.environments import RuleVectors, TableVectors
from undersong.patterns.vectorized.exact_sum import I, NotVectorizable
from undersong.patterns.vectorized.layout import RowTable
from undersong.patterns.vectorized.rule_plan import VectorPlan, every_tree, plan
from undersong.patterns.vectorized.start_filter import MatchRequirements, nfa_of
from undersong.patterns.vectorized.vector_logic import UNKNOWN, B, Masks, Vectors, mask_type

_Reach: TypeAlias = dict[tuple[int, int | None, bool, bool], list[I] | None]
MANY = 8  # new rows of one timeline, or sequences of one row, from which on they are not looked at one by one


class _EndConditions(NamedTuple):
    """``last``: the bits of which the last row of a match fits one; ``wanted``: those that each match has.

    ``always``: a row of any kind can change what matches (``$``). ``asks``: findings set indicators that it asks for on
    earlier rows, so that these say nothing here. ``rows`` are what a row alone must say to fit each
    variable, None for anything. ``back`` says how far back a match begins. ``whole``: a row that fits no variable can
    begin a match, or the rule ignores rows, so that places say nothing. ``cut``: what the rule says of rows does not
    depend on any before them but through sums over all of the agent's.
    """

    rows: tuple[Evaluate | None, ...]
    last: int
    wanted: int
    always: bool
    asks: bool
    requirements: MatchRequirements
    back: BackwardSteps
    whole: bool
    cut: bool


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
    whole = rule.trees.where is not None or any(way < 0 or not nfa.wanted[way] for way in nfa.first)
    back, requirements = BackwardSteps(rule.program), plan(rule).requirements
    cut = not whole and not plan(rule).anchored and all(map(_of_rows_and_sums, every_tree(rule)))
    return _EndConditions(rows, 0 if 0 in masks else last, wanted, always, asks, requirements, back, whole, cut)


def _of_rows_and_sums(tree: Node) -> bool:
    parts = [*walk(tree)]
    windows = (part for part in parts if isinstance(part, Window))
    return all(map(summed_so_far, windows)) and not any(
        isinstance(part, Field | Member) and part.name == "gap_hours" for part in parts
    )


class RowMasks(NamedTuple):
    """Of each rule and row the bits of the variables that the row fits on its own; ``inside``: the rule sees it.

    ``narrowed``: the bits say what sums over the agent's rows before it rule out, too.
    """

    bits: npt.NDArray[np.unsignedinteger]
    inside: B
    narrowed: B

    def part(self, first: int, last: int) -> RowMasks:
        """The masks of some of the rows."""
        return RowMasks(self.bits[:, first:last], self.inside[:, first:last], self.narrowed[:, first:last])


class EndConditions:
    """What some rules ask of the row with which a match ends."""

    def __init__(self, rules: Sequence[PatternRule]) -> None:
        self.rules = tuple(rules)
        own = [_end_conditions(rule) for rule in rules]
        self.kind = mask_type(max((len(rule.names) for rule in rules), default=1))
        self.wanted = np.array([each.wanted for each in own], dtype=self.kind)
        self.last = np.array([[each.last] for each in own], dtype=self.kind).reshape(-1, 1)
        self.anything = self.last == 0
        self.always = np.array([each.always for each in own], dtype=np.bool_)
        self.asks = np.array([each.asks for each in own], dtype=np.bool_) & ~self.always
        self.sums = AgentSums(self.rules)
        self._windows = [None if each.asks else self.sums.of(rule) for rule, each in zip(rules, own, strict=True)]

    def cut(self, number: int) -> bool:
        """Whether a rule, where its bits are ``narrowed``, needs no rows before the first that a match may hold."""
        return _end_conditions(self.rules[number]).cut and self._windows[number] is not None

    def masks(self, rows: Sequence[Row], table: RowTable, vectors: Vectors, sums: SumsSoFar) -> RowMasks:
        """What each rule sees in rows, one by one; ``table`` has them timeline by timeline, with the ``sums`` there."""
        masks = self._alone(rows, vectors if len(rows) >= TOGETHER else None)
        shared = TableVectors(table, vectors)
        for number, windows in enumerate(self._windows):
            if windows is not None:
                masks.narrowed[number] = sums.fits[windows].all(axis=0)
                _narrow(plan(self.rules[number]), masks.bits[number], masks.narrowed[number], shared)
        return masks

    def _alone(self, rows: Sequence[Row], vectors: Vectors | None) -> RowMasks:
        bits = np.zeros((len(self.rules), len(rows)), dtype=self.kind)
        inside = np.zeros(bits.shape, dtype=np.bool_)
        for number, rule in enumerate(self.rules if rows else ()):
            own = None if vectors is None else _of_arrays(rule, rows, vectors)
            bits[number], inside[number] = zip(*_one_by_one(rule, rows), strict=True) if own is None else own
        bits[~inside] = 0
        return RowMasks(bits, inside, np.zeros(bits.shape, dtype=np.bool_))


def _narrow(plan: VectorPlan, bits: Masks, narrowed: B, table: TableVectors) -> None:
    """Take away the bits that the agent's rows rule out, where these are ``narrowed``; none are where it is unknown."""
    kind = bits.dtype.type
    before = [(index, each.before) for index, each in enumerate(plan.conditions) if each.before is not None]
    asked = [(index, tree) for index, tree in before if (bits & kind(1 << index)).any()]
    if not asked:
        return
    vectors = RuleVectors(table, plan.levels)
    try:
        for index, tree in asked:
            bits[narrowed & ~vectors.holds(tree)] &= ~kind(1 << index)
    except (NotVectorizable, FloatingPointError):
        narrowed[:] = False


def _of_arrays(rule: PatternRule, rows: Sequence[Row], vectors: Vectors) -> tuple[Masks, B] | None:
    try:
        inside = np.array([row.state == "scored" for row in rows], dtype=np.bool_)
        if rule.trees.where is not None:
            inside &= vectors.holds(rule.trees.where)
        return vectors.bits(tuple(condition.row for condition in plan(rule).conditions)), inside
    except (NotVectorizable, FloatingPointError):
        return None


def _one_by_one(rule: PatternRule, rows: Sequence[Row]) -> Iterator[tuple[int, bool]]:
    conditions = _end_conditions(rule).rows
    for row in rows:
        context = Context(row, {})
        inside = row.state == "scored" and (rule.where is None or rule.where(context) is True)
        fits = [not inside or fits is None or fits(context) is True for fits in conditions]
        yield sum(1 << bit for bit, each in enumerate(fits) if each), inside


class MatchEndFilter:
    """The read rows of one timeline as the rules see them, row by row on their own.

    A row that comes last changes the matches of a rule only where one can end with it.
    """

    def __init__(self, conditions: EndConditions) -> None:
        self._conditions = conditions
        rules = len(conditions.rules)
        self._bits, self._inside = GrowingArray(conditions.kind, rules), GrowingArray(np.bool_, rules)
        self._seen, self._narrowed = np.zeros(rules, dtype=conditions.kind), np.ones(rules, dtype=np.bool_)

    def bits(self, number: int) -> Masks:
        """Of each row the bits of the variables of a rule that it fits on its own; none where the rule ignores it."""
        return self._bits.values[number]  # type: ignore[no-any-return]

    def narrowed(self, number: int) -> bool:
        """Whether these bits say what sums over the agent's rows before each row rule out, too."""
        return bool(self._narrowed[number])

    def append(self, rows: GrowingColumns, masks: RowMasks) -> dict[int, int]:
        """Take the last of the timeline's rows, by their ``masks``; the rules whose matches they can change.

        Of each rule the place from which on: no match that begins before is another than it was.
        """
        first, asked = self._bits.size, self._conditions
        self._bits.append(masks.bits)
        self._inside.append(masks.inside)
        self._narrowed &= masks.narrowed.all(axis=1)
        self._seen |= np.bitwise_or.reduce(masks.bits, axis=1)
        closing = masks.inside & (asked.anything | (masks.bits & asked.last != 0))
        some = closing.any(axis=1)
        due = dict.fromkeys(
            np.flatnonzero(np.where(asked.always, masks.inside.any(axis=1), some & asked.asks)).tolist(), 0
        )
        possible = some & ~asked.always & ~asked.asks & (asked.wanted & ~self._seen == 0)
        reach: _Reach = {}
        for number in np.flatnonzero(possible).tolist():
            places = np.flatnonzero(closing[number]) + first
            if len(places) > MANY:
                due[number] = 0
                continue
            begins = [self._begin(number, rows, place, reach) for place in places.tolist()]
            if any(begin is not None for begin in begins):
                due[number] = min(begin for begin in begins if begin is not None)
        return due

    def _begin(self, number: int, rows: GrowingColumns, end: int, reach: _Reach) -> int | None:
        """The first place at which a match may begin that ends with a row; None where none can end there.

        The rows before hold what each match needs, as far as one can reach. ``reach`` holds what rules of the same
        ``within`` and ``partition_by`` have in common.
        """
        rule = self._conditions.rules[number]
        key = end, rule.within, "conversation" in rule.file.partition_by, "target" in rule.file.partition_by
        if key not in reach:
            reach[key] = _sequences(rows, *key)
        sequences, own = reach[key], _end_conditions(rule)
        if sequences is None:
            return 0
        bits, inside = self._bits.values[number], self._inside.values[number]
        begins = []
        for places in sequences:
            seen = places if rule.where is None else places[inside[places]]
            longest = _longest(bits[seen].tolist(), own)
            if longest:
                begins.append(int(seen[-longest]))
        return 0 if begins and own.whole else min(begins, default=None)


def _longest(masks: Sequence[int], own: _EndConditions) -> int:
    """The most of the last rows that a match may take which ends with the last one; 0 where none has what it needs."""
    longest = own.back.longest(masks, own.requirements.longest)
    last = masks[len(masks) - longest :]
    for kinds, count in own.requirements.needs if longest else ():
        if sum([mask & kinds != 0 for mask in last]) < count:
            return 0
    return longest


def _sequences(
    rows: GrowingColumns, end: int, within: int | None, by_conversation: bool, by_target: bool
) -> list[I] | None:
    """The read rows that may be of one match with the row at ``end``, in each sequence that it is in, as time tells.

    None where the row is in too many sequences to look at.
    """
    last, time = rows.entries[end].row, rows.entries[end].time
    first = 0 if within is None or time is None else int(np.searchsorted(rows.times[: end + 1], time - within))
    same = rows.read[first : end + 1]
    if by_conversation:
        same = same & (rows.text("conversation")[first : end + 1] == rows.codes[last.conversation])
    if not by_target:
        return [same.nonzero()[0] + first]
    targets = rows.text("target")[first : end + 1]
    codes = {rows.codes[last.target]} if last.target is not None else set(targets.tolist())
    if len(codes) > MANY:
        return None
    public = targets == UNKNOWN  # public rows are of everybody's sequences
    return [(same & (public | (targets == code))).nonzero()[0] + first for code in codes]
