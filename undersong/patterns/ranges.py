"""Which rows two conditions can share: ranges of numbers and sets of texts that the conditions ask of each field.

Only parts joined with ``and`` that compare one field with a constant count; what cannot be read that way is taken as
possible. So "disjoint" and "impossible" are proofs, and their absence is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from undersong.models import DIMENSIONS, TRAITS
from undersong.patterns.expressions import Both, Compare, Either, Field, Node, Not, Number, OneOf, Text

_SCORES = frozenset(TRAITS) | frozenset(DIMENSIONS)  # from 0 to 1
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
_OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "=": "!=", "!=": "="}


class Range(NamedTuple):
    """The numbers from ``low`` to ``high``; ``open_low`` and ``open_high`` leave out the ends."""

    low: float = float("-inf")
    high: float = float("inf")
    open_low: bool = False
    open_high: bool = False

    @property
    def empty(self) -> bool:
        """Whether no number lies in it."""
        return self.low > self.high or (self.low == self.high and (self.open_low or self.open_high))

    def meet(self, other: Range) -> Range:
        """The numbers in both."""
        low, open_low = max((self.low, self.open_low), (other.low, other.open_low))
        high, closed = min((self.high, not self.open_high), (other.high, not other.open_high))
        return Range(low, high, open_low, not closed)


Asked = dict[str, Range | frozenset[str | float | bool]]


def disjoint(one: Node, other: Node) -> bool:
    """Whether surely no row fits both conditions."""
    return all(impossible(Both((a, b))) for a in _branches(one) for b in _branches(other))


def impossible(condition: Node) -> bool:
    """Whether surely no row fits a condition."""
    return all(_contradicts(branch) for branch in _branches(condition))


def _branches(node: Node) -> tuple[Node, ...]:
    """The alternatives of a condition: an outer ``or``, or a negated ``and``."""
    if isinstance(node, Either):
        return node.parts
    if isinstance(node, Not) and isinstance(node.part, Both):
        return tuple(Not(part) for part in node.part.parts)
    return (node,)


def _contradicts(branch: Node) -> bool:
    parts = list(_parts(branch))
    if any(Not(part) in parts for part in parts):
        return True
    asked: Asked = {}
    for part in parts:
        if _narrowed(asked, part):
            return True
    nested = [part for part in parts if len(_branches(part)) > 1]
    rest = tuple(part for part in parts if len(_branches(part)) == 1)
    return any(all(_contradicts(Both((*rest, branch))) for branch in _branches(part)) for part in nested[:3])


def _parts(node: Node) -> Iterator[Node]:
    if isinstance(node, Both):
        for part in node.parts:
            yield from _parts(part)
    elif isinstance(node, Not) and isinstance(node.part, Either):
        for part in node.part.parts:
            yield from _parts(Not(part))
    elif isinstance(node, Not) and isinstance(node.part, Not):
        yield from _parts(node.part.part)
    else:
        yield node


def _narrowed(asked: Asked, part: Node) -> bool:
    """Add what a part asks of its field; True if nothing is left."""
    found = _range(part) or _options(part)
    if found is None:
        return False
    name, wanted = found
    if isinstance(wanted, Range):
        known = asked.get(name, Range(0.0, 1.0) if name in _SCORES else Range())
        met = known.meet(wanted) if isinstance(known, Range) else known
        asked[name] = met
        return isinstance(met, Range) and met.empty
    known = asked.get(name, wanted)
    left = known & wanted if isinstance(known, frozenset) else wanted
    asked[name] = left
    return not left


def _range(part: Node) -> tuple[str, Range] | None:
    negated = isinstance(part, Not)
    part = part.part if isinstance(part, Not) else part
    if not isinstance(part, Compare):
        return None
    left, operator, right = part.left, part.operator, part.right
    if isinstance(left, Number) and isinstance(right, Field):
        left, operator, right = right, _MIRRORED[operator], left
    if not isinstance(left, Field) or not isinstance(right, Number):
        return None
    value, operator = right.value, _OPPOSITE[operator] if negated else operator
    if operator == "!=":
        return None
    low = value if operator in (">", ">=", "=") else float("-inf")
    high = value if operator in ("<", "<=", "=") else float("inf")
    return left.name, Range(low, high, operator == ">", operator == "<")


def _options(part: Node) -> tuple[str, frozenset[str | float | bool]] | None:
    if isinstance(part, OneOf) and isinstance(part.part, Field):
        return part.part.name, frozenset(part.options)
    if isinstance(part, Compare) and part.operator == "=" and isinstance(part.left, Field):
        return (part.left.name, frozenset({part.right.value})) if isinstance(part.right, Text) else None
    return None
