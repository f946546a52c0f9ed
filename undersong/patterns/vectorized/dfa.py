"""A deterministic automaton that reads rows backwards: its state before a row is what lies ahead of each instruction.

The state says whether a match begins at the row and which branch the preferred match takes at each choice. States are
made when rows ask for them. Linear in rows, whatever the pattern; the backtracking reference finds the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.patterns.language.row_pattern import ACCEPT, JUMP, ROW, SPLIT, Program
from undersong.patterns.vectorized.exact_sum import I
from undersong.patterns.vectorized.jit import ENOUGH, kernel, machine
from undersong.patterns.vectorized.layout import Bindings, MatchLimits, MatchPaths, joined, sized
from undersong.patterns.vectorized.start_filter import MatchRequirements, with_enough_rows
from undersong.patterns.vectorized.vector_logic import B, Masks

_ROW, _SPLIT, _ACCEPT = ROW, SPLIT, ACCEPT


class ProgramArrays(NamedTuple):
    """A program as arrays; ``free`` are the instructions that take no row, each after those that it leads to."""

    operation: I
    first: I
    second: I
    wanted: np.ndarray[tuple[int], np.dtype[np.uint64]]
    free: I


def program_arrays(program: Program) -> ProgramArrays:
    """The arrays of a program without marks."""
    operation, first, second = (np.array(part, dtype=np.int64) for part in _columns(program))
    wanted = np.array([each[1] if each[0] == ROW else 0 for each in program.instructions], dtype=np.uint64)
    first = np.where(operation == ROW, 0, first)
    return ProgramArrays(operation, first, second, wanted, np.array(_free(program), dtype=np.int64))


def _columns(program: Program) -> list[list[int]]:
    rows = [(operation, 0 if operation == ROW else first, second) for operation, first, second in program.instructions]
    return [[row[i] for row in rows] for i in range(3)]


def _free(program: Program) -> list[int]:
    """The instructions that take no row, in an order in which each comes after those that it leads to."""
    ordered: dict[int, None] = {}
    for start in range(len(program.instructions)):
        waiting = [(start, False)]
        while waiting:
            place, below_done = waiting.pop()
            if program.instructions[place][0] in (ROW, ACCEPT) or place in ordered:
                continue
            if below_done:
                ordered[place] = None
                continue
            waiting.append((place, True))
            waiting += [(after, False) for after in _after(program, place)]
    return list(ordered)


def _after(program: Program, place: int) -> tuple[int, ...]:
    operation, first, second = program.instructions[place]
    if operation == SPLIT:
        return first, second
    return (first,) if operation == JUMP else (place + 1,)


MOST = 1 << 17  # states
_SLOTS = 4 * MOST
States = npt.NDArray[np.int32]
Ahead = npt.NDArray[np.int16]
NOWHERE = -1
_WIDE = 20  # segments side by side from which on it is quicker to follow all of them at once, without machine code
_PLAIN = (1 << 31) - 1  # changes no index; machine code that knows it is not negative does not ask whether it is


class TooManyStates(Exception):  # noqa: N818 - says that another way is better
    """The pattern has too many states."""


class StateTrace(NamedTuple):
    """The state ``before`` each row and after the last, and the symbol of each row."""

    before: States
    symbols: npt.NDArray[np.integer]
    masks: Masks


class BackwardAutomaton:
    """The states of a program without anchors and marks that have been met so far."""

    def __init__(self, program: ProgramArrays) -> None:
        self.program = program
        self.ahead: Ahead = np.full((64, len(program.operation)), NOWHERE, dtype=np.int16)
        self.following: States = np.full((64, 256), -1, dtype=np.int32)
        _advance.at(ENOUGH)(*program, self.ahead[0], 0, True, self.ahead[0])
        self._known: States = np.zeros(_SLOTS, dtype=np.int32)  # hash table of states, each plus one; 0 is free
        self._known[_slot.at(ENOUGH)(self.ahead, 0, self._known)] = 1
        self._number = 1

    def read(self, masks: Masks, fences: I) -> StateTrace:
        """The state before each row; no match goes across a fence. Raises Crowded at too many states."""
        states = np.empty(len(masks) + 1, dtype=np.int32)
        states[-1] = 0
        symbols = self._symbols(masks)
        first, last = fences[:-1], fences[1:]
        if _follow.at(len(masks)) is _follow.plain and _WIDE * np.diff(fences).max(initial=0) < len(masks):
            self._side_by_side(symbols, masks, first, last, states)
            return StateTrace(states, symbols, masks)
        segment, row, state = 0, int(last[0]) if len(last) else 0, 0
        follow = _follow.at(len(masks))
        while True:
            segment, row, state, self._number = follow(
                *self.program, symbols, masks, first, last, self.ahead, self.following, self._known,
                self._number, states, segment, row, state,
            )  # fmt: skip
            if segment == len(first):
                break
            self._grow()
        return StateTrace(states, symbols, masks)

    def _side_by_side(self, symbols: npt.NDArray[np.integer], masks: Masks, first: I, last: I, states: States) -> None:
        """The states before the last row of each segment, then before the last but one, and so on."""
        order = np.argsort(first - last, kind="stable")  # the longest first
        shortest_first, last, before = -(last - first)[order], last[order], np.zeros(len(order), dtype=np.int64)
        for step in range(1, 1 - int(shortest_first.min(initial=0))):
            count = int(np.searchsorted(shortest_first, -step, side="right"))
            rows, before = last[:count] - step, before[:count]
            read = symbols[rows].astype(np.int64)
            after = self.following[before, read]
            unmade = np.flatnonzero(after < 0)
            if len(unmade):
                _, some = np.unique(before[unmade] * self.following.shape[1] + read[unmade], return_index=True)
                for k in unmade[some].tolist():
                    self.meet(int(before[k]), int(masks[rows[k]]), int(read[k]))
                after = self.following[before, read]
            states[rows], before = after, after.astype(np.int64)

    def _symbols(self, masks: Masks) -> npt.NDArray[np.integer]:
        """The alphabet: a mask of one byte is its own symbol, wider ones are numbered anew for each reading."""
        if masks.dtype.itemsize == 1:
            return masks
        distinct = np.unique(masks)
        self.following = np.full((len(self.ahead), len(distinct)), -1, dtype=np.int32)
        return np.searchsorted(distinct, masks)

    def meet(self, state: int, mask: int, number: int) -> None:
        """Make the state before a row of this mask. Raises Crowded at too many states."""
        if self._number == len(self.ahead):
            self._grow()
        self._number = _meet.at(ENOUGH)(
            *self.program, self.ahead, self.following, self._known, self._number, state, np.uint64(mask), number
        )

    def _grow(self) -> None:
        """Room for twice as many states."""
        if len(self.ahead) >= MOST or self.following.size > _PLAIN // 2:
            raise TooManyStates
        self.ahead = np.concatenate([self.ahead, np.full_like(self.ahead, NOWHERE)])
        self.following = np.concatenate([self.following, np.full_like(self.following, -1)])

    @property
    def opens(self) -> npt.NDArray[np.bool_]:
        """Whether a match begins before a row, by the state there."""
        return np.asarray(self.ahead[:, 0] != NOWHERE)

    def begins(self, states: States) -> I:
        """The rows from which a match is there."""
        return np.flatnonzero(self.opens[states[:-1]])


@kernel
def _advance(operation, first, second, wanted, free, after, mask, at_end, ahead):  # type: ignore[no-untyped-def]
    """From what lies ahead after a row to what lies ahead before it."""
    for i in range(len(operation)):
        takes = not at_end and operation[i] == _ROW and (wanted[i] == 0 or np.uint64(mask) & wanted[i] != 0)
        ahead[i] = i if operation[i] == _ACCEPT or (takes and after[i + 1] != NOWHERE) else NOWHERE
    for i in free:
        ahead[i] = ahead[first[i]]
        if operation[i] == _SPLIT and ahead[i] == NOWHERE:
            ahead[i] = ahead[second[i]]


@kernel
def _slot(ahead, state, hash_table):  # type: ignore[no-untyped-def]
    """Where the hash table has a state, or has room for it."""
    weights = np.arange(1, ahead.shape[1] + 1) * 0x9E3779B1 & 0xFFFFFFFF
    number = np.sum((ahead[state] + 1) * weights)
    place = (number ^ (number >> 15)) & (len(hash_table) - 1)
    while hash_table[place] > 0 and not np.array_equal(ahead[hash_table[place] - 1], ahead[state]):
        place = (place + 1) & (len(hash_table) - 1)
    return place


@kernel
def _meet(  # type: ignore[no-untyped-def]
    operation, first, second, wanted, free, ahead, following, hash_table, number, state, mask, symbol
):
    """Write down the state before a row; gives how many states there are then. There must be room for one more."""
    _advance(operation, first, second, wanted, free, ahead[state], mask, False, ahead[number])
    place = _slot(ahead, number, hash_table)
    if hash_table[place] == 0:
        number += 1
        hash_table[place] = number
    following[state, symbol] = hash_table[place] - 1
    return number


@_meet.otherwise
def _meet_by_lists(  # type: ignore[no-untyped-def]
    operation, first, second, wanted, free, ahead, following, hash_table, number, state, mask, symbol
):
    """The same, with all instructions that take a row at once, and lists for the others."""
    takes = (operation == _ROW) & ((wanted == 0) | (mask & wanted != 0))
    takes[:-1] &= ahead[state, 1:] != NOWHERE
    places = np.where(takes | (operation == _ACCEPT), np.arange(len(operation)), NOWHERE).tolist()
    other = np.where(operation[free] == _SPLIT, second[free], first[free])
    for i, one, two in zip(free.tolist(), first[free].tolist(), other.tolist(), strict=True):
        places[i] = places[one] if places[one] != NOWHERE else places[two]
    ahead[number] = places
    place = _slot(ahead, number, hash_table)
    if hash_table[place] == 0:
        number += 1
        hash_table[place] = number
    following[state, symbol] = hash_table[place] - 1
    return number


@kernel
def _follow(  # type: ignore[no-untyped-def]
    operation, goes, other, wanted, free, symbols, masks, first, last, ahead, following, hash_table, number,
    states, segment, row, state,
):  # fmt: skip
    """States backwards from a row on, up to one for which there is no room."""
    flat, width = following.ravel(), following.shape[1]
    while segment < len(first):
        while row > first[segment]:
            symbol = int(symbols[row - 1])
            after = flat[(state * width + symbol) & _PLAIN]
            if after < 0:
                if number == len(ahead):
                    return segment, row, state, number
                mask = np.uint64(masks[row - 1])
                number = _meet(
                    operation, goes, other, wanted, free, ahead, following, hash_table, number, state, mask, symbol
                )
                after = following[state, symbol]
            row, state = row - 1, after
            states[row] = state
        segment += 1
        if segment < len(first):
            row, state = last[segment], 0
    return segment, row, state, number


def compiled(size: int) -> bool:
    """Whether machine code reads so many rows: it is made for many, and once it is there it is used for few, too."""
    return machine(size, _advance, _slot, _meet, _follow, _trace)


STEPS = 1 << 26  # rows that are read a second time; a pattern whose states do not meet is walked in another way
_TOGETHER = 1 << 16  # starts that are traced at once
_DONE = -128  # stands for the variable of what is no row instruction
_FINISHED, _UNMADE, _ROOM, _SPENT = range(4)


def traced(automaton: BackwardAutomaton, reading: StateTrace, candidate_starts: MatchStarts) -> MatchPaths:
    """The matches of the starts, or of the first ones of them where the others take too many steps.

    A start without a match within its reach has one of no rows.
    """
    variable = np.where(automaton.program.operation == ROW, automaton.program.second, _DONE).astype(np.int8)
    starts = candidate_starts.starts
    if _trace.at(len(starts) * 8) is not _trace.plain:
        return _traced_in_turn(automaton, reading, candidate_starts, variable)
    lots = range(0, max(len(starts), 1), _TOGETHER)
    parts = [
        _traced_at_once(
            automaton, reading, candidate_starts.at(np.arange(lot, min(lot + _TOGETHER, len(starts)))), variable
        )
        for lot in lots
    ]
    paths, limited = joined([part for part, _ in parts]), np.flatnonzero(np.concatenate([part for _, part in parts]))
    others = _traced_in_turn(automaton, reading, candidate_starts.at(limited), variable)
    number, shift = len(others.starts), len(paths.bindings)
    paths.first[limited[:number]], paths.last[limited[:number]] = others.first + shift, others.last + shift
    done = len(starts) if number == len(limited) else int(limited[number])
    bindings = np.concatenate([paths.bindings, others.bindings])
    return MatchPaths(starts[:done], paths.first[:done], paths.last[:done], bindings)


def _traced_at_once(
    automaton: BackwardAutomaton, reading: StateTrace, candidate_starts: MatchStarts, variable: Bindings
) -> tuple[MatchPaths, B]:
    """The matches, row by row of all of them; and which go beyond their reach, so that they are not there yet."""
    starts, reach, fences = candidate_starts
    left, row = np.arange(len(starts)), starts
    place = automaton.ahead[reading.before[row], 0].astype(np.int64)
    sizes, limited = np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts), dtype=np.bool_)
    steps: list[tuple[I, Bindings]] = []
    while len(left):
        going = variable[place] != _DONE
        limited[left[going & (row == reach[left])]] = True
        going &= row < reach[left]
        left, row, place = left[going], row[going] + 1, place[going]
        sizes[left] += 1
        steps.append((left, variable[place]))
        place = automaton.ahead[np.where(row < fences[left], reading.before[row], 0), place + 1].astype(np.int64)
    sizes[limited] = 0
    paths = sized(starts, sizes)
    for step, (owners, bound) in enumerate(steps):
        there = ~limited[owners]
        paths.bindings[paths.first[owners[there]] + step] = bound[there]
    return paths, limited


def _traced_in_turn(
    automaton: BackwardAutomaton, reading: StateTrace, candidate_starts: MatchStarts, variable: Bindings
) -> MatchPaths:
    """One after the other, as ``traced`` has them."""
    starts = candidate_starts.starts
    last = np.zeros(len(starts), dtype=np.int64)
    bindings, own = np.empty(8 * len(starts) + 64, dtype=np.int8), np.empty(1024, dtype=np.int32)
    trail = np.empty(len(reading.before), dtype=np.int16)
    trace = _trace.at(len(starts) * 8)
    number, steps = 0, 0
    while True:
        why, number, steps, one, other = trace(
            reading.before, reading.symbols, automaton.ahead, automaton.following, variable,
            *candidate_starts, last, bindings, own, trail, number, steps,
        )  # fmt: skip
        if why == _ROOM:
            bindings, own = _longer(bindings, one), _longer(own, other)
        elif why != _UNMADE or not _made(automaton, reading, one, other):
            break
    last = last[:number]
    return MatchPaths(
        starts[:number], np.concatenate([np.zeros(min(number, 1), dtype=np.int64), last[:-1]]), last, bindings
    )


def _longer(array: Any, size: int) -> Any:
    return array if size <= len(array) else np.concatenate([array, np.empty(size - len(array), dtype=array.dtype)])


def _made(automaton: BackwardAutomaton, reading: StateTrace, state: int, row: int) -> bool:
    """Whether the state before a row could be made."""
    try:
        automaton.meet(state, int(reading.masks[row]), int(reading.symbols[row]))
    except TooManyStates:
        return False
    return True


@kernel
def _trace(  # type: ignore[no-untyped-def]
    before, symbols, ahead, following, variable, starts, reach, fences, last, bindings, own, trail, number,
    steps,
):  # fmt: skip
    """Bindings of the matches from one start on; stops where a state has to be made, or an array is too short.

    ``trail`` holds the instruction at each row up to before ``known``, the end of the match before: two matches that
    are at the same one go on alike.
    """
    trail_end = 0
    for k in range(number, len(starts)):
        start, fence, used, limit = starts[k], fences[k], last[k - 1] if k else 0, -1
        row, at, place = start, used, ahead[before[start], 0]
        trail_end = trail_end if trail_end <= reach[k] else 0
        while variable[place] != _DONE:
            if row == reach[k]:
                limit = row
                break
            rest = trail_end - row if row < trail_end and trail[row] == place else 0
            if at + rest >= len(bindings):
                return _ROOM, k, steps, 2 * (at + rest), 0
            if rest > 0:
                _again(bindings, used - rest, at, rest)
                at, row = at + rest, trail_end
                break
            trail[row], bindings[at] = place, variable[place]
            at, row = at + 1, row + 1
            place = ahead[before[row] if row < fence else 0, place + 1]
        if limit >= 0:
            if steps > STEPS:
                return _SPENT, k, steps, 0, 0
            if limit - start > len(own):
                return _ROOM, k, steps, 0, 2 * (limit - start)
            row, state, met = _back(before, symbols, following, start, limit, own)
            if row > start and met < start:
                return _UNMADE, k, steps, state, row - 1
            steps += limit - row
            at = _bind(before, own, ahead, variable, start, limit, met, bindings, used)
        trail_end, last[k] = row if limit < 0 else 0, at
    return _FINISHED, len(starts), steps, 0, 0


@kernel
def _again(bindings, first, at, size):  # type: ignore[no-untyped-def]
    for i in range(size):
        bindings[at + i] = bindings[first + i]


@kernel
def _back(before, symbols, following, start, limit, own):  # type: ignore[no-untyped-def]
    """The states before the rows under a limit, up to the row from which on back they are as without one.

    Gives the row and the state it has come to, and that row; it stops early before a state that has not been made.
    """
    row, state, met = limit, 0, start - 1
    while row > start and met < start:
        after = following[state, symbols[row - 1]]
        if after < 0:
            break
        row, state = row - 1, after
        own[row - start] = state
        if state == before[row]:
            met = row
    return row, state, met


@kernel
def _bind(before, own, ahead, variable, start, limit, met, bindings, at):  # type: ignore[no-untyped-def]
    """Write down the match under a limit; gives the place after its last row."""
    row, place = start, ahead[before[start] if met >= start else own[0], 0]
    while place >= 0 and variable[place] != _DONE:
        bindings[at] = variable[place]
        at, row = at + 1, row + 1
        state = 0 if row >= limit else before[row] if row <= met else own[row - start]
        place = ahead[state, place + 1]
    return at


class MatchStarts(NamedTuple):
    """Rows of a frame from which there is a match, ascending; one past the furthest that it takes; the fence after."""

    starts: I
    reach: I
    fences: I

    def at(self, numbers: I | B) -> MatchStarts:
        """Some of them."""
        return MatchStarts(*(part[numbers] for part in self))


def match_starts(
    automaton: BackwardAutomaton, reading: StateTrace, limits: MatchLimits, wanted: MatchRequirements
) -> MatchStarts:
    """The starts whose matches may bind as many rows of each kind as ``having`` asks for.

    They may be too many: the match itself is not known yet, only where it ends at the latest.
    """
    closed, starts = limits.bounds.closed, automaton.begins(reading.before)
    starts = starts if closed is None else starts[~closed[starts]]
    starts, reach = with_enough_rows(wanted, reading.masks, starts, limits.of(starts))
    return MatchStarts(starts, reach, limits.fence(starts))
