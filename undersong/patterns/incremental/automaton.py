"""A lazily built automaton that knows, row by row, whether the preferred match of a start can still change.

A state is the list of places in the program that a start has reached, in the order of preference, cut off where a way
was accepted: what stands behind can no longer be preferred. Two starts with the same state have the same future, so a
transition is worked out once for each (state, mask) and looked up from then on, for every sequence. Unlike a set of
places, the list says when a match is decided: nothing stands before it any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from undersong.patterns.language.row_pattern import ACCEPT, AT_END, AT_START, JUMP, MARK, ROW, SPLIT, Program

MOST = 400_000  # places that the states remembered for a rule may hold; beyond them the memory starts anew
_STATE = 10  # what a state takes besides its places, in places

BackPointer: TypeAlias = tuple[
    Any, int
]  # the way before its last row (None: that was its first), and that row's variable


class EpsilonClosure(NamedTuple):
    """What a way waits for once it has taken a row: ``places`` in the order of preference, up to where it is accepted.

    ``wanted`` has the bits that decide their next step, ``LazyAutomaton.any`` among them where any row will do.
    """

    places: dict[int, None]
    accepted: bool
    wanted: int


class AutomatonState:
    """``places`` that wait for a row (or for the end), most preferred first; ``accepted``: a way behind them was.

    ``wanted`` has the bits that decide the next step. Without places the start is decided.
    """

    __slots__ = ("accepted", "following", "places", "takes_any", "wanted")

    def __init__(self, places: tuple[int, ...], accepted: bool, wanted: int, takes_any: bool) -> None:
        self.places, self.accepted, self.wanted, self.takes_any = places, accepted, wanted, takes_any
        self.following: dict[int, AutomatonState] = {}


class LazyAutomaton:
    """The automaton of one program, shared by all sequences; ``work`` counts the instructions looked at so far.

    ``any`` is a bit beside those of the variables, which every row has.
    """

    def __init__(self, program: Program) -> None:
        self.instructions = program.instructions
        self.has_end = any(operation == AT_END for operation, _, _ in self.instructions)
        self.any = 1 << max((wanted for kind, wanted, _ in self.instructions if kind == ROW), default=0).bit_length()
        self._asked = [(wanted or self.any) if operation == ROW else 0 for operation, wanted, _ in self.instructions]
        self.work = 0
        self.states: dict[tuple[tuple[int, ...], bool], AutomatonState] = {}
        self._remembered = 0
        self._closures: dict[int, EpsilonClosure] = {}
        self.first, self.later = self._start(at_start=True), self._start(at_start=False)

    def begin(self, index: int) -> AutomatonState:
        """The state of a start before its first row; ``index`` is that row's place in the sequence."""
        return self.later if index else self.first

    def step(self, state: AutomatonState, mask: int) -> AutomatonState:
        """The state after one more row."""
        seen = mask & state.wanted
        after = state.following.get(seen)
        return self.new_step(state, seen) if after is None else after

    def ended(self, state: AutomatonState) -> bool:
        """Whether a start has a match when no row follows."""
        visited: set[tuple[int, int]] = set()
        return any(self._holds_at_end(place, visited) for place in state.places) or state.accepted

    def path(self, state: AutomatonState, masks: Iterable[int], *, ended: bool) -> tuple[int, ...] | None:
        """The variables of the preferred match of a start over these rows; ``ended`` where no row follows them.

        As ``step``, with each way's last row and the way before it kept: it takes rows times places, whatever the rule.
        """
        ways: dict[int, BackPointer | None] = dict.fromkeys(state.places)
        best: BackPointer | None = None
        instructions, asked, closures = self.instructions, self._asked, self._closures
        for mask in masks:
            seen = mask | self.any
            after: dict[int, BackPointer | None] = {}
            for place, way in ways.items():
                if asked[place] & seen:
                    taken = way, instructions[place][2]
                    closure = closures.get(place) or self._after(place)
                    for following in closure.places:
                        after.setdefault(following, taken)
                    if closure.accepted:
                        best = taken
                        break
            ways = after
            if not ways:
                break
        if ended:
            visited: set[tuple[int, int]] = set()
            ends = (way for place, way in ways.items() if self._holds_at_end(place, visited))
            best = next(ends, best)
        return None if best is None else _bindings(best)

    def _holds_at_end(self, place: int, visited: set[tuple[int, int]]) -> bool:
        return self.instructions[place][0] == AT_END and self._follow(place + 1, visited, {}, at_end=True)

    def _start(self, *, at_start: bool) -> AutomatonState:
        places: dict[int, None] = {}
        accepted = self._follow(0, set(), places, at_start=at_start)
        return self._state(tuple(places), accepted, self._wanted(places))

    def new_step(self, state: AutomatonState, mask: int) -> AutomatonState:
        """A step that is not in ``following`` yet; ``mask`` has nothing but what the state wants."""
        places: dict[int, None] = {}
        accepted, wanted, seen = state.accepted, 0, mask | self.any
        asked, closures = self._asked, self._closures
        for place in state.places:
            if asked[place] & seen:
                closure = closures.get(place) or self._after(place)
                places.update(closure.places)  # what is there already keeps its place: the first way is preferred
                wanted |= closure.wanted
                self.work += len(closure.places)
                if closure.accepted:
                    accepted = True
                    break
        after = self._state(tuple(places), accepted, wanted)
        self._remember(len(places))
        state.following[mask] = after
        return after

    def _after(self, place: int) -> EpsilonClosure:
        """What a way waits for once it has taken a row at ``place``."""
        closure = self._closures.get(place)
        if closure is None:
            places: dict[int, None] = {}
            accepted = self._follow(place + 1, set(), places)
            self._remember(len(places))
            closure = self._closures[place] = EpsilonClosure(places, accepted, self._wanted(places))
        return closure

    def _wanted(self, places: Iterable[int]) -> int:
        wanted = 0
        for place in places:
            wanted |= self._asked[place]
        return wanted

    def _state(self, places: tuple[int, ...], accepted: bool, wanted: int) -> AutomatonState:
        state = self.states.get((places, accepted))
        if state is None:
            state = self.states[places, accepted] = AutomatonState(
                places, accepted, wanted & ~self.any, wanted & self.any != 0
            )
        return state

    def _remember(self, places: int) -> None:
        self._remembered += _STATE + places
        if self._remembered > MOST:
            for state in (*self.states.values(), self.first, self.later):
                state.following.clear()
            self.states.clear()
            self._closures.clear()
            self._remembered = 0

    def _follow(
        self,
        place: int,
        visited: set[tuple[int, int]],
        places: dict[int, None],
        *,
        at_start: bool = False,
        at_end: bool = False,
    ) -> bool:
        """Add the places that wait for a row, in order of preference; True as soon as one way is accepted.

        ``visited`` pairs each place with the repetitions that began at this row: all that a way's past can decide.
        """
        stack = [(place, 0)]
        while stack:
            place, marked = stack.pop()
            while (place, marked) not in visited:
                visited.add((place, marked))
                self.work += 1
                operation, first, second = self.instructions[place]
                if operation == ACCEPT:
                    return True
                if operation == ROW or (operation == AT_END and not at_end):
                    places.setdefault(place)
                    break
                if operation == SPLIT:
                    stack.append((second, marked))
                    place = first
                elif operation == JUMP:
                    place = first
                elif operation == MARK:
                    place, marked = place + 1, marked | 1 << first
                elif operation == AT_START:
                    if not at_start:
                        break
                    place += 1
                else:  # STOP_IF_EMPTY, or the end where it is the end
                    place = second if operation != AT_END and marked >> first & 1 else place + 1
        return False


def _bindings(way: BackPointer | None) -> tuple[int, ...]:
    variables = []
    while way is not None:
        way, variable = way
        variables.append(variable)
    return tuple(reversed(variables))
