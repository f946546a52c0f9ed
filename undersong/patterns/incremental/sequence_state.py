"""One sequence of rows, live: its rows since the oldest open start, and the rules that are at work on it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from copy import deepcopy
from typing import NamedTuple

from undersong.patterns.incremental.lazy_columns import OwnCells, Seen, SharedCells, Tallies
from undersong.patterns.incremental.reader import LiveRow
from undersong.patterns.incremental.row_plan import GAP, RowPlan
from undersong.patterns.incremental.run import SLACK, RuleState
from undersong.patterns.incremental.windows import LiveWindow, live_window
from undersong.patterns.language.fields import Context
from undersong.patterns.language.logic import Value
from undersong.patterns.reference.columns import HOUR, gathered
from undersong.patterns.reference.matcher import MatchPath
from undersong.patterns.reference.partitions import Entry, Partition, Timeline
from undersong.patterns.reference.search import Match, match_of

_EVERY_ROW = 1 << 62  # where no row needs to be directed at a target
_NO_VALUES: Mapping[str, Value] = {}


class TargetWindows(NamedTuple):
    """What the agent directed at one target: a tally per slot of ``Slots.others``.

    ``windows`` range over what it directed at anyone else, per slot of ``Slots.apart``.
    """

    tallies: Tallies
    windows: list[LiveWindow]


class LiveSequenceKey(NamedTuple):
    """Where a sequence belongs. ``target`` None: nobody's; ``stem``: that of everyone not yet addressed."""

    agent: str
    untimed: str | None
    conversation: str | None
    target: str | None
    stem: bool = False


class EmittedMatch(NamedTuple):
    """A match that stands; ``start`` is the place of its first row in its sequence."""

    plan: RowPlan
    start: int
    match: Match


class SequenceState:
    """A sequence: public rows and those to one target, or all rows of the agent or of one conversation.

    ``rows`` begin at row ``base``; ``aimed`` keeps for each what had been directed at the target before it. A row in
    which no rule has an interest leaves nothing but ``count`` and ``last``.
    """

    __slots__ = (
        "aimed", "base", "count", "gap", "gave_up", "holes", "last", "last_directed", "place", "rows", "runs",
        "windows",
    )  # fmt: skip

    def __init__(self, place: LiveSequenceKey) -> None:
        self.place = place
        self.count = self.base = 0
        self.last: int | None = None
        self.last_directed = -1 if place.stem or place.target is not None else _EVERY_ROW
        self.rows: list[Seen] = []
        self.aimed: list[Tallies] = []
        self.holes: dict[int, tuple[str, ...]] = {}
        self.gap: list[str] = []
        self.runs: dict[int, RuleState] = {}
        self.windows: dict[int, list[LiveWindow]] = {}
        self.gave_up: frozenset[int] = frozenset()

    def copy(self, place: LiveSequenceKey | None = None) -> SequenceState:
        """The same state, to go on by itself; under another ``place`` what is public so far begins a new sequence."""
        other = SequenceState(place or self.place)
        other.count, other.base, other.last = self.count, self.base, self.last
        other.last_directed = self.last_directed
        other.rows, other.aimed = self.rows.copy(), self.aimed.copy()
        other.holes, other.gap = self.holes.copy(), self.gap.copy()
        other.runs = {index: run.copy() for index, run in self.runs.items()}
        other.windows, other.gave_up = deepcopy(self.windows), self.gave_up
        return other

    def hole(self, row_id: str) -> list[EmittedMatch]:
        """An unread row: transparent, but a rule may bound how many one gap holds."""
        if not self.runs:
            return []
        self.gap.append(row_id)
        emitted = []
        for run in list(self.runs.values()):
            if run.plan.max_unread == len(self.gap) - 1 and not run.plan.machine.has_end:
                run.close(self.count, self.count, self.last_directed)
                emitted += self._settle(run)
        self._tidy()
        return emitted

    def take(
        self, reading: LiveRow, opening: Mapping[int, RowPlan], eager: list[RowPlan], aim: TargetWindows
    ) -> list[EmittedMatch]:
        """A read row. ``opening``: the rules of which it may begin a match; ``eager``: those that must see each."""
        seen, index = reading.seen, self.count
        self.count += 1
        if seen.row.target is not None and self.last_directed < index:
            self.last_directed = index
        if not (self.runs or opening or eager):
            self.last, self.base = seen.time, self.count
            return []
        self.rows.append(seen)
        self.aimed.append(aim.tallies)
        if self.gap:
            self.holes[index] = tuple(self.gap)
        values = {plan.index: self._eager(plan, seen, aim) for plan in eager}
        emitted = []
        for plan in self._busy(opening):
            emitted += self._advance(plan, reading, index, values.get(plan.index, _NO_VALUES))
        for plan in eager:
            self._gather(plan, OwnCells(reading.shared(plan), aim.tallies, values[plan.index]))
        self.last, self.gap = seen.time, []
        self._tidy()
        return emitted

    def end(self) -> list[EmittedMatch]:
        """No row follows: decide every start."""
        emitted = []
        for run in list(self.runs.values()):
            run.end(self.count, self.last_directed)
            emitted += self._settle(run, ended=True)
        return emitted

    def _busy(self, opening: Mapping[int, RowPlan]) -> list[RowPlan]:
        plans = [*opening.values(), *(run.plan for index, run in self.runs.items() if index not in opening)]
        return [plan for plan in plans if plan.index not in self.gave_up] if self.gave_up else plans

    def _advance(self, plan: RowPlan, reading: LiveRow, index: int, eager: Mapping[str, Value]) -> list[EmittedMatch]:
        """One rule at one row: close what the row is out of reach of, ask what matters, and step."""
        machine, run = plan.machine, self.runs.get(plan.index)
        opening = machine.later if index else machine.first
        if plan.until is not None and plan.until(self._here(plan, reading, eager)) is True:
            return [] if run is None else self._cut(run, index, eager)
        bits = reading.masks[plan.index] & (opening.wanted if run is None else opening.wanted | run.wanted)
        if bits & plan.derived_bits:
            bits = self._exact(plan, reading, bits, eager)
        if run is None:
            after = machine.step(opening, bits)
            if not (after.places or (after.accepted and index <= self.last_directed)):
                return []
            run = self.runs[plan.index] = RuleState(plan, index, reading.steps)
        else:
            reach = self._reach(run, index)
            if reach > run.front:
                run.close(reach, index, self.last_directed)
        run.take(index, bits, eager, opening, self.last_directed)
        if run.groups and not (run.ready or run.pending) and run.steps > 0:
            return []
        return self._settle(run)

    def _cut(self, run: RuleState, index: int, eager: Mapping[str, Value]) -> list[EmittedMatch]:
        """A row that no match takes or crosses (``until``)."""
        run.close(index, index, self.last_directed)
        run.take(index, 0, eager, None, self.last_directed)
        return self._settle(run)

    def _here(self, plan: RowPlan, reading: LiveRow, eager: Mapping[str, Value]) -> Context:
        return Context(reading.seen.row, OwnCells(reading.shared(plan), self.aimed[-1], eager))

    def _exact(self, plan: RowPlan, reading: LiveRow, bits: int, eager: Mapping[str, Value]) -> int:
        """Those of ``bits`` that hold; a condition that needs columns is asked only here."""
        if bits & plan.shared_bits:
            bits = reading.exact(plan, bits)
        if bits & plan.own_bits:
            context = self._here(plan, reading, eager)
            for bit, holds in plan.own_tests:
                if bits & bit and holds(context) is not True:
                    bits &= ~bit
        return bits

    def _reach(self, run: RuleState, index: int) -> int:
        """The first row from which a match may still take row ``index``: ``max_unread`` and ``within`` decide."""
        plan = run.plan
        if self.gap and plan.max_unread is not None and len(self.gap) > plan.max_unread:
            return index
        time = self.rows[-1].time
        if plan.within is None or time is None or run.front >= index:
            return run.front
        front, least = run.front - self.base, time - plan.within
        if (self.rows[front].time or 0) >= least:
            return run.front
        return self.base + bisect_left(self.rows, least, lo=front, key=lambda seen: seen.time or 0)

    def _settle(self, run: RuleState, *, ended: bool = False) -> list[EmittedMatch]:
        """What stands after a row, a hole or the end; at the step limit the rule gives up in this sequence."""
        standing: list[tuple[MatchPath, Match]] = []
        if run.ready or run.pending:
            context_by_place: dict[int, Context] = {}
            standing = run.settle(lambda path: self._match(run, path, context_by_place), self.count, ended=ended)
        if run.steps <= 0:
            standing += run.give_up()
            self.gave_up |= {run.plan.index}
        if run.idle or run.steps <= 0:
            del self.runs[run.plan.index]
        return [EmittedMatch(run.plan, path.start, match) for path, match in standing]

    def _match(self, run: RuleState, path: MatchPath, context_by_place: dict[int, Context]) -> Match | None:
        """The match of a path as in the search, unless it is plain without a look at its values that there is none."""
        places = range(path.start, path.end)
        rows = self.rows[path.start - self.base : path.end - self.base]
        directed = any(
            seen.row.target is not None for seen, bound in zip(rows, path.bindings, strict=True) if bound >= 0
        )
        if (self.place.target is not None and not directed) or run.plan.counts.refuse(path.bindings):
            return None
        for place in places:
            if place not in context_by_place:
                context_by_place[place] = self._context(run, place)
        entries = tuple(Entry(seen.row, seen.time, place) for seen, place in zip(rows, places, strict=True))
        holes = tuple(self.holes.get(place, ()) for place in places)
        timeline = Timeline(self.place.agent, self.place.untimed, entries)
        partition = Partition(timeline, self.place.target, self.place.conversation, entries, holes)
        contexts = [context_by_place[place] for place in places]
        return match_of(run.plan.rule, partition, MatchPath(0, path.bindings), contexts)

    def _context(self, run: RuleState, place: int) -> Context:
        seen = self.rows[place - self.base]
        eager = _NO_VALUES if run.eager is None else run.eager[place - run.first]
        return Context(seen.row, OwnCells(SharedCells(run.plan, seen), self.aimed[place - self.base], eager))

    def _eager(self, plan: RowPlan, seen: Seen, aim: TargetWindows) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for column, window in zip(plan.windows, self._windows(plan), strict=True):
            values[column.key] = window.at(seen.time)
        for key, slot in plan.apart.items():
            values[key] = aim.windows[slot].at(seen.time)
        timed = seen.time is not None and self.last is not None
        values[GAP] = ((seen.time or 0) - (self.last or 0)) / HOUR if timed else None
        return values

    def _windows(self, plan: RowPlan) -> list[LiveWindow]:
        if plan.index not in self.windows:
            self.windows[plan.index] = [live_window(column.window) for column in plan.windows]
        return self.windows[plan.index]

    def _gather(self, plan: RowPlan, cells: OwnCells) -> None:
        """The row becomes a past row of the rule's windows over this sequence."""
        context = Context(cells.seen.row, cells)
        for column, window in zip(plan.windows, self._windows(plan), strict=True):
            value = gathered(column, context)
            if value is not None:
                window.take(cells.seen.time, value)

    def _tidy(self) -> None:
        """Forget the rows that no rule needs any more."""
        if not self.runs:
            self.gap = []
            if self.rows:
                self._drop(self.count)
        elif not self.count % SLACK:
            for run in self.runs.values():
                run.trim()
            self._drop(min(run.first for run in self.runs.values()))

    def _drop(self, oldest: int) -> None:
        for place in [place for place in self.holes if place < oldest]:
            del self.holes[place]
        del self.rows[: oldest - self.base]
        del self.aimed[: oldest - self.base]
        self.base = oldest
