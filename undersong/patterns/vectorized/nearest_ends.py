"""The nearest end of a match by dynamic programming, for anchors and for patterns whose automaton is no help.

A pass back over the rows finds, for each instruction before each row, the nearest end that can be reached from there.
Under a limit a branch leads to a match if and only if that end lies within it, so a walk forward takes the preferred
branch that does. Both are linear in rows times instructions, whatever the pattern; the reference finds the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from undersong.patterns.language.row_pattern import ACCEPT, AT_START, JUMP, ROW, SPLIT
from undersong.patterns.vectorized.dfa import ProgramArrays
from undersong.patterns.vectorized.exact_sum import I
from undersong.patterns.vectorized.jit import kernel
from undersong.patterns.vectorized.layout import MatchPaths, sized
from undersong.patterns.vectorized.vector_logic import B, Masks

CELLS = 1 << 25  # rows times instructions that are computed together: 128 MB
NEVER = np.iinfo(np.int32).max
_ROW, _SPLIT, _JUMP, _AT_START, _ACCEPT = ROW, SPLIT, JUMP, AT_START, ACCEPT
Ends = np.ndarray[tuple[int], np.dtype[np.int32]]


class RowRegions(NamedTuple):
    """Runs of rows (``first`` to before ``last``) in which matches lie, and the bounds of the sequences they are in."""

    first: I
    last: I
    begin: I
    end: I

    def at(self, numbers: I) -> RowRegions:
        """Some of them."""
        return RowRegions(*(part[numbers] for part in self))


def paths_in_regions(
    program: ProgramArrays, masks: Masks, regions: RowRegions, starts: I, limits: I, owners: I, most: int
) -> tuple[MatchPaths, B]:
    """The preferred match from each start, in region ``owners[i]``, that ends by ``limits[i]``; the regions too large.

    A region of more cells than ``most`` is too large: its starts have no match.
    """
    size = len(program.operation)
    cells = (regions.last - regions.first) * size
    too_large = cells > most
    room = sized(starts, np.where(too_large[owners], 0, np.maximum(limits - starts, 0)))
    group = np.where(too_large, -1, np.cumsum(np.where(too_large, 0, cells)) // CELLS)
    for number in np.unique(group[~too_large]).tolist():
        here, chosen = np.flatnonzero(group == number), np.flatnonzero(group[owners] == number)
        part = regions.at(here)
        ends, offsets = nearest_ends(program, masks, part)
        shifts = (offsets[:-1] - part.first * size)[np.searchsorted(here, owners[chosen])]
        room.last[chosen] = _walk.at(len(chosen) * 20)(
            program.operation, program.first, program.second, ends, shifts, starts[chosen], limits[chosen],
            room.first[chosen], room.bindings,
        )  # fmt: skip
    return room, too_large


def nearest_ends(program: ProgramArrays, masks: Masks, regions: RowRegions) -> tuple[Ends, I]:
    """For each region, row by row, the nearest end per instruction; and where each region's numbers begin."""
    size = len(program.operation)
    offsets = np.concatenate([[0], np.cumsum((regions.last - regions.first + 1) * size)])
    ends = np.empty(int(offsets[-1]), dtype=np.int32)
    _fill.at(len(ends))(*program, masks, *regions, offsets, ends)
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


@kernel
def _walk(operation, first, second, ends, shifts, starts, limits, used, bindings):  # type: ignore[no-untyped-def]
    """Write the bindings of each match from ``used`` on, and move that to after its last one."""
    size = len(operation)
    for k in range(len(starts)):
        here, place, limit = shifts[k] + starts[k] * size, 0, limits[k]
        if ends[here] <= limit:
            while operation[place] != _ACCEPT:
                if operation[place] == _ROW:
                    bindings[used[k]] = second[place]
                    used[k] += 1
                    here += size
                    place += 1
                elif operation[place] == _SPLIT:
                    preferred = first[place]
                    place = preferred if ends[here + preferred] <= limit else second[place]
                elif operation[place] == _JUMP:
                    place = first[place]
                else:
                    place += 1
    return used
