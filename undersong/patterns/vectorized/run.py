"""The search of one table with one rule after the other."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Node
from undersong.patterns.reference.matcher import STEPS
from undersong.patterns.vectorized.aggregates import Measured, chosen
from undersong.patterns.vectorized.earlier import NOTHING_KNOWN, ChangedSequences, EarlierResults
from undersong.patterns.vectorized.environments import FrameVectors, RuleVectors, TableVectors
from undersong.patterns.vectorized.exact_sum import F, I, NotVectorizable
from undersong.patterns.vectorized.layout import (
    Bindings,
    Bounds,
    MatchLimits,
    RowOrder,
    RowTable,
    SequenceFrame,
    compact,
    fitting,
    grouped,
    picked,
    ranges,
    some,
    undirected,
)
from undersong.patterns.vectorized.reach import DirectedReach
from undersong.patterns.vectorized.rule_plan import LayeredCondition, VectorPlan, plan
from undersong.patterns.vectorized.select import SelectedMatches, Selection, select_matches
from undersong.patterns.vectorized.sequence_windows import SequenceColumns, Sums
from undersong.patterns.vectorized.strategies import SearchInput, choose_strategy
from undersong.patterns.vectorized.targets import TargetRows, sequences, split_by_target, target_frame, whole_sequences
from undersong.patterns.vectorized.vector_logic import B, Codes, Masks, Vectors, mask_type


class MatchArrays(NamedTuple):
    """The matches of a rule, ordered by timeline, conversation, target and first row.

    Of each match: its timeline, conversation and target (codes, -1 for none). ``rows`` are the places in ``table`` of
    all rows of all matches (``offsets``: where each match's begin), ``bindings`` their variables (-1: passed over), and
    ``holes`` the number of unread rows just before each, of the same sequence. ``open_through`` are the last event
    times at which each match is open. ``sequences`` counts those with a read row, ``gave_up`` the timelines of those in
    which the search reached its limit.
    """

    table: RowTable
    timelines: I
    conversations: Codes
    targets: Codes
    rows: I
    offsets: I
    bindings: Bindings
    holes: I
    measures: Measured
    open_through: I
    sequences: int
    gave_up: I

    @property
    def size(self) -> int:
        """How many matches."""
        return len(self.timelines)


class _SharedLayout:
    """What rules with the same ``where`` and ``partition_by`` share."""

    def __init__(self, table: RowTable, order: RowOrder) -> None:
        self.table, self.order = table, order
        self.sums: dict[Node, Sums] = {}

    @cached_property
    def frame(self) -> SequenceFrame:
        """The sequences of rules without targets."""
        return undirected(self.table, self.order)

    @cached_property
    def parts(self) -> TargetRows:
        """The public and directed rows, for rules with targets."""
        return split_by_target(self.table, self.order)

    @cached_property
    def surroundings(self) -> DirectedReach:
        """How far the surroundings of directed rows reach."""
        return DirectedReach(self.table, self.parts)

    @cached_property
    def count(self) -> int:
        """How many sequences towards targets, and of public rows alone, hold a read row."""
        return sequences(self.parts)


class TableSearch:
    """A table, with a cache of everything that several rules ask of it, and what is known of ``earlier`` searches."""

    def __init__(self, table: RowTable, source: Vectors, earlier: EarlierResults = NOTHING_KNOWN) -> None:
        self.table, self.source, self.earlier = table, source, earlier
        self._vectors: dict[Node | None, TableVectors] = {}
        self._layouts: dict[tuple[Node | None, bool], _SharedLayout] = {}

    def find(self, rule: PatternRule, *, steps: int = STEPS) -> MatchArrays:
        """Every match of a rule; raises Unsuited for one that only the reference finds exactly."""
        return _RuleSearch(self, plan(rule), steps).result()

    def vectors(self, where: Node | None) -> TableVectors:
        """The expressions over the rows that ``where`` leaves; an unread row stays unless it surely fails."""
        if where not in self._vectors:
            table = self.table
            if where is not None:
                whole = self.vectors(None)
                selected = whole.holds(where) | (~table.read & whole.unknown(where))
                table = table.only(np.broadcast_to(selected, table.size))
            self._vectors[where] = TableVectors(table, self.source)
        return self._vectors[where]

    @cached_property
    def changed(self) -> ChangedSequences | None:
        """The sequences to search of rules by target; None: all."""
        return None if self.earlier.changed is None else self.earlier.changed()

    def layout(self, where: Node | None, by: tuple[str, ...]) -> _SharedLayout:
        """The rows of each group."""
        key = where, "conversation" in by
        if key not in self._layouts:
            table = self.vectors(where).table
            self._layouts[key] = _SharedLayout(table, grouped(table, by))
        return self._layouts[key]


class _RuleSearch:
    """One rule on one run."""

    def __init__(self, run: TableSearch, plan: VectorPlan, steps: int) -> None:
        self.plan, self.rule, self.steps = plan, plan.rule, steps
        paths, self.known_bits = run.earlier.paths, run.earlier.bits
        self.narrowed = run.earlier.narrowed
        self.cached = None if paths is None else paths.of(plan.rule.hash)
        self.changed = run.changed if plan.targeted else None
        shared = run.vectors(plan.rule.trees.where)
        self.table, self.vectors = shared.table, RuleVectors(shared, plan.levels)
        self.layout = run.layout(plan.rule.trees.where, plan.rule.file.partition_by)

    def result(self) -> MatchArrays:
        """The matches, ordered."""
        rule, plan = self.rule, self.plan
        frame, masks, beyond = self._towards() if plan.targeted else self._alone()
        alone = "conversation" not in rule.file.partition_by
        parts = self.layout.parts if plan.targeted else None
        sequence_columns = SequenceColumns(self.table, self.vectors, frame, parts, alone, self.layout.sums)
        masks = self._narrowed(masks, frame, sequence_columns)
        closed = self._closed(frame, sequence_columns)
        bounds = Bounds(rule.within, rule.file.max_unread, closed, plan.requirements.longest)
        limits = MatchLimits(frame, self.table, bounds)
        search_input = SearchInput(plan, self.table, frame, masks, limits, self.steps, self.cached)
        strategy = choose_strategy(search_input)
        matches = select_matches(Selection(search_input, self.vectors, sequence_columns, strategy))
        lost = np.flatnonzero(strategy.lost)
        gave_up = np.concatenate([beyond, frame.timelines[_unique_sequences(frame, lost)]])
        count = self.layout.count if plan.targeted else frame.filled
        return _match_arrays(self.table, frame, matches, count, gave_up)

    def _alone(self) -> tuple[SequenceFrame, Masks, I]:
        frame = self.layout.frame
        return frame, picked(self._symbols(None), frame.rows), np.zeros(0, dtype=np.int64)

    def _towards(self) -> tuple[SequenceFrame, Masks, I]:
        changed, parts, plan, rule = self.changed, self.layout.parts, self.plan, self.rule
        masks = self._symbols(None if changed is None else self.table.taken(changed.rows))
        marked = parts.lists.marked(masks)
        if plan.whole:
            around = whole_sequences(parts, marked)
        else:
            around = self.layout.surroundings.around(marked, plan.requirements, rule.within)
        timelines = parts.order.timelines
        alone = np.flatnonzero(np.ones(len(timelines), np.bool_) if changed is None else changed.timelines[timelines])
        return target_frame(
            self.table, parts, marked, rule.required, around, alone, whole=plan.whole, placed=plan.placed
        )

    def _symbols(self, searched: B | None) -> Masks:
        """Per row of the table a bit for each variable that the agent's rows do not rule out; none if it is unread.

        None, too, where the row is not to be ``searched``.
        """
        kind, conditions = mask_type(len(self.plan.conditions)), self.plan.conditions
        if self.known_bits is None:
            bits = self.vectors.shared.bits(tuple(condition.row for condition in conditions))
        else:
            bits = self.table.taken(self.known_bits(self.rule))
        masks: Masks = np.multiply(np.broadcast_to(bits, self.table.size), self.table.read, dtype=kind)
        if searched is not None:
            masks *= searched
        asked = [(index, each) for index, each in enumerate(conditions) if each.before is not None]
        if asked and not self.narrowed:
            _narrow(masks, asked, self.vectors)
        return masks

    def _narrowed(self, masks: Masks, frame: SequenceFrame, sequence_columns: SequenceColumns) -> Masks:
        """The masks without the bits that the rule's own sequences rule out; asked only where the rest holds."""
        for index, condition in enumerate(self.plan.conditions):
            if condition.within is None:
                continue
            bit = masks.dtype.type(1 << index)
            places = fitting(masks, 1 << index)
            rows = FrameVectors(self.vectors, frame.rows[places], places, sequence_columns)
            fails = places[~np.broadcast_to(rows.holds(condition.within), len(places))]
            masks[fails] &= ~bit
        return masks

    def _closed(self, frame: SequenceFrame, sequence_columns: SequenceColumns) -> B | None:
        until = self.rule.trees.until
        if until is None:
            return None
        rows = FrameVectors(self.vectors, frame.rows, None, sequence_columns)
        return np.broadcast_to(rows.holds(until), len(frame.rows))


def _unique_sequences(frame: SequenceFrame, runs: I) -> I:
    """One run of each sequence that some runs belong to."""
    if not len(runs):
        return runs
    keys = np.stack([frame.timelines[runs], frame.conversations[runs], frame.targets[runs]], axis=1)
    return runs[np.unique(keys, axis=0, return_index=True)[1]]


def _match_arrays(
    table: RowTable, frame: SequenceFrame, matches: SelectedMatches | None, count: int, gave_up: I
) -> MatchArrays:
    none = np.zeros(0, dtype=np.int64)
    if matches is None:
        codes = none.astype(np.int32)
        return MatchArrays(
            table, none, codes, codes, none, np.zeros(1, np.int64), none.astype(np.int8), none, {}, none, count, gave_up
        )
    runs, starts = matches.runs, matches.paths.starts
    order = np.lexsort((starts, frame.targets[runs], frame.conversations[runs], frame.timelines[runs]))
    runs, paths = runs[order], compact(some(matches.paths, order))
    places = ranges(paths.starts, paths.starts + paths.sizes)
    holes = frame.holes[places]
    offsets = np.append(paths.first, len(paths.bindings))
    holes[offsets[:-1]] = 0
    return MatchArrays(
        table,
        frame.timelines[runs],
        frame.conversations[runs],
        frame.targets[runs],
        frame.rows[places],
        offsets,
        paths.bindings,
        holes,
        chosen(matches.measures, order),
        matches.open_through[order],
        count,
        gave_up,
    )


def _narrow(masks: Masks, asked: list[tuple[int, LayeredCondition]], vectors: RuleVectors) -> None:
    """Take away the bits that windows over the agent's rows rule out."""
    kind = masks.dtype.type
    places = fitting(masks, sum(1 << index for index, _ in asked))
    rows = FrameVectors(vectors, places, None, _no_sequence)
    for index, condition in asked:
        if condition.before is not None:
            holds = np.broadcast_to(rows.holds(condition.before), len(places))
            masks[places[~holds]] &= ~kind(1 << index)


def _no_sequence(node: Node, _places: I | None) -> F:
    raise NotVectorizable(f"{node} depends on the sequence")
