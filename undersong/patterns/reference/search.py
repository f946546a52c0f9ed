"""One rule over the timelines of many agents: which rows match, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple, Protocol

import msgspec

from undersong.models import Row
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.fields import Context
from undersong.patterns.language.logic import Value
from undersong.patterns.language.row_pattern import ANY, at_end, longest
from undersong.patterns.language.values import MATCH, MatchRows, measure
from undersong.patterns.reference.columns import derive
from undersong.patterns.reference.matcher import STEPS, BacktrackingMatcher, GaveUp, MatchPath, find_all
from undersong.patterns.reference.partitions import (
    Entry,
    Partition,
    PartitionGroup,
    SequenceAddress,
    Timeline,
    groups,
    limits,
)

ROWS = 1_000_000  # rows per rule and timeline, a public row counted once per target; beyond it a rule gives up aloud


class Match(NamedTuple):
    """A match: its rows with their variables (ANY: passed over), the holes between them, and its measures.

    ``open_through`` is the last event time at which a further row could still extend or replace it (see ``OpenTimes``).
    """

    partition: Partition | SequenceAddress
    stages: tuple[tuple[str, Entry], ...]
    unread_ids: tuple[str, ...]
    measures: Mapping[str, Value]
    open_through: int

    @property
    def named(self) -> tuple[tuple[str, Entry], ...]:
        """The rows bound to a named variable."""
        return tuple([stage for stage in self.stages if stage[0] != ANY])


class SearchResult(NamedTuple):
    """What a rule found, in how many partitions with a read row, and the agents in whose partitions it gave up."""

    matches: tuple[Match, ...]
    partitions: int
    gave_up: tuple[str, ...]


def search(rule: PatternRule, timelines: Iterable[Timeline], *, steps: int = STEPS) -> SearchResult:
    """Every match of a rule, timeline by timeline; matches from before giving up in a partition count."""
    runs = []
    for timeline in timelines:
        run = _TimelineSearcher(rule, filtered(rule, timeline), steps)
        for group in groups(run.timeline, rule.file.partition_by):
            run.group(group)
        runs.append(run)
    gave_up = tuple(run.timeline.agent for run in runs for _ in range(run.gave_up))
    return SearchResult(tuple(match for run in runs for match in run.matches), sum(run.count for run in runs), gave_up)


class PartitionResult(NamedTuple):
    """The matches in one partition; ``gave_up`` where the search reached its limit."""

    matches: tuple[Match, ...]
    gave_up: bool


def search_partition(rule: PatternRule, partition: Partition, *, steps: int = STEPS) -> PartitionResult:
    """Every match of a rule in one partition of a timeline that ``where`` has been applied to (see ``filtered``)."""
    run = _TimelineSearcher(rule, partition.timeline, steps)
    complete = run.partition(partition)
    return PartitionResult(tuple(run.matches), not complete)


class _TimelineSearcher:
    """A rule on one timeline: what depends on single rows is computed once, for all its partitions."""

    def __init__(self, rule: PatternRule, timeline: Timeline, steps: int) -> None:
        self.rule, self.timeline, self.steps = rule, timeline, steps
        self.cache: dict[str, list[Value]] = {}
        self.masks = [local_mask(rule, entry.row) if entry.read else 0 for entry in timeline.entries]
        self.wanted = sum(1 << index for index in rule.required)
        self.matches: list[Match] = []
        self.count = self.gave_up = 0
        self.rows = ROWS

    def group(self, group: PartitionGroup) -> None:
        """Search the partitions of a group in which a match is possible at all."""
        public_read, public = any(entry.read for entry in group.public), self._union(group.public)
        for target in group.targets:
            directed = group.directed[target] if target is not None else ()
            if not public_read and not any(entry.read for entry in directed):
                continue
            self.count += 1
            own = self._union(directed)
            if (target is not None and not own) or (public | own) & self.wanted != self.wanted:
                continue  # no row of the target can be bound, or a stage holds nowhere
            self.rows -= len(group.public) + len(directed)
            if self.rows < 0 or not self.partition(group.partition(target)):
                self.gave_up += 1

    def _union(self, entries: Iterable[Entry]) -> int:
        return reduce(or_, (self.masks[entry.place] for entry in entries), 0)

    def partition(self, partition: Partition) -> bool:
        """Add the partition's matches; False if the step limit was reached."""
        rule = self.rule
        local = [self.masks[entry.place] for entry in partition.rows]
        contexts, masks, ends = prepared(rule, partition, local, self.cache)
        if reduce(or_, masks, 0) & self.wanted != self.wanted:
            return True
        matcher = BacktrackingMatcher(rule.program, masks, ends, steps=self.steps)

        path_matches: list[tuple[MatchPath, Match]] = []

        def keep(path: MatchPath) -> bool:
            match = match_of(rule, partition, path, contexts)
            if match is not None:
                path_matches.append((path, match))
            return match is not None

        try:
            find_all(matcher, rule.skip, keep)
        except GaveUp:
            return False
        finally:
            path_matches = _with_open_times(rule, partition, path_matches)
            if rule.file.keep == "strongest":
                path_matches = [path_matches[number] for number in strongest(path_matches)]
            self.matches += [match for _, match in path_matches]
        return True


class PreparedSequence(NamedTuple):
    """The read rows of a partition for the matcher: with their columns, which variables fit, how far a match may go."""

    contexts: list[Context]
    masks: list[int]
    ends: list[int]


def prepared(
    rule: PatternRule, partition: Partition, local: Iterable[int], cache: dict[str, list[Value]]
) -> PreparedSequence:
    """A partition with the columns of a rule; ``local`` are its ``local_mask`` per row, ``cache`` as in ``derive``."""
    cells = derive(partition, rule.columns, cache)
    contexts = [Context(entry.row, derived) for entry, derived in zip(partition.rows, cells, strict=True)]
    conditions = [(1 << i, c.derived) for i, c in enumerate(rule.conditions) if c.derived is not None]
    masks = list(local)
    for i, context in enumerate(contexts):
        for bit, holds in conditions:
            if masks[i] & bit and holds(context) is not True:
                masks[i] &= ~bit
    closed = [rule.until is not None and rule.until(context) is True for context in contexts]
    return PreparedSequence(contexts, masks, limits(partition, rule.within, rule.file.max_unread, closed))


class RowSpan(Protocol):
    """Where a match lies in its sequence."""

    @property
    def start(self) -> int:
        """Its first row."""
        ...

    @property
    def end(self) -> int:
        """One past its last row."""
        ...


def strongest(candidates: Sequence[tuple[RowSpan, Match]]) -> list[int]:
    """The numbers of the matches that ``keep: strongest`` leaves, in order of their first rows.

    The strongest stands (of equals the earlier start), and those whose span of rows overlaps it fall; then the
    strongest of the rest, and so on. An unknown strength is the weakest.
    """
    ranked = sorted(range(len(candidates)), key=lambda i: (-_strength(candidates[i][1]), candidates[i][0].start))
    selected: list[int] = []
    for i in ranked:
        start, end = candidates[i][0].start, candidates[i][0].end
        if all(end <= candidates[k][0].start or candidates[k][0].end <= start for k in selected):
            selected.append(i)
    return sorted(selected, key=lambda i: candidates[i][0].start)


NEVER_OPEN, ALWAYS_OPEN = -(1 << 62), 1 << 62  # microseconds: before and after every time


class OpenTimes(NamedTuple):
    """How long the matches of a rule are open: while a later row of their agent could still extend or replace them.

    A match that takes as many rows as the pattern ever can is settled at once. Any other is open until an event of its
    agent is more than ``within`` after its first row; without ``within``, or without times, until the end. Of rules
    that ``keep: strongest`` a match is open as long as one could begin among the rows of those that overlap, in turn.
    """

    within: int | None
    full: int | None
    by_overlap: bool


def open_times(rule: PatternRule) -> OpenTimes:
    """How long the matches of a rule are open."""
    by_overlap = rule.file.keep == "strongest"
    full = None if by_overlap or at_end(rule.trees.part) else longest(rule.trees.part)
    return OpenTimes(rule.within, full, by_overlap)


def _with_open_times(
    rule: PatternRule, partition: Partition, matches: list[tuple[MatchPath, Match]]
) -> list[tuple[MatchPath, Match]]:
    """The matches, which are in the order of their starts, each with the last time at which it is open."""
    times = open_times(rule)
    paths = [path for path, _ in matches]
    anchors = last_overlapping(paths) if times.by_overlap else [path.start for path in paths]
    return [
        (path, match._replace(open_through=_open_through(times, partition, path, anchor)))
        for (path, match), anchor in zip(matches, anchors, strict=True)
    ]


def last_overlapping(paths: Iterable[RowSpan]) -> list[int]:
    """For each match the last row of all that overlap it, in turn."""
    until: list[int] = []
    clusters = []
    for path in paths:
        if until and path.start < until[-1]:
            until[-1] = max(until[-1], path.end)
        else:
            until.append(path.end)
        clusters.append(len(until) - 1)
    return [until[cluster] - 1 for cluster in clusters]


def _open_through(times: OpenTimes, partition: Partition, path: MatchPath, anchor: int) -> int:
    if times.full is not None and len(path.bindings) == times.full:
        return NEVER_OPEN
    if times.within is None or not partition.timeline.timed:
        return ALWAYS_OPEN
    return (partition.rows[anchor].time or 0) + times.within


def _strength(match: Match) -> float:
    value = match.measures.get("strength")
    return float(value) if isinstance(value, int | float) else -1.0


def filtered(rule: PatternRule, timeline: Timeline) -> Timeline:
    """The timeline without the rows that ``where`` leaves out; an unread row stays unless it surely fails."""
    if rule.where is None:
        return timeline
    remaining = []
    for entry in timeline.entries:
        holds = rule.where(Context(entry.row, {}))
        if holds is True or (holds is None and not entry.read):
            remaining.append(entry)
    return timeline._replace(
        entries=tuple(msgspec.structs.replace(entry, place=place) for place, entry in enumerate(remaining))
    )


def local_mask(rule: PatternRule, row: Row) -> int:
    """A bit for each variable that the row alone does not rule out; conditions on columns are taken to hold."""
    context = Context(row, {})
    mask = 0
    for index, condition in enumerate(rule.conditions):
        if condition.local is None or condition.local(context) is True:
            mask |= 1 << index
    return mask


def bind(rule: PatternRule, path: MatchPath, contexts: Sequence[Context]) -> MatchRows:
    """The rows of a path by variable, and their measures."""
    rows: dict[str, list[Context]] = {name: [] for name in (*rule.names, ANY, MATCH)}
    for index, context in zip(path.bindings, contexts[path.start : path.end], strict=True):
        rows[ANY if index < 0 else rule.names[index]].append(context)
        if index >= 0:
            rows[MATCH].append(context)
    return MatchRows(rows, measure(rows, rule.measures))


def directed(partition: Partition, bound: MatchRows) -> bool:
    """Whether a named row is directed at the target, where the partition has one."""
    return partition.target is None or any(context.row.target is not None for context in bound.rows[MATCH])


def match_of(rule: PatternRule, partition: Partition, path: MatchPath, contexts: Sequence[Context]) -> Match | None:
    """The match of a path, or None where it binds nothing directed at the target or fails ``having``."""
    bound = bind(rule, path, contexts)
    if not directed(partition, bound) or not all(holds(bound) is True for holds in rule.having):
        return None
    names = [ANY if index < 0 else rule.names[index] for index in path.bindings]
    stages = tuple(zip(names, partition.rows[path.start : path.end], strict=True))
    unread = tuple(id_ for holes in partition.holes[path.start + 1 : path.end] for id_ in holes)
    return Match(partition, stages, unread, bound.measures, ALWAYS_OPEN)
