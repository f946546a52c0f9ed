"""Four matching strategies: shifted masks for a fixed length, the automaton, the nearest ends, and backtracking."""

from __future__ import annotations

from array import array
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from undersong.patterns.language import types
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Call, Compare, Node, Number
from undersong.patterns.language.values import MATCH
from undersong.patterns.reference.matcher import BacktrackingMatcher, GaveUp
from undersong.patterns.vectorized import jit
from undersong.patterns.vectorized.aggregates import MOST, value_in_row, wide_enough
from undersong.patterns.vectorized.dfa import BackwardAutomaton, TooManyStates, compiled, match_starts, traced
from undersong.patterns.vectorized.environments import FrameVectors
from undersong.patterns.vectorized.exact_sum import I
from undersong.patterns.vectorized.jit import machine
from undersong.patterns.vectorized.layout import MatchLimits, MatchPaths, RowTable, SequenceFrame, after, joined, sized
from undersong.patterns.vectorized.nearest_ends import RowRegions, paths_in_regions
from undersong.patterns.vectorized.path_cache import RulePaths
from undersong.patterns.vectorized.rule_plan import VectorPlan, plan
from undersong.patterns.vectorized.start_filter import Outline, candidates, headed
from undersong.patterns.vectorized.vector_logic import B, Masks

APART = 100  # rows that the automaton takes, without machine code, while the reference finds the match of one start
CHEAP = 40  # rows times instructions of the nearest ends that take about as long as a step of the reference


class SearchInput(NamedTuple):
    """The input of a matching strategy: a rule's plan, rows with their masks, and the limits of a match.

    ``cached`` are matches of earlier searches with the rule (see ``PathCache``).
    """

    plan: VectorPlan
    table: RowTable
    frame: SequenceFrame
    masks: Masks
    limits: MatchLimits
    steps: int
    cached: RulePaths | None = None


class MatchStrategy(Protocol):
    """Strategy interface: ``starts`` are rows of the frame, ``lost`` the runs in which the search gave up."""

    starts: I
    lost: B

    @property
    def runs(self) -> I:
        """The run of each start."""
        ...

    def paths(self, numbers: I) -> MatchPaths:
        """The matches of some of the starts, by their numbers; no rows where there is none."""
        ...

    def spans(self, numbers: I) -> I:
        """At most how many rows each match takes, or about that."""
        ...


def choose_strategy(search_input: SearchInput) -> MatchStrategy:
    """The matching strategy that suits the rule and the number of rows."""
    plan_of_rule = search_input.plan
    if plan_of_rule.requirements.fixed:
        return FixedLengthStrategy(search_input)
    masks = search_input.masks
    size = max(len(masks), search_input.table.size)
    if plan_of_rule.code is not None and not plan_of_rule.anchored and (compiled(size) or _many_starts(search_input)):
        automaton = _automaton_strategy(search_input)
        if automaton is not None:
            return automaton
    bounded = _NearestEndStrategy if machine(size) and plan_of_rule.code is not None else _ReferenceStrategy
    return bounded(search_input, *candidates(plan_of_rule.requirements, masks, search_input.limits))


def _many_starts(search_input: SearchInput) -> bool:
    """Whether the automaton is the quicker one without machine code, too."""
    size = len(search_input.masks)
    return size >= jit.ENOUGH and APART * _start_count(search_input) > size


def _start_count(search_input: SearchInput) -> int:
    return len(candidates(search_input.plan.requirements, search_input.masks, search_input.limits)[0])


def _automaton_strategy(search_input: SearchInput) -> MatchStrategy | None:
    """The automaton, where it has not too many states."""
    try:
        return _AutomatonStrategy(search_input)
    except TooManyStates:
        return None


@lru_cache(maxsize=256)
def _automaton(rule: PatternRule) -> BackwardAutomaton:
    program = plan(rule).code
    if program is None:
        raise TooManyStates
    return BackwardAutomaton(program)


class _AutomatonStrategy:
    """The automaton; the nearest ends where its states do not meet under limits of time."""

    def __init__(self, search_input: SearchInput) -> None:
        self.search_input = search_input
        self.automaton = _automaton(search_input.plan.rule)
        self.reading = self.automaton.read(search_input.masks, search_input.limits.fences)
        self.openings = match_starts(self.automaton, self.reading, search_input.limits, search_input.plan.requirements)
        self.starts = self.openings.starts
        self.runs = after(search_input.frame.bounds, self.starts) - 1
        self.lost = np.zeros(len(search_input.frame.targets), dtype=np.bool_)

    def spans(self, numbers: I) -> I:
        return np.full(len(numbers), 32, dtype=np.int64)

    def paths(self, numbers: I) -> MatchPaths:
        matches = traced(self.automaton, self.reading, self.openings.at(numbers))
        left = numbers[len(matches.starts) :]
        if not len(left):
            return matches
        starts = self.starts[left]
        others = _NearestEndStrategy(self.search_input, starts, self.search_input.limits.of(starts))
        matches = joined([matches, others.paths(np.arange(len(left)))])
        self.lost |= others.lost
        return matches


class FixedLengthStrategy:
    """A pattern of single rows: a match from every start, by comparing shifted masks."""

    def __init__(self, search_input: SearchInput) -> None:
        self.search_input = search_input
        self.starts = fixed_starts(search_input.plan.requirements.head, search_input.masks, search_input.limits)
        self.lost = np.zeros(len(search_input.frame.targets), dtype=np.bool_)
        instructions = search_input.plan.rule.program.instructions[:-1]
        self.row = np.array([second for _, _, second in instructions], dtype=np.int8)

    @cached_property
    def runs(self) -> I:
        return after(self.search_input.frame.bounds, self.starts) - 1

    def screen(self, rows: FrameVectors) -> None:
        """Leave out starts whose spread is surely below what ``having`` asks for; ``rows`` are all of the frame."""
        size = len(self.row)
        for tree in self.search_input.plan.having:
            asked = spread_condition(tree, self.search_input.plan)
            if asked is not None and machine(len(rows.rows)) and len(self.starts) * size >= len(rows.rows):
                values = np.ascontiguousarray(np.broadcast_to(rows.number(asked.value), len(rows.rows)))
                passing = np.empty(len(self.starts) + 1, dtype=np.int64)  # one more: for a start that is refused
                number = wide_enough.at(len(values))(size, self.starts, values, asked.least, passing)
                self.starts = passing[:number]

    def spans(self, numbers: I) -> I:
        return np.full(len(numbers), len(self.row))

    def paths(self, numbers: I) -> MatchPaths:
        size = len(numbers)
        return MatchPaths(self.starts[numbers], np.zeros(size, dtype=np.int64), np.full(size, len(self.row)), self.row)


def fixed_starts(head: Outline, masks: Masks, limits: MatchLimits) -> I:
    """The rows from which a pattern of single rows, the head, matches within the limits."""
    fits, bounds = headed(masks, head), limits.bounds
    for rows in range(1, len(head)):
        fits[limits.fences[(limits.fences >= rows) & (limits.fences < len(fits) + rows)] - rows] = False
    if bounds.closed is not None:
        fits &= ~bounds.closed[: len(fits)]
    starts = np.flatnonzero(fits)
    if bounds.within is None:
        return starts
    return starts[limits.times[starts + len(head) - 1] - limits.times[starts] <= bounds.within]


class _SpreadCondition(NamedTuple):
    """The least spread that ``having`` asks of a value over all rows of a match."""

    value: Node
    least: float


def spread_condition(tree: Node, plan: VectorPlan) -> _SpreadCondition | None:
    """The spread that a condition asks of a pattern of single rows; None where it asks for something else."""
    if not isinstance(tree, Compare) or tree.operator not in (">", ">="):
        return None
    left, right = tree.left, tree.right
    if not isinstance(left, Call) or left.name != "std" or not isinstance(right, Number) or right.value <= 0:
        return None
    variable, bound = types.single_variable(left), {second for _, _, second in plan.rule.program.instructions[:-1]}
    everywhere = min(bound) >= 0 if variable == MATCH else bound == {plan.rule.names.index(variable)}
    if not everywhere or not 2 <= len(plan.requirements.head) <= MOST:
        return None
    return _SpreadCondition(value_in_row(left.arguments[0]), right.value)


class _NearestEndStrategy:
    """The nearest ends under each start's limit; for anchors, and where the automaton is too large."""

    def __init__(self, search_input: SearchInput, starts: I, limits: I) -> None:
        self.search_input, self.starts, self.limits = search_input, starts, limits
        self.runs = after(search_input.frame.bounds, self.starts) - 1
        self.lost = np.zeros(len(search_input.frame.targets), dtype=np.bool_)

    def spans(self, numbers: I) -> I:
        return self.limits[numbers] - self.starts[numbers]

    def paths(self, numbers: I) -> MatchPaths:
        code, bounds = self.search_input.plan.code, self.search_input.frame.bounds
        starts, limits = self.starts[numbers], self.limits[numbers]
        if code is None or not len(numbers):
            return sized(starts, np.zeros(len(starts), dtype=np.int64))
        first, last, owners = regions_of(self.search_input, starts, limits, self.runs[numbers])
        runs, most = after(bounds, first) - 1, CHEAP * self.search_input.steps
        regions = RowRegions(first, last, bounds[runs], bounds[runs + 1])
        matches, too_large = paths_in_regions(code, self.search_input.masks, regions, starts, limits, owners, most)
        self.lost[runs[too_large]] = True
        return matches


class _ReferenceStrategy(_NearestEndStrategy):
    """The backtracking matcher of the reference under each start's limit, region by region.

    For marks, and where the tables are small.
    """

    def __init__(self, search_input: SearchInput, starts: I, limits: I) -> None:
        super().__init__(search_input, starts, limits)
        self.first, self.last, self.owners = regions_of(search_input, self.starts, self.limits, self.runs)
        self._matchers: dict[int, BacktrackingMatcher] = {}
        self._text, self._width = search_input.masks.tobytes(), search_input.masks.dtype.itemsize

    def paths(self, numbers: I) -> MatchPaths:
        bindings = [self._path(number) for number in numbers.tolist()]
        result = sized(self.starts[numbers], np.array([len(each) for each in bindings], dtype=np.int64))
        result.bindings[:] = np.frombuffer(b"".join(bindings), dtype=np.int8)
        return result

    def _path(self, number: int) -> bytes:
        """The bindings of a match, a byte for each row; those that an earlier search found under the same masks."""
        cached = self.search_input.cached
        if cached is None or self.search_input.plan.anchored:
            return self._match(number) or b""
        rows = self._text[int(self.starts[number]) * self._width : int(self.limits[number]) * self._width]
        path = cached.get(rows, self._width)
        if path is None:
            path = self._match(number)
            if path is None:
                return b""
            owner = int(self.owners[number])
            depends = self._matchers[owner].furthest + 1 + int(self.first[owner] - self.starts[number])
            cached.put(rows, self._width, depends, path)
        return path

    def _match(self, number: int) -> bytes | None:
        """The match of a start; None where the search gave up."""
        run, owner = int(self.runs[number]), int(self.owners[number])
        if self.lost[run]:
            return None
        matcher, first = self._matcher(owner), int(self.first[owner])
        start = int(self.starts[number]) - first
        matcher.limits[start] = int(self.limits[number]) - first  # type: ignore[index]
        try:
            path = matcher.match(start)
        except GaveUp:
            self.lost[run] = True
            return None
        return b"" if path is None else array("b", path.bindings).tobytes()

    def _matcher(self, owner: int) -> BacktrackingMatcher:
        if owner not in self._matchers:
            rows = self.search_input.masks[int(self.first[owner]) : int(self.last[owner])].tolist()
            program = self.search_input.plan.rule.program
            self._matchers[owner] = BacktrackingMatcher(program, rows, [0] * len(rows), steps=self.search_input.steps)
        return self._matchers[owner]


def regions_of(search_input: SearchInput, starts: I, limits: I, runs: I) -> tuple[I, I, I]:
    """The rows between starts and limits, put together where they meet: first, past the last; the region of each."""
    bounds = search_input.frame.bounds
    low, high = (bounds[runs], bounds[runs + 1]) if search_input.plan.anchored else (starts, limits)
    new = np.ones(len(starts), dtype=np.bool_)
    new[1:] = runs[1:] != runs[:-1]
    if not search_input.plan.anchored:
        new[1:] |= starts[1:] >= np.maximum.accumulate(high)[:-1]
    opening = np.flatnonzero(new)
    last = np.maximum.reduceat(high, opening) if len(opening) else opening
    return low[opening], last, np.cumsum(new) - 1
