"""Where a match can begin: questions to whole arrays that few rows survive, before any row is walked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from undersong.jit import kernel, machine
from undersong.patterns.engine.gaps import gap
from undersong.patterns.engine.limits import MatchLimits
from undersong.patterns.engine.sums import I
from undersong.patterns.engine.table import fitting
from undersong.patterns.engine.vectors import B, Masks
from undersong.patterns.expressions import Both, Call, Compare, Node, Number, Variable
from undersong.patterns.possible import nfa_of
from undersong.patterns.program import ACCEPT, ROW, Program
from undersong.patterns.sequences import ANY, Bind, Or, Part, Passed, Repeat, Then

_STEPS = 12  # rows of the outline that are looked for; more of them hardly rule out more
Outline = tuple[int, ...]


class MatchRequirements(NamedTuple):
    """What every match of a pattern needs: masks of variables, 0 for any row.

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
    """The outlook of a row pattern and its program."""
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


def longest(part: Part) -> int | None:
    """The most rows that a match takes; None without bound."""
    if isinstance(part, Bind):
        return 1
    if isinstance(part, Passed):
        return longest(part.part)
    if isinstance(part, Repeat):
        inner = longest(part.part)
        return 0 if inner == 0 else None if inner is None or part.most is None else inner * part.most
    if isinstance(part, Then | Or):
        sizes = [longest(each) for each in part.parts]
        bounded = [size for size in sizes if size is not None]
        return None if len(bounded) < len(sizes) else sum(bounded) if isinstance(part, Then) else max(bounded)
    return 0


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
    """Where the rest of an outlook is found."""

    def __init__(self, wanted: MatchRequirements, masks: Masks) -> None:
        self.wanted, self.masks = wanted, masks
        self._fitting: dict[int, I] = {}

    def numbers(self, starts: I, limits: I) -> I:
        """The numbers of those starts after which the rest is found in time."""
        selected = np.flatnonzero(starts + len(self.wanted.head) <= limits)
        if not self.wanted.rest:
            return selected
        place, size = starts[selected] + self.wanted.taken, len(self.masks)
        if machine(size) and (limits[selected] - place).sum() < size:  # fewer rows to look at than there are
            rest = np.array(self.wanted.rest, dtype=np.uint64)
            return selected[_in_time.at(size)(self.masks, rest, place, limits[selected])]
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


@kernel
def _in_time(masks, rest, places, limits):  # type: ignore[no-untyped-def]
    """Whether rows that fit the rest follow from each place on, one after the other, before its limit."""
    in_time = np.zeros(len(places), dtype=np.bool_)
    for k in range(len(places)):
        step, row = 0, places[k]
        while step < len(rest) and row < limits[k]:
            step += rest[step] == 0 or np.uint64(masks[row]) & rest[step] != 0
            row += 1
        in_time[k] = step == len(rest) and row <= limits[k]
    return in_time


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
