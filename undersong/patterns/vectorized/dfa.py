"""The preferred match from each row: one pass back over the rows, then a walk forward that never turns round.

The pass back finds, for each place in the program and each row, the nearest end that can be reached from there. Under a
limit a branch leads to a match if and only if that end lies within it, so the walk takes the preferred branch that
does. Both are linear in rows times instructions, whatever the pattern; the backtracking reference finds the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.patterns.language.row_pattern import ACCEPT, AT_START, JUMP, ROW, SPLIT, Program
from undersong.patterns.vectorized.exact_sum import I
from undersong.patterns.vectorized.jit import ENOUGH, kernel
from undersong.patterns.vectorized.paths import MatchPaths, sized
from undersong.patterns.vectorized.vector_logic import Masks

NEVER = np.iinfo(np.int32).max
_ROW, _SPLIT, _JUMP, _AT_START, _ACCEPT = ROW, SPLIT, JUMP, AT_START, ACCEPT
Ends = np.ndarray[tuple[int], np.dtype[np.int32]]


class ProgramArrays(NamedTuple):
    """A program as arrays; ``free`` are the instructions that take no row, each after those that it leads to."""

    operation: I
    first: I
    second: I
    wanted: np.ndarray[tuple[int], np.dtype[np.uint64]]
    free: I


class RowRegions(NamedTuple):
    """Runs of rows (``first`` to before ``last``) in which matches lie, and the bounds of the sequences they are in."""

    first: I
    last: I
    begin: I
    end: I


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


def nearest_ends(program: ProgramArrays, masks: Masks, regions: RowRegions) -> tuple[Ends, I]:
    """For each region, row by row, the nearest end per instruction; and where each region's numbers begin."""
    size = len(program.operation)
    offsets = np.concatenate([[0], np.cumsum((regions.last - regions.first + 1) * size)])
    ends = np.empty(int(offsets[-1]), dtype=np.int32)
    fill = _fill.at(len(ends))
    fill(*program, masks, *regions, offsets, ends)
    return ends, offsets


@kernel
def _fill(  # type: ignore[no-untyped-def]
    operation, first, second, wanted, free, masks, region_first, region_last, begin, end, offsets, ends
) -> None:
    size = len(operation)
    rows, accepts = np.flatnonzero(operation == _ROW), np.flatnonzero(operation == _ACCEPT)
    for region in range(len(region_first)):
        low, high = region_first[region], region_last[region]
        for row in range(high, low - 1, -1):
            here = offsets[region] + (row - low) * size
            ends[here : here + size] = NEVER
            for i in accepts:
                ends[here + i] = row
            for i in rows:
                if row < high and (wanted[i] == 0 or masks[row] & wanted[i] != 0):
                    ends[here + i] = ends[here + size + i + 1]
            for i in free:
                if operation[i] == _SPLIT:
                    ends[here + i] = min(ends[here + first[i]], ends[here + second[i]])
                elif operation[i] == _JUMP:
                    ends[here + i] = ends[here + first[i]]
                elif row == (begin[region] if operation[i] == _AT_START else end[region]):
                    ends[here + i] = ends[here + i + 1]


def paths(
    program: ProgramArrays, ends: Ends, offsets: I, regions: RowRegions, starts: I, limits: I, owners: I
) -> MatchPaths:
    """The preferred match from each start (in region ``owners[i]``) that ends by ``limits[i]``."""
    size = len(program.operation)
    shifts = offsets[owners] - regions.first[owners] * size
    room = sized(starts, np.maximum(limits - starts, 0))
    walk = _walk.at(len(starts) * 20)
    walk(program.operation, program.first, program.second, ends, shifts, *room, limits)
    return room


@kernel
def _walk(operation, first, second, ends, shifts, starts, binding_first, last, bindings, limits):  # type: ignore[no-untyped-def]
    """Write the bindings from ``binding_first`` on, as many as ``last`` then says."""
    size = len(operation)
    for k in range(len(starts)):
        here, place, limit, used = shifts[k] + starts[k] * size, 0, limits[k], binding_first[k]
        if ends[here] <= limit:
            while operation[place] != _ACCEPT:
                if operation[place] == _ROW:
                    bindings[used] = second[place]
                    used += 1
                    here += size
                    place += 1
                elif operation[place] == _SPLIT:
                    preferred = first[place]
                    place = preferred if ends[here + preferred] <= limit else second[place]
                elif operation[place] == _JUMP:
                    place = first[place]
                else:
                    place += 1
        last[k] = used


MOST = 1 << 17  # states
_SLOTS = 4 * MOST
States = npt.NDArray[np.int32]
Ahead = npt.NDArray[np.int16]
NOWHERE = -1
_PLAIN = (1 << 31) - 1  # changes no index; machine code that knows it is not negative does not ask whether it is


class TooManyStates(Exception):  # noqa: N818 - says that another way is better
    """The pattern has too many states."""


class StateTrace(NamedTuple):
    """The state ``before`` each row and after the last; the class of a row is ``lookup[symbols[row]]``."""

    before: States
    symbols: npt.NDArray[np.integer]
    lookup: npt.NDArray[np.int32]
    masks: Masks


class BackwardAutomaton:
    """The states of a program without anchors and marks that have been met so far."""

    def __init__(self, program: ProgramArrays) -> None:
        self.program = program
        self.ahead: Ahead = np.full((64, len(program.operation)), NOWHERE, dtype=np.int16)
        self._classes: dict[int, int] = {}
        self.following: States = np.full((64, 8), -1, dtype=np.int32)
        _advance.at(ENOUGH)(*program, self.ahead[0], 0, True, self.ahead[0])
        self._known: States = np.zeros(_SLOTS, dtype=np.int32)  # hash table of states, each plus one; 0 is free
        self._known[_slot.at(ENOUGH)(self.ahead, 0, self._known)] = 1
        self._number = 1

    def read(self, masks: Masks, fences: I) -> StateTrace:
        """The state before each row; no match goes across a fence. Raises Crowded at too many states."""
        states = np.empty(len(masks) + 1, dtype=np.int32)
        states[-1] = 0
        rows: npt.NDArray[np.integer] = masks
        lookup = self._lookup(masks)
        if not len(lookup):
            distinct = self._sorted(masks)
            rows, lookup = np.searchsorted(distinct, masks), np.arange(len(distinct), dtype=np.int32)
        first, last = fences[:-1], fences[1:]
        segment, row, state = 0, int(last[0]) if len(last) else 0, 0
        follow = _follow.at(len(masks))
        while True:
            segment, row, state, self._number = follow(
                *self.program, rows, lookup, masks, first, last, self.ahead, self.following, self._known,
                self._number, states, segment, row, state,
            )  # fmt: skip
            if segment == len(first):
                break
            self._grow()
        return StateTrace(states, rows, lookup, masks)

    def _lookup(self, masks: Masks) -> npt.NDArray[np.int32]:
        """The class of each mask, as a table; empty where masks are too wide for one."""
        if masks.dtype.itemsize > 2:
            return np.zeros(0, dtype=np.int32)
        seen = np.zeros(1 << 8 * masks.dtype.itemsize, dtype=np.bool_)
        _see.at(len(masks))(masks, seen)
        for mask in np.flatnonzero(seen).tolist():
            self._class(mask)
        lookup = np.zeros(len(seen), dtype=np.int32)
        lookup[list(self._classes)] = list(self._classes.values())
        return lookup

    def _sorted(self, masks: Masks) -> Masks:
        """The distinct masks, which are then the classes."""
        distinct = np.unique(masks)
        self._classes = {}
        self.following[:] = -1
        for mask in distinct.tolist():
            self._class(mask)
        return distinct

    def _class(self, mask: int) -> None:
        number = self._classes.setdefault(mask, len(self._classes))
        if number == self.following.shape[1]:
            more = np.full_like(self.following, -1)
            self.following = np.concatenate([self.following, more], axis=1)

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
def _see(masks, seen):  # type: ignore[no-untyped-def]
    for mask in masks:
        seen[mask] = True


@kernel
def _slot(ahead, state, hash_table):  # type: ignore[no-untyped-def]
    """Where the hash table has a state, or has room for it."""
    number = 0
    for instruction in ahead[state]:
        number = (number * 1_000_003 + int(instruction) + 1) & 0xFFFFFFFF
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


@kernel
def _follow(  # type: ignore[no-untyped-def]
    operation, goes, other, wanted, free, rows, lookup, masks, first, last, ahead, following, hash_table, number,
    states, segment, row, state,
):  # fmt: skip
    """States backwards from a row on, up to one for which there is no room."""
    flat, width = following.ravel(), following.shape[1]
    while segment < len(first):
        while row > first[segment]:
            symbol = lookup[rows[row - 1]]
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
