"""The preferred match from each row: one pass back over the rows, then a walk forward that never turns round.

The pass back finds, for each place in the program and each row, the nearest end that can be reached from there. Under a
limit a branch leads to a match if and only if that end lies within it, so the walk takes the preferred branch that
does. Both are linear in rows times instructions, whatever the pattern; the backtracking reference finds the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from undersong.jit import kernel
from undersong.patterns.engine.paths import MatchPaths, sized
from undersong.patterns.engine.sums import I
from undersong.patterns.engine.vectors import Masks
from undersong.patterns.program import ACCEPT, AT_START, JUMP, ROW, SPLIT, Program

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
