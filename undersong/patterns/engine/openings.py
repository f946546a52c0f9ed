"""The rows from which a match begins that nothing refuses beforehand, and how far each can reach."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from undersong.jit import kernel, machine
from undersong.patterns.engine.automaton import BackwardAutomaton, StateTrace
from undersong.patterns.engine.limits import MatchLimits, after
from undersong.patterns.engine.starts import MatchRequirements, with_enough_rows
from undersong.patterns.engine.sums import I
from undersong.patterns.engine.vectors import B

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
