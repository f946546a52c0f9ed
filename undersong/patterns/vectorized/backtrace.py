"""The preferred match from each row along the states of an automaton, each within its own limit of time.

A match that stays within its limit is the preferred one under it, too. Where it does not, the states are made once more
from the limit backwards; after a few rows they are mostly those that they are without a limit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from undersong.patterns.language.row_pattern import ROW
from undersong.patterns.vectorized.dfa import BackwardAutomaton, StateTrace, TooManyStates
from undersong.patterns.vectorized.exact_sum import I
from undersong.patterns.vectorized.jit import kernel, machine
from undersong.patterns.vectorized.layout import MatchLimits, after
from undersong.patterns.vectorized.paths import MatchPaths
from undersong.patterns.vectorized.start_filter import MatchRequirements, with_enough_rows
from undersong.patterns.vectorized.vector_logic import B

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


_EVER = np.iinfo(np.int64).max


class MatchStarts(NamedTuple):
    """Rows of a frame from which there is a match, ascending; one past the furthest that it takes; the fence after."""

    starts: I
    reach: I
    fences: I

    def at(self, numbers: I | B) -> MatchStarts:
        """Some of them."""
        return MatchStarts(*(part[numbers] for part in self))


def match_starts(
    automaton: BackwardAutomaton, reading: StateTrace, limits: MatchLimits, wanted: MatchRequirements, *, targeted: bool
) -> MatchStarts:
    """The starts whose matches may bind a row directed at the target, and as many rows of each kind as ``having`` asks.

    They may be too many: the match itself is not known yet, only that it ends where no row is taken.
    """
    closed = limits.bounds.closed
    if machine(len(reading.before)):
        result = _in_one_go(automaton, reading, limits, wanted, targeted=targeted)
        return result if closed is None else result.at(~closed[result.starts])
    starts = automaton.begins(reading.before)
    starts = starts if closed is None else starts[~closed[starts]]
    starts, reach = with_enough_rows(wanted, reading.masks, starts, limits.of(starts))
    return MatchStarts(starts, reach, limits.fence(starts))


def _in_one_go(
    automaton: BackwardAutomaton, reading: StateTrace, limits: MatchLimits, wanted: MatchRequirements, *, targeted: bool
) -> MatchStarts:
    table, bounds, opens, size = limits.table, limits.bounds, automaton.opens, len(reading.before)
    counts = (*wanted.counts, (0, 0), (0, 0))[:2]  # the matches answer for the others
    counted = np.uint64(counts[0][0]), np.uint64(counts[1][0])
    needed = counts[0][1], counts[1][1]
    targets = table.targets if targeted else np.zeros(0, dtype=np.int32)
    spans = (_EVER if each is None else each for each in (bounds.within, bounds.longest))
    buffers = MatchStarts(
        *(np.empty(size, dtype=np.int64) for _ in MatchStarts._fields)
    )  # what is not filled is not touched
    first = _open.at(size)(
        reading.before, opens, limits.fences, _bound(limits, targeted=targeted), limits.frame.rows, table.times,
        targets, *spans, reading.masks, counted, needed, *buffers,
    )  # fmt: skip
    return MatchStarts(*(part[first:] for part in buffers))


def _bound(limits: MatchLimits, *, targeted: bool) -> I:
    """How many directed rows a match in each stretch between fences has to bind: one in a sequence with a target."""
    first = limits.fences[:-1]
    if not targeted:
        return np.zeros(len(first), dtype=np.int64)
    return (limits.frame.targets[after(limits.frame.bounds, first) - 1] >= 0).astype(np.int64)


@kernel
def _open(  # type: ignore[no-untyped-def]
    before, opens, fences, bound, rows, times, targets, within, longest, masks, counted, needed, starts, reach, ends
):
    """Fills the arrays from the back, and gives the first place filled.

    A match ends at the latest where nothing but the end lies ahead: that is state 0. From ``row`` to ``last`` it can
    go; how many rows of each kind stand there is counted as both ends move back. ``near`` is the first row from
    ``seen`` on that can be bound and is directed at the target.
    """
    place, (one, other) = len(starts), counted
    counting = one != 0 or other != 0
    for stretch in range(len(fences) - 2, -1, -1):
        last = near = seen = fences[stretch + 1]
        ones = others = 0
        for row in range(fences[stretch + 1] - 1, fences[stretch] - 1, -1):
            if before[row] == 0:
                last = near = seen = row
                ones = others = 0
                continue
            if counting:
                mask = np.uint64(masks[row])
                ones, others = ones + (mask & one != 0), others + (mask & other != 0)
            if not opens[before[row]]:
                continue
            latest = times[rows[row]] + within if within < _EVER else _EVER
            while last - row > longest or times[rows[last - 1]] > latest:
                last -= 1
                mask = np.uint64(masks[last])
                ones, others = ones - (mask & one != 0), others - (mask & other != 0)
            if bound[stretch] > 0:
                near, seen = _directed(masks, targets, rows, row, seen, near), row
            if (near < last or bound[stretch] == 0) and ones >= needed[0] and others >= needed[1]:
                place -= 1
                starts[place], reach[place], ends[place] = row, last, fences[stretch + 1]
    return place


@kernel
def _directed(masks, targets, rows, row, seen, near):  # type: ignore[no-untyped-def]
    """The first row from one on that can be bound and is directed; the one known before it from ``seen`` on."""
    while row < seen:
        if masks[row] != 0 and targets[rows[row]] >= 0:
            return row
        row += 1
    return near
