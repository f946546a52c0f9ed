"""Two ways from starts to their preferred matches: machine code where there is enough to do, else the reference."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from undersong.patterns.language import types
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Call, Compare, Node, Number
from undersong.patterns.language.values import MATCH
from undersong.patterns.reference.matcher import BacktrackingMatcher, GaveUp
from undersong.patterns.vectorized import jit
from undersong.patterns.vectorized.aggregates import value_in_row
from undersong.patterns.vectorized.backtrace import match_starts, traced
from undersong.patterns.vectorized.dfa import BackwardAutomaton, RowRegions, TooManyStates, nearest_ends, paths
from undersong.patterns.vectorized.environments import FrameVectors
from undersong.patterns.vectorized.exact_sum import I
from undersong.patterns.vectorized.jit import kernel, machine
from undersong.patterns.vectorized.layout import MatchLimits, SequenceFrame, after
from undersong.patterns.vectorized.paths import Bindings, MatchPaths, joined, nothing, put, sized
from undersong.patterns.vectorized.rule_plan import VectorPlan, plan
from undersong.patterns.vectorized.start_filter import Outline, candidates, headed
from undersong.patterns.vectorized.statistics import MOST, wide_enough
from undersong.patterns.vectorized.table import RowTable
from undersong.patterns.vectorized.vector_logic import B, Masks

APART = 100  # rows that the automaton takes, without machine code, while the reference finds the match of one start
CELLS = 1 << 25  # rows times instructions that are worked out together: 128 MB
CHEAP = 40  # cells that take about as long as a step of the reference


class SearchInput(NamedTuple):
    """What is walked: a rule's plan, the rows of a frame with their masks, and what ends a match there."""

    plan: VectorPlan
    table: RowTable
    frame: SequenceFrame
    masks: Masks
    limits: MatchLimits
    steps: int


class MatchStrategy(Protocol):
    """``starts`` are rows of the frame, ``runs`` their runs; runs in which the search gave up are ``lost``."""

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
    """The way that suits the rule and the number of rows."""
    plan_of_rule = search_input.plan
    free = plan_of_rule.code is not None and not plan_of_rule.anchored and not plan_of_rule.requirements.fixed
    if not machine(max(len(search_input.masks), search_input.table.size)):
        plain = _ReferenceStrategy(search_input)
        many = len(plain.starts) * APART > len(search_input.masks) >= jit.ENOUGH
        return (_automaton_strategy(search_input) if free and many else None) or plain
    if plan_of_rule.requirements.fixed:
        return FixedLengthStrategy(search_input)
    bounded = _NearestEndStrategy if plan_of_rule.code is not None else _ReferenceStrategy
    return (_automaton_strategy(search_input) if free else None) or bounded(search_input)


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
        self.openings = match_starts(
            self.automaton,
            self.reading,
            search_input.limits,
            search_input.plan.requirements,
            targeted=search_input.plan.targeted,
        )
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
        others, lost = _limited(self.search_input, starts, self.search_input.limits.of(starts), self.runs[left])
        self.lost |= lost
        return joined([matches, others])


class _NearestEndStrategy:
    """The nearest ends under each start's limit; for anchors, and where the automaton is too large."""

    def __init__(self, search_input: SearchInput) -> None:
        self.search_input = search_input
        candidate_starts = candidates(search_input.plan.requirements, search_input.masks, search_input.limits)
        self.starts, self.limits = candidate_starts
        self.runs = after(search_input.frame.bounds, self.starts) - 1
        self.lost = np.zeros(len(search_input.frame.targets), dtype=np.bool_)

    def spans(self, numbers: I) -> I:
        return self.limits[numbers] - self.starts[numbers]

    def paths(self, numbers: I) -> MatchPaths:
        if self.search_input.plan.requirements.fixed:
            return _fixed(self.search_input, self.starts[numbers], self.limits[numbers])
        return self._walked(numbers)

    def _walked(self, numbers: I) -> MatchPaths:
        matches, lost = _limited(self.search_input, self.starts[numbers], self.limits[numbers], self.runs[numbers])
        self.lost |= lost
        return matches


class FixedLengthStrategy:
    """A pattern of single rows: a match from every start."""

    def __init__(self, search_input: SearchInput) -> None:
        self.search_input = search_input
        self.starts = singles(search_input.plan.requirements.head, search_input.masks, search_input.limits)
        self.lost = np.zeros(len(search_input.frame.targets), dtype=np.bool_)
        self.row = _bindings(search_input)

    @cached_property
    def runs(self) -> I:
        return after(self.search_input.frame.bounds, self.starts) - 1

    def screen(self, rows: FrameVectors) -> None:
        """Leave out starts that ``having`` surely refuses; ``rows`` are all those of the frame."""
        self.starts = wide_starts(self.search_input.plan, self.starts, rows)

    def spans(self, numbers: I) -> I:
        return np.full(len(numbers), len(self.row))

    def paths(self, numbers: I) -> MatchPaths:
        size = len(numbers)
        return MatchPaths(self.starts[numbers], np.zeros(size, dtype=np.int64), np.full(size, len(self.row)), self.row)


def _bindings(search_input: SearchInput) -> Bindings:
    """The variables of a pattern of single rows."""
    return np.array([second for _, _, second in search_input.plan.rule.program.instructions[:-1]], dtype=np.int8)


def _fixed(search_input: SearchInput, starts: I, limits: I) -> MatchPaths:
    """The matches of a pattern of single rows: every start with enough rows before its limit is one."""
    row = _bindings(search_input)
    last = np.where(limits - starts >= len(row), len(row), 0)
    return MatchPaths(starts, np.zeros(len(starts), dtype=np.int64), last, row)


def _limited(search_input: SearchInput, starts: I, limits: I, runs: I) -> tuple[MatchPaths, B]:
    """The matches under the limits, and the runs that take more steps than allowed."""
    lost = np.zeros(len(search_input.frame.targets), dtype=np.bool_)
    code = search_input.plan.code
    if code is None or not len(starts):
        return nothing(starts), lost
    regions, owners, of = regions_of(search_input, starts, limits, runs)
    cells = (regions.last - regions.first) * len(code.operation)
    lost[of[cells > CHEAP * search_input.steps]] = True
    group = np.cumsum(np.where(lost[of], 0, cells)) // CELLS
    matches = nothing(starts)
    for number in np.unique(group[~lost[of]]).tolist():
        here = np.flatnonzero((group == number) & ~lost[of])
        chosen = np.flatnonzero(((group == number) & ~lost[of])[owners])
        part = RowRegions(*(each[here] for each in regions))
        ends, offsets = nearest_ends(code, search_input.masks, part)
        owner = np.searchsorted(here, owners[chosen])
        matches = put(matches, chosen, paths(code, ends, offsets, part, starts[chosen], limits[chosen], owner))
    return matches, lost


def regions_of(search_input: SearchInput, starts: I, limits: I, runs: I) -> tuple[RowRegions, I, I]:
    """The rows between starts and limits, put together where they meet; the region of each start, the run of each."""
    bounds = search_input.frame.bounds
    low, high = (bounds[runs], bounds[runs + 1]) if search_input.plan.anchored else (starts, limits)
    furthest = np.maximum.accumulate(high)
    new = np.ones(len(starts), dtype=np.bool_)
    new[1:] = runs[1:] != runs[:-1]
    if not search_input.plan.anchored:
        new[1:] |= starts[1:] >= furthest[:-1]
    opening = np.flatnonzero(new)
    of = runs[opening]
    last = np.maximum.reduceat(high, opening) if len(opening) else opening
    return RowRegions(low[opening], last, bounds[of], bounds[of + 1]), np.cumsum(new) - 1, of


class _ReferenceStrategy(_NearestEndStrategy):
    """The reference matcher under each start's limit, region by region."""

    def __init__(self, search_input: SearchInput) -> None:
        super().__init__(search_input)
        self.regions, self.owners, _ = regions_of(search_input, self.starts, self.limits, self.runs)
        self._matchers: dict[int, BacktrackingMatcher] = {}

    def _walked(self, numbers: I) -> MatchPaths:
        bindings = [self._match(number) for number in numbers.tolist()]
        result = sized(self.starts[numbers], np.array([len(each) for each in bindings], dtype=np.int64))
        result.bindings[:] = [index for each in bindings for index in each]
        return result

    def _match(self, number: int) -> tuple[int, ...]:
        run, owner = int(self.runs[number]), int(self.owners[number])
        if self.lost[run]:
            return ()
        matcher, first = self._matcher(owner), int(self.regions.first[owner])
        start = int(self.starts[number]) - first
        matcher.limits[start] = int(self.limits[number]) - first  # type: ignore[index]
        try:
            path = matcher.match(start)
        except GaveUp:
            self.lost[run] = True
            return ()
        return () if path is None else path.bindings

    def _matcher(self, owner: int) -> BacktrackingMatcher:
        if owner not in self._matchers:
            rows = self.search_input.masks[int(self.regions.first[owner]) : int(self.regions.last[owner])].tolist()
            program = self.search_input.plan.rule.program
            self._matchers[owner] = BacktrackingMatcher(program, rows, [0] * len(rows), steps=self.search_input.steps)
        return self._matchers[owner]


_WORD = 64  # rows of a head whose fitting a word holds
Words = npt.NDArray[np.uint64]


def singles(head: Outline, masks: Masks, limits: MatchLimits) -> I:
    """The rows from which a pattern of single rows, the head, is there."""
    bounds, buffer = limits.bounds, np.empty(len(masks) + 1, dtype=np.int64)  # one more: for a row that is no start
    times = np.zeros(0, dtype=np.int64) if bounds.within is None else limits.times
    fits, words, depth = _worded(masks, head)
    number = _single.at(len(masks))(
        fits, words, depth, len(head) - depth, times, limits.fences, bounds.within or 0, buffer
    )
    starts = buffer[:number]
    return starts if bounds.closed is None else starts[~bounds.closed[starts]]


def _worded(masks: Masks, head: Outline) -> tuple[Masks, Words, int]:
    """What each row says of the first rows of a head, so many of them: a bit for each that it fits, by a table.

    Where masks or words are too narrow for all, a row says whether the whole head fits from there on.
    """
    if masks.dtype.itemsize > 2 or len(head) > _WORD:
        return headed(masks, head).view(np.uint8), np.arange(2, dtype=np.uint64), 1
    all_masks, words = (
        np.arange(1 << 8 * masks.dtype.itemsize),
        np.zeros(1 << 8 * masks.dtype.itemsize, dtype=np.uint64),
    )
    for place, mask in enumerate(head):
        words |= np.uint64(1 << place) * (all_masks & mask != 0 if mask else np.ones(len(all_masks), dtype=np.bool_))
    return masks, words, len(head)


@kernel
def _single(fits, words, depth, beyond, times, fences, within, output):  # type: ignore[no-untyped-def]
    """Bit i of ``state``: the rows up to here fit the first i + 1 of the head; ``beyond`` more rows must be there."""
    number, last_bit, one = 0, np.uint64(depth - 1), np.uint64(1)
    for segment in range(len(fences) - 1):
        state = np.uint64(0)
        for row in range(fences[segment], fences[segment + 1] - beyond):
            state = (state << one | one) & words[fits[row]]
            start = row - depth + 1
            whole = state >> last_bit & one
            if len(times) and whole:
                whole = np.uint64(times[row + beyond] - times[start] <= within)
            output[number] = start
            number += int(whole)
    return number


def wide_starts(plan: VectorPlan, starts: I, rows: FrameVectors) -> I:
    """The starts of a pattern of single rows but for those whose spread is surely below what ``having`` asks for.

    It is looked at in all rows of a frame; so only where the starts are no few.
    """
    for tree in plan.having:
        asked = _spread(tree, plan)
        if asked is None or len(starts) * asked.size < len(rows.rows) or not machine(len(starts) * asked.size):
            continue
        values = np.ascontiguousarray(np.broadcast_to(rows.number(asked.value), len(rows.rows)))
        passing = np.empty(len(starts) + 1, dtype=np.int64)  # one more: for a start that is refused
        number = wide_enough.at(len(starts) * asked.size)(asked.size, starts, values, asked.least, passing)
        starts = passing[:number]
    return starts


class _SpreadCondition(NamedTuple):
    """What a spread over all rows of a match, so many, is asked of; and how much it must be at least."""

    value: Node
    least: float
    size: int


def _spread(tree: Node, plan: VectorPlan) -> _SpreadCondition | None:
    """The spread that a condition asks for; None where it asks for something else."""
    if not isinstance(tree, Compare) or tree.operator not in (">", ">="):
        return None
    left, right = tree.left, tree.right
    if not isinstance(left, Call) or left.name != "std" or not isinstance(right, Number) or right.value <= 0:
        return None
    variable, bound = types.single_variable(left), {second for _, _, second in plan.rule.program.instructions[:-1]}
    everywhere = min(bound) >= 0 if variable == MATCH else bound == {plan.rule.names.index(variable)}
    size = len(plan.requirements.head)
    return (
        _SpreadCondition(value_in_row(left.arguments[0]), right.value, size)
        if everywhere and 2 <= size <= MOST
        else None
    )
