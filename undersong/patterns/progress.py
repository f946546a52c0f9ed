"""How far a rule's pattern gets from a row, and what it waits for there: every way at once, without preference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from undersong.patterns.program import (
    ACCEPT,
    AT_END,
    AT_START,
    JUMP,
    MARK,
    ROW,
    SPLIT,
    STOP_IF_EMPTY,
    Program,
)  # fmt: skip
from undersong.patterns.sequences import ANY

STARTS = 2_000  # attempts that are compared; beyond it an explanation would only be slow


class MatchAttempt(NamedTuple):
    """A try from row ``start``: per row it took, the variables it waited for there, in the order of their names."""

    start: int
    waiting: tuple[tuple[str, ...], ...]
    wanted: tuple[str, ...]

    @property
    def end(self) -> int:
        """One past the last row that it took."""
        return self.start + len(self.waiting)


def furthest(program: Program, names: Sequence[str], masks: Sequence[int], ends: Sequence[int]) -> MatchAttempt | None:
    """The attempt that took the most rows (of equals the first); None where no row can begin a match."""
    best: MatchAttempt | None = None
    for start in range(min(len(masks), STARTS)):
        attempt = _attempt(program, names, masks, start, ends[start])
        if attempt.waiting and (best is None or len(attempt.waiting) > len(best.waiting)):
            best = attempt
    return best


def _attempt(program: Program, names: Sequence[str], masks: Sequence[int], start: int, end: int) -> MatchAttempt:
    places = row_instructions(program, [0], start, len(masks))
    waiting = []
    row = start
    while row < end:
        taken = [place + 1 for place in places if _takes(program, place, masks[row])]
        if not taken:
            break
        waiting.append(_wanted(program, names, places))
        row += 1
        places = row_instructions(program, taken, row, len(masks))
    return MatchAttempt(start, tuple(waiting), _wanted(program, names, places))


def _takes(program: Program, place: int, mask: int) -> bool:
    operation, wanted, _ = program.instructions[place]
    return operation == ROW and (not wanted or bool(mask & wanted))


def row_instructions(program: Program, places: Iterable[int], row: int, rows: int) -> list[int]:
    """The places that take a row or accept, from these places without taking a row."""
    seen: set[int] = set()
    row_places: list[int] = []
    open_places = list(places)
    while open_places:
        place = open_places.pop()
        if place in seen:
            continue
        seen.add(place)
        if program.instructions[place][0] in (ROW, ACCEPT):
            row_places.append(place)
        else:
            open_places += _following(program, place, row, rows)
    return sorted(row_places)


def _following(program: Program, place: int, row: int, rows: int) -> tuple[int, ...]:
    operation, first, second = program.instructions[place]
    if operation == SPLIT:
        return first, second
    if operation == JUMP:
        return (first,)
    if operation == STOP_IF_EMPTY:
        return place + 1, second
    holds = operation == MARK or (operation == AT_START and row == 0) or (operation == AT_END and row == rows)
    return (place + 1,) if holds else ()


def _wanted(program: Program, names: Sequence[str], places: Iterable[int]) -> tuple[str, ...]:
    masks = {program.instructions[place][1] for place in places if program.instructions[place][0] == ROW}
    wanted = [name for i, name in enumerate(names) if any(mask >> i & 1 for mask in masks)]
    return (*wanted, ANY) if 0 in masks else tuple(wanted)
