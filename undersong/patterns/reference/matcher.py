"""The reference matcher: plain backtracking in the preference order of SQL:2016, which returns the path.

From each start row it tries the alternatives in the order of preference (the first branch of an alternation, more of a
greedy and fewer of a reluctant quantifier) and takes the first way through. A state (place in the program, row) that
has failed once fails again, and one that led to a match leads to the same rows again, so that none is tried twice; that
changes no result. An explicit stack keeps long sequences
clear of Python's recursion limit, and a step limit bounds the worst pattern: then the search says that it gave up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from undersong.patterns.language.row_pattern import (  # fmt: skip
    ACCEPT,
    AT_END,
    AT_START,
    JUMP,
    MARK,
    ROW,
    SPLIT,
    STOP_IF_EMPTY,
    Program,
    Skip,
)

STEPS = 5_000_000  # per sequence: a few seconds, far beyond what the shipped rules need on 10,000 rows


_State: TypeAlias = tuple[int, int, tuple[int, ...]]  # place in the program, row, slots


class MatchPath(NamedTuple):
    """A match: the first row's index, and per row the index of its variable (-1: passed over with ANY)."""

    start: int
    bindings: tuple[int, ...]

    @property
    def end(self) -> int:
        """One past the last row."""
        return self.start + len(self.bindings)


class GaveUp(Exception):  # noqa: N818 - an outcome of a search, not an error
    """The step limit was reached."""


class BacktrackingMatcher:
    """One program on one sequence of row masks.

    ``limits[i]`` is one past the furthest row that a match from row i may take (see ``partitions.limits``); it never
    falls from one row to the next. ``furthest`` is the last row that what it found so far depends on, or a later one;
    it is at a limit where that decided something.
    """

    def __init__(
        self,
        program: Program,
        masks: Sequence[int],
        limits: Sequence[int],
        *,
        steps: int = STEPS,
        remember: bool = True,
    ) -> None:
        self.program, self.masks, self.limits = program, masks, limits
        self.steps, self.remember = steps, remember
        self._seen: dict[_State, MatchPath | None] = {}  # states that were tried, with the match that they led to
        self._limit = self.furthest = -1

    def match(self, start: int) -> MatchPath | None:
        """The preferred match from row ``start``; raises GaveUp at the step limit."""
        if self.limits[start] != self._limit:
            if self.furthest >= self._limit:  # what came of a state under a nearer limit may be something else now
                self._seen, self.furthest = {}, -1
            self._limit = self.limits[start]
        return self._run(start)

    def _run(self, start: int) -> MatchPath | None:
        instructions, masks, limit, seen = self.program.instructions, self.masks, self._limit, self._seen
        bindings, way = [0] * (limit - start), list[_State]()  # the states on the way to the current row
        stack = [(0, start, (-1,) * self.program.slots, 0)]
        while stack:
            place, row, slots, size = stack.pop()
            del way[size:]
            while True:
                self.steps -= 1
                operation, first, second = instructions[place]
                place += 1
                if operation == ROW:
                    if row >= limit or (first and not masks[row] & first):
                        break
                    bindings[row - start] = second
                    row += 1
                elif operation == SPLIT:
                    state = (place, row, slots)
                    if state in seen:
                        further = seen[state]
                        if further is None:
                            break
                        rest = further.bindings[row - further.start :]
                        return self._found(MatchPath(start, (*bindings[: row - start], *rest)), way)
                    self._enter(state, way)
                    stack.append((second, row, slots, len(way)))
                    place = first
                elif operation == ACCEPT:
                    return self._found(MatchPath(start, tuple(bindings[: row - start])), way)
                else:
                    place, slots = self._other(operation, first, second, place, row, slots)
                    if place < 0:
                        break
            self._turn_back(row)
        return None

    def _enter(self, state: _State, way: list[_State]) -> None:
        if self.remember:
            self._seen[state] = None
            way.append(state)

    def _turn_back(self, row: int) -> None:
        self.furthest = max(self.furthest, row)
        if self.steps <= 0:
            raise GaveUp

    def _found(self, path: MatchPath, way: Sequence[_State]) -> MatchPath:
        self.furthest = max(self.furthest, path.end - 1)
        self._seen.update(dict.fromkeys(way, path))
        return path

    def _other(
        self, operation: int, first: int, second: int, place: int, row: int, slots: tuple[int, ...]
    ) -> tuple[int, tuple[int, ...]]:
        """The next place (-1: failed) and slots after JUMP, an anchor or a mark."""
        if operation == JUMP:
            return first, slots
        if operation == MARK:
            return place, (*slots[:first], row, *slots[first + 1 :])
        if operation == STOP_IF_EMPTY:
            return (second if slots[first] == row else place), slots
        holds = row == 0 if operation == AT_START else operation == AT_END and row == len(self.masks)
        return (place if holds else -1), slots


def find_all(matcher: BacktrackingMatcher, skip: Skip, keep: Callable[[MatchPath], bool]) -> list[MatchPath]:
    """The matches from the first row on; one that ``keep`` refuses is none, and the search goes on at the next row."""
    paths = []
    row = 0
    while row < len(matcher.masks):
        path = matcher.match(row)
        if path is None or not keep(path):
            row += 1
            continue
        paths.append(path)
        row = max(row + 1, resume(path, skip))
    return paths


def resume(path: MatchPath, skip: Skip) -> int:
    """The next start; a skip to a variable that is not bound, or to the first row itself, is one to the next row."""
    if skip.to == "past":
        return path.end
    places = [path.start + i for i, variable in enumerate(path.bindings) if variable == skip.variable]
    if skip.to == "next" or not places:
        return path.start + 1
    return places[0] if skip.to == "first" else places[-1]
