"""Row objects through the engine: the same ``SearchResult`` as the reference gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from undersong.patterns import search as reference
from undersong.patterns.engine.aggregates import value_of
from undersong.patterns.engine.loading import PackedTimelines, in_source
from undersong.patterns.engine.rows import table_of
from undersong.patterns.engine.run import MatchArrays, TableSearch
from undersong.patterns.engine.sums import I, NotVectorizable
from undersong.patterns.engine.table import RowTable, ranges
from undersong.patterns.engine.vectors import Vectors
from undersong.patterns.matcher import STEPS
from undersong.patterns.partitions import Entry, SequenceAddress, Timeline
from undersong.patterns.rules import PatternRule
from undersong.patterns.search import Match, SearchResult
from undersong.patterns.sequences import ANY

FEW = 500  # rows; arrays cost about a millisecond a rule, however few rows they hold


def search(rule: PatternRule, timelines: Sequence[Timeline], *, steps: int = STEPS) -> SearchResult:
    """Every match of a rule, as ``search.search`` finds them, through the engine however few the rows are."""
    return TimelineSearch(timelines, steps=steps, few=0).search(rule)


class TimelineSearch:
    """Some timelines, to be searched with one rule after the other; what rules have in common is done once.

    Up to ``few`` rows are left to the reference: there it is the quicker one. ``table`` holds the timelines' rows where
    they are arrays already; only timelines with a match are then asked for.
    """

    def __init__(
        self, timelines: Sequence[Timeline], *, steps: int = STEPS, few: int = FEW, table: RowTable | None = None
    ) -> None:
        self.timelines, self.steps, self._table = timelines, steps, table
        self.few = table is None and sum(len(timeline.entries) for timeline in self.timelines) <= few

    @cached_property
    def run(self) -> TableSearch:
        """The rows as arrays."""
        table = self._table or table_of(self.timelines)
        return TableSearch(table, Vectors(table.source))

    def search(self, rule: PatternRule) -> SearchResult:
        """Every match of a rule; one that is beyond the engine is left to the reference."""
        if self.few:
            return reference.search(rule, self.timelines, steps=self.steps)
        try:
            result = self.run.find(rule, steps=self.steps)
        except (NotVectorizable, FloatingPointError):
            return reference.search(rule, self.timelines, steps=self.steps)
        gave_up = tuple(self.timelines[index].agent for index in sorted(result.gave_up.tolist()))
        return SearchResult(tuple(sorted(self._matches(rule, result), key=_place)), result.sequences, gave_up)

    def _matches(self, rule: PatternRule, result: MatchArrays) -> Iterator[Match]:
        if isinstance(self.timelines, PackedTimelines):
            self.timelines.fetch(in_source(result.table, _named(result)).tolist())
        by_index: dict[int, Timeline] = {}
        for k in range(result.size):
            index = int(result.timelines[k])
            if index not in by_index:
                by_index[index] = self._timeline(rule, result, index)
            yield self._match(rule, result, k, by_index[index])

    def _timeline(self, rule: PatternRule, result: MatchArrays, index: int) -> Timeline:
        """The rows that the rule saw."""
        if isinstance(self.timelines, PackedTimelines):
            return self.timelines.among(result.table, index)
        return reference.filtered(rule, self.timelines[index])

    def _match(self, rule: PatternRule, result: MatchArrays, k: int, timeline: Timeline) -> Match:
        first, last = int(result.offsets[k]), int(result.offsets[k + 1])
        begin = int(result.table.bounds[result.timelines[k]])
        entries = [timeline.entries[row - begin] for row in result.rows[first:last].tolist()]
        bound = [ANY if index < 0 else rule.names[index] for index in result.bindings[first:last].tolist()]
        target = None if result.targets[k] < 0 else next(e.row.target for e in entries if e.row.target is not None)
        conversation = None if result.conversations[k] < 0 else entries[0].row.conversation
        address = SequenceAddress(timeline, target, timeline.conversation or conversation)
        unread = tuple(entry.row.id for entry in _between(rule, result, k, timeline, entries))
        measures = {name: value_of(values, k) for name, values in result.measures.items()}
        return Match(address, tuple(zip(bound, entries, strict=True)), unread, measures)


def _place(match: Match) -> tuple[str, str, str, str, int]:
    """The order of the reference: by timeline, conversation, target and first row, whatever order their codes have."""
    partition = match.partition
    named = partition.timeline.agent, partition.timeline.conversation or "", partition.conversation or ""
    return *named, "" if partition.target is None else f"to {partition.target}", match.stages[0][1].place


def _named(result: MatchArrays) -> I:
    """The rows that matches name: their own, and unread ones between them."""
    after = np.flatnonzero(result.holes)
    between = ranges(result.rows[after - 1] + 1, result.rows[after])
    return np.unique(np.concatenate([result.rows, between[~result.table.read[between]]]))


def _between(
    rule: PatternRule, result: MatchArrays, k: int, timeline: Timeline, entries: Sequence[Entry]
) -> Iterator[Entry]:
    """The unread rows of the same sequence between the rows of a match."""
    holes = result.holes[int(result.offsets[k]) : int(result.offsets[k + 1])]
    by, first, begin = rule.file.partition_by, entries[0].row, int(result.table.bounds[result.timelines[k]])
    target = next((entry.row.target for entry in entries if entry.row.target is not None), None)
    for i in np.flatnonzero(holes).tolist():
        for place in range(entries[i - 1].place + 1, entries[i].place):
            if result.table.read[begin + place]:
                continue
            entry = timeline.entries[place]
            apart = "target" in by and entry.row.target not in (None, target)
            if not apart and ("conversation" not in by or entry.row.conversation == first.conversation):
                yield entry
