"""Which of many sequences can hold a match at all: one pass over all of them at once.

A cheap question before the exact search. It follows every way through the program at the same time, a bit per sequence
in one large integer, and forgets what each way has bound. It may say yes where the search finds nothing (conditions on
columns and measures are not asked, and ``within`` only roughly); where it says no there is no match.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.patterns.program import ACCEPT, JUMP, ROW, SPLIT, STOP_IF_EMPTY, Program

_WINDOWS = 6  # groups of starts that ``within`` is asked for together
_ACCEPTED = -1


class Nfa(NamedTuple):
    """A program without its order of preference: the row instructions, and where each leads.

    ``wanted[s]`` is the mask of instruction s (0: any row), ``after[s]`` the instructions that may follow it, with -1
    where a match may end; ``first`` those that may take the first row.
    """

    wanted: tuple[int, ...]
    after: tuple[tuple[int, ...], ...]
    first: tuple[int, ...]


def nfa_of(program: Program) -> Nfa:
    """The row instructions of a program and their successors; anchors are taken to hold."""
    places = [place for place, (operation, _, _) in enumerate(program.instructions) if operation == ROW]
    number = {place: index for index, place in enumerate(places)}

    def reached(place: int) -> tuple[int, ...]:
        return tuple(sorted({_ACCEPTED if end < 0 else number[end] for end in _reached(program, place)}))

    wanted = tuple(program.instructions[place][1] for place in places)
    return Nfa(wanted, tuple(reached(place + 1) for place in places), reached(0))


def shortest(program: Program) -> int:
    """The least number of rows that a match takes."""
    nfa = nfa_of(program)
    front, rows = set(nfa.first), 0
    while _ACCEPTED not in front:
        front, rows = {after for way in front for after in nfa.after[way]}, rows + 1
    return rows


def match_possible(nfa: Nfa, masks: npt.NDArray[np.uint64], limits: Sequence[int]) -> npt.NDArray[np.bool_]:
    """For each sequence (masks: sequences × rows) whether a match is possible.

    ``limits[i]`` is one past the furthest row that a match from row i may take; it never falls.
    """
    count, rows = masks.shape
    everywhere = (1 << count) - 1
    fitting = {mask: _sequences_by_row(masks, mask) if mask else [everywhere] * rows for mask in set(nfa.wanted)}
    hit = 0
    size = rows if limits[0] >= rows else -(-rows // _WINDOWS)
    for first in range(0, rows, size):
        last = min(first + size, rows)
        hit |= _run(nfa, fitting, range(first, limits[last - 1]), last, everywhere)
    bits = np.unpackbits(np.frombuffer(hit.to_bytes(-(-count // 8), "little"), dtype=np.uint8), bitorder="little")
    return bits[:count].astype(np.bool_)


def _run(nfa: Nfa, fitting: dict[int, list[int]], rows: range, starts_end: int, everywhere: int) -> int:
    """The sequences with a match that starts before ``starts_end`` and lies within ``rows``."""
    hit = 0
    waiting = [0] * len(nfa.wanted)
    for row in rows:
        if row < starts_end:
            for way in nfa.first:
                waiting[way] = everywhere
        following = [0] * len(waiting)
        for way, where in enumerate(waiting):
            taken = where & fitting[nfa.wanted[way]][row] if where else 0
            if taken:
                for after in nfa.after[way]:
                    if after == _ACCEPTED:
                        hit |= taken
                    else:
                        following[after] |= taken
        waiting = following
    return hit


def _sequences_by_row(masks: npt.NDArray[np.uint64], mask: int) -> list[int]:
    """Per row, the sequences (a bit each) in which it has a bit of ``mask``."""
    packed = np.packbits((masks & np.uint64(mask)).T != 0, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def _reached(program: Program, place: int) -> set[int]:
    """The row instructions that come next from a place without taking a row; -1 for the end."""
    row_places: set[int] = set()
    seen: set[int] = set()
    open_places = [place]
    while open_places:
        place = open_places.pop()
        if place in seen:
            continue
        seen.add(place)
        operation, first, second = program.instructions[place]
        if operation == ROW:
            row_places.add(place)
        elif operation == ACCEPT:
            row_places.add(_ACCEPTED)
        elif operation == SPLIT:
            open_places += [first, second]
        elif operation == JUMP:
            open_places.append(first)
        elif operation == STOP_IF_EMPTY:
            open_places += [place + 1, second]
        else:  # anchors and marks
            open_places.append(place + 1)
    return row_places
