"""Patterns of single rows: where they begin, and which of them a spread that ``having`` asks for surely refuses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.jit import kernel, machine
from undersong.patterns import kinds
from undersong.patterns.engine.aggregates import value_in_row
from undersong.patterns.engine.limits import MatchLimits
from undersong.patterns.engine.plan import VectorPlan
from undersong.patterns.engine.rough import wide_enough
from undersong.patterns.engine.scopes import FrameVectors
from undersong.patterns.engine.starts import Outline, headed
from undersong.patterns.engine.statistics import MOST
from undersong.patterns.engine.sums import I
from undersong.patterns.engine.vectors import Masks
from undersong.patterns.expressions import Call, Compare, Node, Number
from undersong.patterns.measures import MATCH

_WORD = 64  # rows of a head whose fitting a word holds
Words = npt.NDArray[np.uint64]


def singles(head: Outline, masks: Masks, limits: MatchLimits) -> I:
    """The rows from which a pattern of single rows, the head, is there."""
    bounds, buffer = limits.bounds, np.empty(len(masks) + 1, dtype=np.int64)  # one more: for a row that is no start
    times = np.zeros(0, dtype=np.int64) if bounds.within is None else limits.times
    fits, words, depth = _worded(masks, head)
    number = _single.at(len(masks))(
        fits, words, depth, len(head) - depth, times, limits.fences, bounds.within or 0, buffer
    )
    starts = buffer[:number]
    return starts if bounds.closed is None else starts[~bounds.closed[starts]]


def _worded(masks: Masks, head: Outline) -> tuple[Masks, Words, int]:
    """What each row says of the first rows of a head, so many of them: a bit for each that it fits, by a table.

    Where masks or words are too narrow for all, a row says whether the whole head fits from there on.
    """
    if masks.dtype.itemsize > 2 or len(head) > _WORD:
        return headed(masks, head).view(np.uint8), np.arange(2, dtype=np.uint64), 1
    all_masks, words = (
        np.arange(1 << 8 * masks.dtype.itemsize),
        np.zeros(1 << 8 * masks.dtype.itemsize, dtype=np.uint64),
    )
    for place, mask in enumerate(head):
        words |= np.uint64(1 << place) * (all_masks & mask != 0 if mask else np.ones(len(all_masks), dtype=np.bool_))
    return masks, words, len(head)


@kernel
def _single(fits, words, depth, beyond, times, fences, within, output):  # type: ignore[no-untyped-def]
    """Bit i of ``state``: the rows up to here fit the first i + 1 of the head; ``beyond`` more rows must be there."""
    number, last_bit, one = 0, np.uint64(depth - 1), np.uint64(1)
    for segment in range(len(fences) - 1):
        state = np.uint64(0)
        for row in range(fences[segment], fences[segment + 1] - beyond):
            state = (state << one | one) & words[fits[row]]
            start = row - depth + 1
            whole = state >> last_bit & one
            if len(times) and whole:
                whole = np.uint64(times[row + beyond] - times[start] <= within)
            output[number] = start
            number += int(whole)
    return number


def wide_starts(plan: VectorPlan, starts: I, rows: FrameVectors) -> I:
    """The starts of a pattern of single rows but for those whose spread is surely below what ``having`` asks for.

    It is looked at in all rows of a frame; so only where the starts are no few.
    """
    for tree in plan.having:
        asked = _spread(tree, plan)
        if asked is None or len(starts) * asked.size < len(rows.rows) or not machine(len(starts) * asked.size):
            continue
        values = np.ascontiguousarray(np.broadcast_to(rows.number(asked.value), len(rows.rows)))
        passing = np.empty(len(starts) + 1, dtype=np.int64)  # one more: for a start that is refused
        number = wide_enough.at(len(starts) * asked.size)(asked.size, starts, values, asked.least, passing)
        starts = passing[:number]
    return starts


class _SpreadCondition(NamedTuple):
    """What a spread over all rows of a match, so many, is asked of; and how much it must be at least."""

    value: Node
    least: float
    size: int


def _spread(tree: Node, plan: VectorPlan) -> _SpreadCondition | None:
    """The spread that a condition asks for; None where it asks for something else."""
    if not isinstance(tree, Compare) or tree.operator not in (">", ">="):
        return None
    left, right = tree.left, tree.right
    if not isinstance(left, Call) or left.name != "std" or not isinstance(right, Number) or right.value <= 0:
        return None
    variable, bound = kinds.single_variable(left), {second for _, _, second in plan.rule.program.instructions[:-1]}
    everywhere = min(bound) >= 0 if variable == MATCH else bound == {plan.rule.names.index(variable)}
    size = len(plan.requirements.head)
    return (
        _SpreadCondition(value_in_row(left.arguments[0]), right.value, size)
        if everywhere and 2 <= size <= MOST
        else None
    )
