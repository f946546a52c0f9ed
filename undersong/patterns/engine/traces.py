"""The preferred match from each row along the states of an automaton, each within its own limit of time.

A match that stays within its limit is the preferred one under it, too. Where it does not, the states are made once more
from the limit backwards; after a few rows they are mostly those that they are without a limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from undersong.jit import kernel
from undersong.patterns.engine.automaton import BackwardAutomaton, StateTrace, TooManyStates
from undersong.patterns.engine.openings import MatchStarts
from undersong.patterns.engine.paths import MatchPaths
from undersong.patterns.program import ROW

STEPS = 1 << 26  # rows that are read a second time; a pattern whose states do not meet is walked in another way
_DONE = -128  # stands for the variable of what is no row instruction
_FINISHED, _UNMADE, _ROOM, _SPENT = range(4)


def traced(automaton: BackwardAutomaton, reading: StateTrace, candidate_starts: MatchStarts) -> MatchPaths:
    """The matches of the starts, or of the first ones of them where the others take too many steps.

    A start without a match within its reach has one of no rows.
    """
    starts = candidate_starts.starts
    variable = np.where(automaton.program.operation == ROW, automaton.program.second, _DONE).astype(np.int8)
    last = np.zeros(len(starts), dtype=np.int64)
    bindings, own = np.empty(8 * len(starts) + 64, dtype=np.int8), np.empty(1024, dtype=np.int32)
    trail = np.empty(len(reading.before), dtype=np.int16)
    trace = _trace.at(len(starts) * 8)
    number, steps = 0, 0
    while True:
        why, number, steps, one, other = trace(
            reading.before, reading.symbols, reading.lookup, automaton.ahead, automaton.following, variable,
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
        automaton.meet(state, int(reading.masks[row]), int(reading.lookup[reading.symbols[row]]))
    except TooManyStates:
        return False
    return True


@kernel
def _trace(  # type: ignore[no-untyped-def]
    before, symbols, lookup, ahead, following, variable, starts, reach, fences, last, bindings, own, trail, number,
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
            row, state, met = _back(before, symbols, lookup, following, start, limit, own)
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
def _back(before, symbols, lookup, following, start, limit, own):  # type: ignore[no-untyped-def]
    """The states before the rows under a limit, up to the row from which on back they are as without one.

    Gives the row and the state it has come to, and that row; it stops early before a state that has not been made.
    """
    row, state, met = limit, 0, start - 1
    while row > start and met < start:
        after = following[state, lookup[symbols[row - 1]]]
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
