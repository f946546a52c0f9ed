"""Row objects through the engine: the same ``Search`` as the reference gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from undersong.patterns import search as reference
from undersong.patterns.engine.aggregates import value_of
from undersong.patterns.engine.loading import PackedTimelines, in_source
from undersong.patterns.engine.rows import table_of
from undersong.patterns.engine.run import Found, Run
from undersong.patterns.engine.sums import I, Unsuited
from undersong.patterns.engine.table import Table, ranges
from undersong.patterns.engine.vectors import Vectors
from undersong.patterns.matcher import STEPS
from undersong.patterns.partitions import Address, Entry, Timeline
from undersong.patterns.rules import PatternRule
from undersong.patterns.search import Match, Search
from undersong.patterns.sequences import ANY

FEW = 500  # rows; arrays cost about a millisecond a rule, however few rows they hold


def search(rule: PatternRule, timelines: Sequence[Timeline], *, steps: int = STEPS) -> Search:
    """Every match of a rule, as ``search.search`` finds them, through the engine however few the rows are."""
    return Searches(timelines, steps=steps, few=0).search(rule)


class Searches:
    """Some timelines, to be searched with one rule after the other; what rules have in common is done once.

    Up to ``few`` rows are left to the reference: there it is the quicker one. ``table`` holds the timelines' rows where
    they are arrays already; only timelines with a match are then asked for.
    """

    def __init__(
        self, timelines: Sequence[Timeline], *, steps: int = STEPS, few: int = FEW, table: Table | None = None
    ) -> None:
        self.timelines, self.steps, self._table = timelines, steps, table
        self.few = table is None and sum(len(timeline.entries) for timeline in self.timelines) <= few

    @cached_property
    def run(self) -> Run:
        """The rows as arrays."""
        table = self._table or table_of(self.timelines)
        return Run(table, Vectors(table.source))

    def search(self, rule: PatternRule) -> Search:
        """Every match of a rule; one that is beyond the engine is left to the reference."""
        if self.few:
            return reference.search(rule, self.timelines, steps=self.steps)
        try:
            found = self.run.find(rule, steps=self.steps)
        except (Unsuited, FloatingPointError):
            return reference.search(rule, self.timelines, steps=self.steps)
        gave_up = tuple(self.timelines[index].agent for index in sorted(found.gave_up.tolist()))
        return Search(tuple(sorted(self._matches(rule, found), key=_place)), found.sequences, gave_up)

    def _matches(self, rule: PatternRule, found: Found) -> Iterator[Match]:
        if isinstance(self.timelines, PackedTimelines):
            self.timelines.fetch(in_source(found.table, _named(found)).tolist())
        known: dict[int, Timeline] = {}
        for k in range(found.size):
            index = int(found.timelines[k])
            if index not in known:
                known[index] = self._timeline(rule, found, index)
            yield self._match(rule, found, k, known[index])

    def _timeline(self, rule: PatternRule, found: Found, index: int) -> Timeline:
        """The rows that the rule saw."""
        if isinstance(self.timelines, PackedTimelines):
            return self.timelines.among(found.table, index)
        return reference.filtered(rule, self.timelines[index])

    def _match(self, rule: PatternRule, found: Found, k: int, timeline: Timeline) -> Match:
        first, last = int(found.offsets[k]), int(found.offsets[k + 1])
        begin = int(found.table.bounds[found.timelines[k]])
        entries = [timeline.entries[row - begin] for row in found.rows[first:last].tolist()]
        bound = [ANY if index < 0 else rule.names[index] for index in found.bindings[first:last].tolist()]
        target = None if found.targets[k] < 0 else next(e.row.target for e in entries if e.row.target is not None)
        conversation = None if found.conversations[k] < 0 else entries[0].row.conversation
        address = Address(timeline, target, timeline.conversation or conversation)
        unread = tuple(entry.row.id for entry in _between(rule, found, k, timeline, entries))
        measures = {name: value_of(values, k) for name, values in found.measures.items()}
        return Match(address, tuple(zip(bound, entries, strict=True)), unread, measures)


def _place(match: Match) -> tuple[str, str, str, str, int]:
    """The order of the reference: by timeline, conversation, target and first row, whatever order their codes have."""
    partition = match.partition
    named = partition.timeline.agent, partition.timeline.conversation or "", partition.conversation or ""
    return *named, "" if partition.target is None else f"to {partition.target}", match.stages[0][1].place


def _named(found: Found) -> I:
    """The rows that matches name: their own, and unread ones between them."""
    after = np.flatnonzero(found.holes)
    between = ranges(found.rows[after - 1] + 1, found.rows[after])
    return np.unique(np.concatenate([found.rows, between[~found.table.read[between]]]))


def _between(rule: PatternRule, found: Found, k: int, timeline: Timeline, entries: Sequence[Entry]) -> Iterator[Entry]:
    """The unread rows of the same sequence between the rows of a match."""
    holes = found.holes[int(found.offsets[k]) : int(found.offsets[k + 1])]
    by, first, begin = rule.file.partition_by, entries[0].row, int(found.table.bounds[found.timelines[k]])
    target = next((entry.row.target for entry in entries if entry.row.target is not None), None)
    for i in np.flatnonzero(holes).tolist():
        for place in range(entries[i - 1].place + 1, entries[i].place):
            if found.table.read[begin + place]:
                continue
            entry = timeline.entries[place]
            apart = "target" in by and entry.row.target not in (None, target)
            if not apart and ("conversation" not in by or entry.row.conversation == first.conversation):
                yield entry
