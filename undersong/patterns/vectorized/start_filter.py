"""Necessary conditions of a match, from its pattern alone: the rows at which it can start, and how far it can reach."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from math import inf
from typing import NamedTuple

import numpy as np

from undersong.patterns.language.expressions import Both, Call, Compare, Node, Number, Variable
from undersong.patterns.language.row_pattern import (
    ACCEPT,
    ANY,
    ROW,
    Bind,
    Or,
    Part,
    Passed,
    Program,
    Repeat,
    Then,
    longest,
    successors,
)
from undersong.patterns.vectorized.exact_sum import I
from undersong.patterns.vectorized.jit import kernel, machine
from undersong.patterns.vectorized.layout import MatchLimits, fitting, ranges
from undersong.patterns.vectorized.vector_logic import B, Codes, Masks


class PatternGap(NamedTuple):
    """The most rows that a part of a pattern passes over: as a whole (-inf: it binds one), first, last, in a row."""

    whole: float
    first: float
    last: float
    most: float

    def then(self, other: PatternGap) -> PatternGap:
        """This part and another one after it."""
        return PatternGap(
            self.whole + other.whole,
            max(self.first, self.whole + other.first),
            max(other.last, self.last + other.whole),
            max(self.most, other.most, self.last + other.first),
        )


_NONE, _ANY, _BOUND = PatternGap(0, 0, 0, 0), PatternGap(1, 1, 1, 1), PatternGap(-inf, 0, 0, 0)


def gap(part: Part) -> int | None:
    """The most rows in a row that a match of a pattern passes over (``ANY``, ``{- -}``); None without bound."""
    most = _gap(part, passing=False).most
    return None if most == inf else int(most)


def _gap(part: Part, *, passing: bool) -> PatternGap:
    total = _NONE
    if isinstance(part, Bind):
        return _ANY if passing or part.variable == ANY else _BOUND
    if isinstance(part, Passed):
        return _gap(part.part, passing=True)
    if isinstance(part, Or):
        return PatternGap(*map(max, zip(*(_gap(each, passing=passing) for each in part.parts), strict=True)))
    if isinstance(part, Then):
        for child in part.parts:
            total = total.then(_gap(child, passing=passing))
    elif isinstance(part, Repeat):
        inner = _gap(part.part, passing=passing)
        if part.most is None and inner.whole > 0:
            return PatternGap(inf, inf, inf, inf)
        for _ in range(part.least + 2 if part.most is None else part.most):
            total = total.then(inner)
        total = total if part.least else total._replace(whole=max(total.whole, 0))
    return total


def reached(masks: Masks, seen: I, bound: int, most: int) -> tuple[I | Codes, I | Codes]:
    """Between the public rows that are ``seen``: from which one on, and to before which, a match there may go.

    Of these rows it takes no more than ``most`` in a row that fit no ``bound`` bit. ``masks`` are those of all public
    rows; there is one place more than rows that are seen.
    """
    size = len(seen)
    if not machine(size):
        fits = np.flatnonzero(masks[seen] & masks.dtype.type(bound))
        before, after = np.append(-1, fits), np.append(fits, size)
        dead = ranges(before + 1, np.maximum(after - most, before + 1))  # as many rows from there on are too many
        between = np.arange(size + 1)
        first = np.append(-1, dead)[np.searchsorted(dead, between - most)] + 1
        return first, np.append(dead + most, size)[np.searchsorted(dead, between)]
    first, last = (np.empty(size + 1, dtype=np.int32) for _ in range(2))
    _reach.at(len(seen))(masks, seen, masks.dtype.type(bound), most, first, last)
    return first, last


@kernel
def _reach(masks, seen, bound, most, first, last):  # type: ignore[no-untyped-def]
    passed = first[0] = 0
    for k in range(len(seen)):
        passed = 0 if masks[seen[k]] & bound else passed + 1
        first[k + 1] = k + 1 - most if passed > most else first[k]
    passed, last[len(seen)] = 0, len(seen)
    for k in range(len(seen) - 1, -1, -1):
        passed = 0 if masks[seen[k]] & bound else passed + 1
        last[k] = k + most if passed > most else last[k + 1]


_STEPS = 12  # rows of the outline that are looked for; more of them hardly rule out more
Outline = tuple[int, ...]


class MatchRequirements(NamedTuple):
    """Necessary conditions of a match: masks of variables, 0 for any row.

    Its first rows fit ``head``, one after the other; the ``rest`` is found in this order, with any rows between, from
    the row after the first ``taken`` ones on. ``fixed``: the head is the whole pattern. ``longest``: how many rows a
    match takes at most (None: no bound). ``counts``: how many rows ``having`` asks for, per mask; ``needs``: how many
    the pattern or ``having`` asks for, per mask. A match passes over at most ``gap`` rows in a row (None: no bound);
    the others fit ``bound``.
    """

    head: Outline
    taken: int
    rest: Outline
    fixed: bool
    longest: int | None
    counts: tuple[tuple[int, int], ...] = ()
    needs: tuple[tuple[int, int], ...] = ()
    gap: int | None = None
    bound: int = 0


def match_requirements(
    part: Part, program: Program, names: tuple[str, ...], having: tuple[Node, ...]
) -> MatchRequirements:
    """The necessary conditions of a row pattern and its program."""
    requirements, counts = _pattern_requirements(part, program, names), tuple(_counts(having, names))
    bound = {second for operation, _, second in program.instructions if operation == ROW} - {-1}
    return requirements._replace(
        counts=counts, needs=_needs(part, names, counts), gap=gap(part), bound=sum(1 << each for each in bound)
    )


def _needs(part: Part, names: tuple[str, ...], counts: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    needs = Counter(mask for mask in _outline(part, {name: 1 << index for index, name in enumerate(names)}) if mask)
    for mask, number in counts:
        needs[mask] = max(needs[mask], number)
    return tuple(sorted(needs.items()))


def _counts(having: tuple[Node, ...], names: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """What ``count(VARIABLE) >= n`` asks for, where every match must meet it."""
    for node in [part for tree in having for part in (tree.parts if isinstance(tree, Both) else (tree,))]:
        if not isinstance(node, Compare) or node.operator not in (">", ">=") or not isinstance(node.right, Number):
            continue
        counted = node.left.arguments[0] if isinstance(node.left, Call) and node.left.name == "count" else None
        if isinstance(counted, Variable) and counted.name in names:
            yield 1 << names.index(counted.name), math.ceil(node.right.value)


def _pattern_requirements(part: Part, program: Program, names: tuple[str, ...]) -> MatchRequirements:
    head = []
    for operation, wanted, _ in program.instructions:
        if operation != ROW:
            break
        head.append(wanted)
    fixed = len(head) == len(program.instructions) - 1 and program.instructions[-1][0] == ACCEPT
    outline = _outline(part, {name: 1 << index for index, name in enumerate(names)})
    if head:
        return MatchRequirements(tuple(head), len(head), outline[len(head) : _STEPS], fixed, longest(part))
    nfa = nfa_of(program)
    masks = [nfa.wanted[way] for way in nfa.first if way >= 0]
    first = 0 if 0 in masks else int(np.bitwise_or.reduce(np.array(masks, dtype=np.uint64)))
    taken = int(outline[:1] == (first,))  # else the first row may already be one of the rest
    return MatchRequirements((first,), taken, outline[taken:_STEPS], False, longest(part))


def _outline(part: Part, bits: dict[str, int]) -> Outline:
    """Masks that a match's rows fit in this order, each in a row of its own."""
    if isinstance(part, Bind):
        return (0 if part.variable == ANY else bits[part.variable],)
    if isinstance(part, Passed):
        return _outline(part.part, bits)
    if isinstance(part, Repeat):
        return (_outline(part.part, bits) * min(part.least, _STEPS))[:_STEPS] if part.least else ()
    if isinstance(part, Then):
        joined: Outline = ()
        for child in part.parts:
            joined = (joined + _outline(child, bits))[: _STEPS * 2]
        return joined
    if isinstance(part, Or):
        firsts = [_outline(each, bits)[:1] for each in part.parts]
        masks = {mask for first in firsts for mask in first}
        if not all(firsts):
            return ()
        return (0 if 0 in masks else int(np.bitwise_or.reduce(np.array(sorted(masks), dtype=np.uint64))),)
    return ()


def candidates(wanted: MatchRequirements, masks: Masks, limits: MatchLimits) -> tuple[I, I]:
    """The rows of a frame from which a match is not ruled out, and one past the furthest that each may take."""
    starts, furthest = _headed_in(wanted, masks, limits)
    starts = starts[TailFilter(wanted, masks).numbers(starts, furthest)]
    closed = limits.bounds.closed
    if closed is not None:
        starts = starts[~closed[starts]]
    return with_enough_rows(wanted, masks, starts, limits.of(starts))


def _headed_in(wanted: MatchRequirements, masks: Masks, limits: MatchLimits) -> tuple[I, I]:
    """The rows at which the head fits, and how far a match could go but for ``within``."""
    starts = np.flatnonzero(headed(masks, wanted.head))
    last, longest = limits.fence(starts), limits.bounds.longest
    return starts, last if longest is None else np.minimum(last, starts + longest)


class TailFilter:
    """Finds the rest of a pattern's required rows after a start."""

    def __init__(self, wanted: MatchRequirements, masks: Masks) -> None:
        self.wanted, self.masks = wanted, masks
        self._fitting: dict[int, I] = {}

    def numbers(self, starts: I, limits: I) -> I:
        """The numbers of those starts after which the rest is found in time."""
        selected = np.flatnonzero(starts + len(self.wanted.head) <= limits)
        if not self.wanted.rest:
            return selected
        place = starts[selected] + self.wanted.taken
        for mask in self.wanted.rest:
            place = (self._next(mask, place) if mask else place) + 1
            in_reach = place <= limits[selected]
            selected, place = selected[in_reach], place[in_reach]
        return selected

    def _next(self, mask: int, places: I) -> I:
        """The first row from each place on that fits."""
        if mask not in self._fitting:
            self._fitting[mask] = np.append(fitting(self.masks, mask), len(self.masks))
        rows = self._fitting[mask]
        return np.asarray(rows[np.searchsorted(rows, places)])


def with_enough_rows(wanted: MatchRequirements, masks: Masks, starts: I, limits: I) -> tuple[I, I]:
    """The starts within whose reach as many rows fit each variable as ``having`` asks for."""
    for mask, number in wanted.counts:
        before = np.concatenate([[0], np.cumsum(masks & masks.dtype.type(mask) != 0)])
        enough = before[limits] - before[starts] >= number
        starts, limits = starts[enough], limits[enough]
    return starts, limits


def headed(masks: Masks, head: Outline) -> B:
    """Whether the head fits from each row on; as many rows as leave room for it."""
    fits = np.ones(max(len(masks) - len(head) + 1, 0), dtype=np.bool_)
    for offset, mask in enumerate(head):
        if mask:
            fits &= masks[offset : offset + len(fits)] & masks.dtype.type(mask) != 0
    return fits


ACCEPTED = -1


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
        return tuple(sorted({ACCEPTED if end < 0 else number[end] for end in _reached(program, place)}))

    wanted = tuple(program.instructions[place][1] for place in places)
    return Nfa(wanted, tuple(reached(place + 1) for place in places), reached(0))


def shortest(program: Program) -> int:
    """The least number of rows that a match takes."""
    nfa = nfa_of(program)
    front, rows = set(nfa.first), 0
    while ACCEPTED not in front:
        front, rows = {after for way in front for after in nfa.after[way]}, rows + 1
    return rows


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
        operation = program.instructions[place][0]
        if operation == ROW:
            row_places.add(place)
        elif operation == ACCEPT:
            row_places.add(ACCEPTED)
        open_places += successors(program, place)
    return row_places
