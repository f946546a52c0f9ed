"""One rule on one sequence: which starts are still open, which are decided, and which matches stand."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from undersong.patterns.incremental.automaton import AutomatonState
from undersong.patterns.incremental.row_plan import RowPlan
from undersong.patterns.language.logic import Value
from undersong.patterns.reference.matcher import MatchPath, resume
from undersong.patterns.reference.search import Match, strongest

_BITS = 8  # variables up to which a mask fits a byte
SLACK = 16  # rows after which those that nobody needs are dropped together

Build: TypeAlias = Callable[[MatchPath], Match | None]


class Decided(NamedTuple):
    """A start whose preferred match no later row can change; its match takes rows before ``end`` only."""

    start: int
    end: int


class RuleState:
    """The open and decided starts of a rule, and what it must still know of the rows since the oldest of them.

    Rows are counted from the first read row of the sequence. ``masks`` and ``eager`` begin at row ``first``. ``groups``
    holds the open starts in order, together where they share a state. ``steps`` are those left before it gives up.
    """

    __slots__ = ("eager", "first", "front", "groups", "masks", "pending", "plan", "ready", "steps", "wanted")

    def __init__(self, plan: RowPlan, first: int, steps: int) -> None:
        self.plan, self.first, self.steps = plan, first, steps
        self.masks: bytearray | list[int] = bytearray() if len(plan.rule.names) <= _BITS else []
        self.eager: list[Mapping[str, Value]] | None = [] if plan.eager else None
        self.groups: dict[AutomatonState, tuple[int, ...]] = {}
        self.ready: tuple[Decided, ...] = ()
        self.pending: tuple[tuple[MatchPath, Match], ...] = ()
        self.wanted, self.front = 0, first

    def copy(self) -> RuleState:
        """The same state, to go on by itself."""
        other = RuleState(self.plan, self.first, self.steps)
        other.masks, other.eager = self.masks.copy(), None if self.eager is None else self.eager.copy()
        other.groups, other.ready, other.pending = self.groups.copy(), self.ready, self.pending
        other.wanted, other.front = self.wanted, self.front
        return other

    @property
    def idle(self) -> bool:
        """Whether nothing is open any more."""
        return not (self.groups or self.ready or self.pending)

    def close(self, before: int, end: int, last_directed: int) -> None:
        """Decide the starts before a row: no match from them takes row ``end`` or a later one."""
        still_open: dict[AutomatonState, tuple[int, ...]] = {}
        for state, starts in self.groups.items():
            closed = bisect_left(starts, before)
            if state.accepted:
                self._decide(starts[:closed], end, last_directed)
            if closed < len(starts):
                still_open[state] = starts[closed:]
        self.groups = still_open
        self.look(end)

    def take(
        self, index: int, mask: int, eager: Mapping[str, Value], opening: AutomatonState | None, last_directed: int
    ) -> None:
        """One more row, at which a start may open from the state ``opening``."""
        self.masks.append(mask)
        if self.eager is not None:
            self.eager.append(eager)
        new_step, groups = self.plan.machine.new_step, self.groups
        if opening is not None:
            self._open(groups, opening, mask, index)
        self.steps -= len(groups)
        after: dict[AutomatonState, tuple[int, ...]] = {}
        wanted, front = 0, index + 1
        for before, starts in groups.items():
            seen = mask & before.wanted
            state = before.following.get(seen) or new_step(before, seen)
            if state.places:
                earlier = after.setdefault(state, starts)
                if earlier is not starts:
                    after[state] = tuple(sorted(earlier + starts))
                wanted |= state.wanted
                if starts[0] < front:
                    front = starts[0]
            elif state.accepted:
                self._decide(starts, index + 1, last_directed)
        self.groups, self.wanted, self.front = after, wanted, front

    def _open(
        self, groups: dict[AutomatonState, tuple[int, ...]], opening: AutomatonState, mask: int, index: int
    ) -> None:
        """A start at this row, unless the row is none with which a match begins."""
        if mask & opening.wanted or opening.takes_any or opening.accepted or opening in groups:
            groups[opening] = (*groups.get(opening, ()), index)  # an older start may be where a new one begins
        else:
            self.steps -= 1

    def _decide(self, starts: Iterable[int], end: int, last_directed: int) -> None:
        """Keep decided starts; those without a row directed at the target behind them can give no finding."""
        self.ready += tuple(Decided(start, end) for start in starts if start <= last_directed)

    def end(self, rows: int, last_directed: int) -> None:
        """Decide every start: no row follows."""
        for state, starts in self.groups.items():
            if self.plan.machine.ended(state):
                self._decide(starts, rows, last_directed)
        self.groups = {}
        self.look(rows)

    def look(self, following: int) -> None:
        """Take note of the oldest open start and of what the next row must be asked."""
        self.wanted, self.front = 0, following
        for state, starts in self.groups.items():
            self.wanted |= state.wanted
            self.front = min(self.front, starts[0])

    def settle(self, build: Build, following: int, *, ended: bool) -> list[tuple[MatchPath, Match]]:
        """The matches that stand now, ``following`` being the next row.

        A match stands once its start is decided and, where the search goes on behind a match, every start before it.
        Of overlapping matches the strongest stands once no open start can overlap them any more.
        """
        self.ready = tuple(sorted(self.ready))
        while self.ready and (self.plan.independent or self.ready[0].start < self.front):
            decided, *rest = self.ready
            self.ready = tuple(rest)
            path = self._path(decided, following, ended=ended)
            match = None if path is None else build(path)
            if path is not None and match is not None:
                self.pending += ((path, match),)
                if not self.plan.independent:
                    self._skip(max(path.start + 1, resume(path, self.plan.rule.skip)), following)
        return self._final_matches(self._oldest())

    def give_up(self) -> list[tuple[MatchPath, Match]]:
        """The matches that were found before the step limit, those that still waited for a stronger one too."""
        return self._final_matches(max((path.end for path, _ in self.pending), default=0))

    def _path(self, decided: Decided, following: int, *, ended: bool) -> MatchPath | None:
        """The rows of a decided start's match."""
        start, end = decided
        masks = self.masks[start - self.first : end - self.first]
        machine = self.plan.machine
        bindings = machine.path(machine.begin(start), masks, ended=ended and end == following)
        self.steps -= len(masks)
        return None if bindings is None else MatchPath(start, bindings)

    def _skip(self, to: int, following: int) -> None:
        """Leave out the starts before a row."""
        self.ready = tuple(decided for decided in self.ready if decided.start >= to)
        remaining = {state: starts[bisect_left(starts, to) :] for state, starts in self.groups.items()}
        self.groups = {state: starts for state, starts in remaining.items() if starts}
        self.look(following)

    def _final_matches(self, oldest: int) -> list[tuple[MatchPath, Match]]:
        """The found matches that nothing can take away: all of them, or the strongest of what cannot grow any more."""
        if not self.plan.strongest:
            standing, self.pending = list(self.pending), ()
            return standing
        clusters: list[list[tuple[MatchPath, Match]]] = []
        reach = -1
        for path, match in sorted(self.pending, key=lambda item: item[0].start):
            if path.start >= reach:
                clusters.append([])
            clusters[-1].append((path, match))
            reach = max(reach, path.end)
        closed = [cluster for cluster in clusters if max(path.end for path, _ in cluster) <= oldest]
        self.pending = tuple(each for cluster in clusters[len(closed) :] for each in cluster)
        return [each for cluster in closed for each in _strongest_of(cluster)]

    def trim(self) -> None:
        """Forget the rows before the oldest that is still needed."""
        oldest = self._oldest()
        del self.masks[: oldest - self.first]
        if self.eager is not None:
            del self.eager[: oldest - self.first]
        self.first = oldest

    def _oldest(self) -> int:
        """The oldest start of which anything is still to be done."""
        return min(self.front, *(decided.start for decided in self.ready)) if self.ready else self.front


def _strongest_of(cluster: list[tuple[MatchPath, Match]]) -> list[tuple[MatchPath, Match]]:
    stand = {id(match) for match in strongest(cluster)}
    return [each for each in cluster if id(each[1]) in stand]
