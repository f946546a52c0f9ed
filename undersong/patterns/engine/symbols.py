"""Which variables each row fits, before sequences are laid out: what rows alone say, then what depends on more."""

from __future__ import annotations

import numpy as np

from undersong.patterns.engine.plan import LayeredCondition, VectorPlan
from undersong.patterns.engine.scopes import FrameVectors, RuleVectors
from undersong.patterns.engine.sums import F, I, NotVectorizable
from undersong.patterns.engine.table import fitting
from undersong.patterns.engine.vectors import Masks
from undersong.patterns.expressions import Node


def symbols(plan: VectorPlan, vectors: RuleVectors) -> Masks:
    """Per row of the table a bit for each variable that the agent's rows do not rule out; none if it is unread."""
    table = vectors.shared.table
    bits = np.broadcast_to(vectors.shared.bits(tuple(condition.row for condition in plan.conditions)), table.size)
    masks: Masks = np.multiply(bits, table.read, dtype=bits.dtype)
    asked = [(index, each) for index, each in enumerate(plan.conditions) if each.before is not None]
    if asked:
        _narrow(masks, asked, vectors)
    return masks


def _narrow(masks: Masks, asked: list[tuple[int, LayeredCondition]], vectors: RuleVectors) -> None:
    """Take away the bits that windows over the agent's rows rule out."""
    kind = masks.dtype.type
    places = fitting(masks, sum(1 << index for index, _ in asked))
    rows = FrameVectors(vectors, places, None, _no_sequence)
    for index, condition in asked:
        if condition.before is not None:
            holds = np.broadcast_to(rows.holds(condition.before), len(places))
            masks[places[~holds]] &= ~kind(1 << index)


def _no_sequence(node: Node, _places: I | None) -> F:
    raise NotVectorizable(f"{node} depends on the sequence")
