"""Two ways from starts to their preferred matches: machine code where there is enough to do, else the reference."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from undersong import jit
from undersong.jit import machine
from undersong.patterns.engine.automaton import Automaton, Crowded
from undersong.patterns.engine.frames import Frame
from undersong.patterns.engine.limits import Limits, after
from undersong.patterns.engine.openings import openings
from undersong.patterns.engine.paths import Bindings, Paths, joined, nothing, put, sized
from undersong.patterns.engine.plan import Plan, plan
from undersong.patterns.engine.scopes import FrameVectors
from undersong.patterns.engine.singles import singles, spread_out
from undersong.patterns.engine.starts import candidates
from undersong.patterns.engine.sums import I
from undersong.patterns.engine.table import Table
from undersong.patterns.engine.traces import traced
from undersong.patterns.engine.vectors import B, Masks
from undersong.patterns.engine.walk import Regions, nearest_ends, paths
from undersong.patterns.matcher import GaveUp, Matcher
from undersong.patterns.rules import PatternRule

APART = 100  # rows that the automaton takes, without machine code, while the reference finds the match of one start
CELLS = 1 << 25  # rows times instructions that are worked out together: 128 MB
CHEAP = 40  # cells that take about as long as a step of the reference


class Ground(NamedTuple):
    """What is walked: a rule's plan, the rows of a frame with their masks, and what ends a match there."""

    plan: Plan
    table: Table
    frame: Frame
    masks: Masks
    limits: Limits
    steps: int


class Walker(Protocol):
    """``starts`` are rows of the frame, ``runs`` their runs; runs in which the search gave up are ``lost``."""

    starts: I
    lost: B

    @property
    def runs(self) -> I:
        """The run of each start."""
        ...

    def paths(self, numbers: I) -> Paths:
        """The matches of some of the starts, by their numbers; no rows where there is none."""
        ...

    def spans(self, numbers: I) -> I:
        """At most how many rows each match takes, or about that."""
        ...


def walker(ground: Ground) -> Walker:
    """The way that suits the rule and the number of rows."""
    known = ground.plan
    free = known.code is not None and not known.anchored and not known.outlook.fixed
    if not machine(max(len(ground.masks), ground.table.size)):
        plain = _Plain(ground)
        many = len(plain.starts) * APART > len(ground.masks) >= jit.ENOUGH
        return (_swift(ground) if free and many else None) or plain
    if known.outlook.fixed:
        return Fixed(ground)
    bounded = _Bounded if known.code is not None else _Plain
    return (_swift(ground) if free else None) or bounded(ground)


def _swift(ground: Ground) -> Walker | None:
    """The automaton, where it has not too many states."""
    try:
        return _Swift(ground)
    except Crowded:
        return None


@lru_cache(maxsize=256)
def _automaton(rule: PatternRule) -> Automaton:
    program = plan(rule).code
    if program is None:
        raise Crowded
    return Automaton(program)


class _Swift:
    """The automaton; the nearest ends where its states do not meet under limits of time."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.automaton = _automaton(ground.plan.rule)
        self.reading = self.automaton.read(ground.masks, ground.limits.fences)
        self.openings = openings(
            self.automaton, self.reading, ground.limits, ground.plan.outlook, targeted=ground.plan.targeted
        )
        self.starts = self.openings.starts
        self.runs = after(ground.frame.bounds, self.starts) - 1
        self.lost = np.zeros(len(ground.frame.targets), dtype=np.bool_)

    def spans(self, numbers: I) -> I:
        return np.full(len(numbers), 32, dtype=np.int64)

    def paths(self, numbers: I) -> Paths:
        found = traced(self.automaton, self.reading, self.openings.at(numbers))
        left = numbers[len(found.starts) :]
        if not len(left):
            return found
        starts = self.starts[left]
        others, lost = _limited(self.ground, starts, self.ground.limits.of(starts), self.runs[left])
        self.lost |= lost
        return joined([found, others])


class _Bounded:
    """The nearest ends under each start's limit; for anchors, and where the automaton is too large."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        found = candidates(ground.plan.outlook, ground.masks, ground.limits)
        self.starts, self.limits = found
        self.runs = after(ground.frame.bounds, self.starts) - 1
        self.lost = np.zeros(len(ground.frame.targets), dtype=np.bool_)

    def spans(self, numbers: I) -> I:
        return self.limits[numbers] - self.starts[numbers]

    def paths(self, numbers: I) -> Paths:
        if self.ground.plan.outlook.fixed:
            return _fixed(self.ground, self.starts[numbers], self.limits[numbers])
        return self._walked(numbers)

    def _walked(self, numbers: I) -> Paths:
        found, lost = _limited(self.ground, self.starts[numbers], self.limits[numbers], self.runs[numbers])
        self.lost |= lost
        return found


class Fixed:
    """A pattern of single rows: a match from every start."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.starts = singles(ground.plan.outlook.head, ground.masks, ground.limits)
        self.lost = np.zeros(len(ground.frame.targets), dtype=np.bool_)
        self.row = _bindings(ground)

    @cached_property
    def runs(self) -> I:
        return after(self.ground.frame.bounds, self.starts) - 1

    def screen(self, rows: FrameVectors) -> None:
        """Leave out starts that ``having`` surely refuses; ``rows`` are all those of the frame."""
        self.starts = spread_out(self.ground.plan, self.starts, rows)

    def spans(self, numbers: I) -> I:
        return np.full(len(numbers), len(self.row))

    def paths(self, numbers: I) -> Paths:
        size = len(numbers)
        return Paths(self.starts[numbers], np.zeros(size, dtype=np.int64), np.full(size, len(self.row)), self.row)


def _bindings(ground: Ground) -> Bindings:
    """The variables of a pattern of single rows."""
    return np.array([second for _, _, second in ground.plan.rule.program.instructions[:-1]], dtype=np.int8)


def _fixed(ground: Ground, starts: I, limits: I) -> Paths:
    """The matches of a pattern of single rows: every start with enough rows before its limit is one."""
    row = _bindings(ground)
    last = np.where(limits - starts >= len(row), len(row), 0)
    return Paths(starts, np.zeros(len(starts), dtype=np.int64), last, row)


def _limited(ground: Ground, starts: I, limits: I, runs: I) -> tuple[Paths, B]:
    """The matches under the limits, and the runs that take more steps than allowed."""
    lost = np.zeros(len(ground.frame.targets), dtype=np.bool_)
    code = ground.plan.code
    if code is None or not len(starts):
        return nothing(starts), lost
    regions, owners, of = regions_of(ground, starts, limits, runs)
    cells = (regions.last - regions.first) * len(code.operation)
    lost[of[cells > CHEAP * ground.steps]] = True
    group = np.cumsum(np.where(lost[of], 0, cells)) // CELLS
    found = nothing(starts)
    for number in np.unique(group[~lost[of]]).tolist():
        here = np.flatnonzero((group == number) & ~lost[of])
        chosen = np.flatnonzero(((group == number) & ~lost[of])[owners])
        part = Regions(*(each[here] for each in regions))
        ends, offsets = nearest_ends(code, ground.masks, part)
        owner = np.searchsorted(here, owners[chosen])
        found = put(found, chosen, paths(code, ends, offsets, part, starts[chosen], limits[chosen], owner))
    return found, lost


def regions_of(ground: Ground, starts: I, limits: I, runs: I) -> tuple[Regions, I, I]:
    """The rows between starts and limits, put together where they meet; the region of each start, the run of each."""
    bounds = ground.frame.bounds
    low, high = (bounds[runs], bounds[runs + 1]) if ground.plan.anchored else (starts, limits)
    furthest = np.maximum.accumulate(high)
    new = np.ones(len(starts), dtype=np.bool_)
    new[1:] = runs[1:] != runs[:-1]
    if not ground.plan.anchored:
        new[1:] |= starts[1:] >= furthest[:-1]
    opening = np.flatnonzero(new)
    of = runs[opening]
    last = np.maximum.reduceat(high, opening) if len(opening) else opening
    return Regions(low[opening], last, bounds[of], bounds[of + 1]), np.cumsum(new) - 1, of


class _Plain(_Bounded):
    """The reference matcher under each start's limit, region by region."""

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        self.regions, self.owners, _ = regions_of(ground, self.starts, self.limits, self.runs)
        self._matchers: dict[int, Matcher] = {}

    def _walked(self, numbers: I) -> Paths:
        found = [self._match(number) for number in numbers.tolist()]
        result = sized(self.starts[numbers], np.array([len(each) for each in found], dtype=np.int64))
        result.bindings[:] = [index for each in found for index in each]
        return result

    def _match(self, number: int) -> tuple[int, ...]:
        run, owner = int(self.runs[number]), int(self.owners[number])
        if self.lost[run]:
            return ()
        matcher, first = self._matcher(owner), int(self.regions.first[owner])
        start = int(self.starts[number]) - first
        matcher.limits[start] = int(self.limits[number]) - first  # type: ignore[index]
        try:
            found = matcher.match(start)
        except GaveUp:
            self.lost[run] = True
            return ()
        return () if found is None else found.bindings

    def _matcher(self, owner: int) -> Matcher:
        if owner not in self._matchers:
            rows = self.ground.masks[int(self.regions.first[owner]) : int(self.regions.last[owner])].tolist()
            program = self.ground.plan.rule.program
            self._matchers[owner] = Matcher(program, rows, [0] * len(rows), steps=self.ground.steps)
        return self._matchers[owner]
