"""Contradictions and disjoint conditions, by the ranges of numbers and sets of texts that they allow.

Only parts joined with ``and`` that compare one value (a field, function or window) with a constant count; what cannot
be read that way is taken as possible. So "disjoint" and "impossible" are proofs, and their absence is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple

from undersong.models import DIMENSIONS, TRAITS
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import (
    Arithmetic,
    Both,
    Call,
    Compare,
    Either,
    Field,
    IsNull,
    Member,
    Node,
    Not,
    Number,
    OneOf,
    Text,
    Truth,
    Window,
    walk,
)
from undersong.patterns.language.logic import COMPARE
from undersong.patterns.language.row_pattern import (
    ACCEPT,
    ANY,
    AT_END,
    AT_START,
    ROW,
    Bind,
    Or,
    Part,
    Passed,
    Program,
    Repeat,
    below,
    successors,
)
from undersong.patterns.language.values import MATCH
from undersong.patterns.significance.necessary_conditions import (
    RowKind,
    RowRequirement,
    conditions_written_out,
    inserted,
    measured,
    requirements_of,
)

_SCORES = frozenset(TRAITS) | frozenset(DIMENSIONS)  # from 0 to 1
_AMONG = ("mean", "min", "max", "ewma", "first", "last")  # never beyond the values that they are taken over
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
_OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "=": "!=", "!=": "="}


class ValueRange(NamedTuple):
    """The numbers from ``low`` to ``high``; ``open_low`` and ``open_high`` leave out the ends."""

    low: float = float("-inf")
    high: float = float("inf")
    open_low: bool = False
    open_high: bool = False

    @property
    def empty(self) -> bool:
        """Whether no number lies in it."""
        return self.low > self.high or (self.low == self.high and (self.open_low or self.open_high))

    def meet(self, other: ValueRange) -> ValueRange:
        """The numbers in both."""
        low, open_low = max((self.low, self.open_low), (other.low, other.open_low))
        high, closed = min((self.high, not self.open_high), (other.high, not other.open_high))
        return ValueRange(low, high, open_low, not closed)


Constraints = dict[Node, ValueRange | frozenset[str | float | bool]]


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
    parts = [_plain(part) for part in _parts(branch)]
    if any(Not(part) in parts or _false(part) for part in parts) or _known_and_not(parts):
        return True
    asked: Constraints = {}
    for part in parts:
        if _narrowed(asked, part):
            return True
    if any(_left_out(asked, part) for part in parts):
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


def _plain(part: Node) -> Node:
    """A part with ``!=`` written as ``not … =``."""
    if isinstance(part, Compare) and part.operator == "!=":
        return Not(Compare("=", part.left, part.right))
    if isinstance(part, Not) and isinstance(part.part, Compare) and part.part.operator == "!=":
        return Compare("=", part.part.left, part.part.right)
    return part


def _false(part: Node) -> bool:
    """Whether a part is false of every row by what is written: ``false``, ``1 > 2``, ``virtue < virtue``."""
    negated = isinstance(part, Not)
    inner = part.part if isinstance(part, Not) else part
    if isinstance(inner, Truth):
        return inner.value is negated
    if not isinstance(inner, Compare):
        return False
    if inner.left == inner.right:
        return (inner.operator in ("<", ">")) is not negated
    left, right = _constant(inner.left), _constant(inner.right)
    return left is not None and right is not None and COMPARE[inner.operator](left, right) is negated


def _known_and_not(parts: list[Node]) -> bool:
    """Whether a field must be unknown and is compared as well."""
    unknown = [part.part for part in parts if isinstance(part, IsNull)]
    inner = [part.part if isinstance(part, Not) else part for part in parts]
    compared = [side for part in inner if isinstance(part, Compare) for side in (part.left, part.right)]
    compared += [part.part for part in inner if isinstance(part, OneOf)]
    return any(isinstance(part, Field) and part in compared for part in unknown)


def _left_out(asked: Constraints, part: Node) -> bool:
    """Whether ``not in`` or ``!=`` leaves nothing of the words that a field may be."""
    excluded = _options(part.part) if isinstance(part, Not) else None
    remaining = asked.get(excluded[0]) if excluded else None
    return (
        excluded is not None
        and isinstance(remaining, frozenset)
        and isinstance(excluded[1], frozenset)
        and remaining <= excluded[1]
    )


def _narrowed(asked: Constraints, part: Node) -> bool:
    """Add what a part asks of a value; True if nothing is left."""
    constraint = _range(part) or _options(part)
    if constraint is None:
        return False
    of, wanted = constraint
    if isinstance(wanted, ValueRange):
        current = asked.get(of, _bounds(of))
        met = current.meet(wanted) if isinstance(current, ValueRange) else current
        asked[of] = met
        return isinstance(met, ValueRange) and met.empty
    current = asked.get(of, wanted)
    left = current & wanted if isinstance(current, frozenset) else wanted
    asked[of] = left
    return not left


def _range(part: Node) -> tuple[Node, ValueRange] | None:
    """What is compared with a number, and the numbers that it may be."""
    negated = isinstance(part, Not)
    part = part.part if isinstance(part, Not) else part
    if not isinstance(part, Compare):
        return None
    left, operator, right = part.left, part.operator, part.right
    if _constant(right) is None:
        left, operator, right = right, _MIRRORED[operator], left
    value = _constant(right)
    if value is None:
        return None
    operator = _OPPOSITE[operator] if negated else operator
    if operator == "!=":
        return None
    low = value if operator in (">", ">=", "=") else float("-inf")
    high = value if operator in ("<", "<=", "=") else float("inf")
    return left, ValueRange(low, high, operator == ">", operator == "<")


def _constant(node: Node) -> float | None:
    """The number that a value is whatever the row is, such as ``-1``."""
    bounds = _bounds(node)
    return bounds.low if bounds.low == bounds.high else None


def _bounds(node: Node) -> ValueRange:
    """The numbers that a value can be at all: scores from 0 to 1, counts from 0, and what is worked out from them."""
    if isinstance(node, Number):
        return ValueRange(node.value, node.value)
    if isinstance(node, Field | Member):
        return ValueRange(0.0, 1.0) if node.name in _SCORES else ValueRange()
    if isinstance(node, Arithmetic) and node.operator in ("+", "-"):
        left, right = _bounds(node.left), _bounds(node.right)
        far = ValueRange(-right.high, -right.low) if node.operator == "-" else right
        return ValueRange(left.low + far.low, left.high + far.high)
    if isinstance(node, Window):
        return _of_several(node.function, node.value, node.rows)
    return (
        _of_several(node.name, node.arguments[0], None) if isinstance(node, Call) and node.arguments else ValueRange()
    )


def _of_several(function: str, value: Node, rows: int | None) -> ValueRange:
    """The numbers that an aggregate can be over values, of so many rows at most (None: any number)."""
    if function in ("count", "count_distinct"):
        return ValueRange(0.0, float("inf") if rows is None else float(rows))
    bounds = _bounds(value) if function in (*_AMONG, "std") else ValueRange()
    return ValueRange(0.0, (bounds.high - bounds.low) / 2) if function == "std" else bounds


def _options(part: Node) -> tuple[Node, frozenset[str | float | bool]] | None:
    """What must be one of several words, and those."""
    if isinstance(part, OneOf):
        return part.part, frozenset(part.options)
    if isinstance(part, Compare) and part.operator == "=" and isinstance(part.right, Text):
        return part.left, frozenset({part.right.value})
    return None


_State = tuple[int, bool, bool]  # a place in the program, whether a row was taken, and whether `$` was passed


def beyond_anchors(rule: PatternRule) -> frozenset[str] | None:
    """Variables of the pattern that no match has: their rows would be before ``^`` or after ``$``.

    None where that leaves no match at all.
    """
    places = _on_the_way(rule.program)
    if not places:
        return None
    used, live = (_variables(rule, some) for some in (range(len(rule.program.instructions)), places))
    return used - live


def never_holds(rule: PatternRule, condition: Node) -> bool:
    """Whether surely no match meets a condition of ``having``: it contradicts itself, or asks for too many rows."""
    whole = measured(rule, condition)
    named = any(isinstance(part, Field) for part in walk(whole))  # a measure too large to be written out
    return (impossible(whole) and not named) or any(
        _most(rule, each) < each.number for each in requirements_of(rule, condition)
    )


def _on_the_way(program: Program) -> set[int]:
    """The places of a program that some way from its start to its end passes, whatever the rows are."""
    before: dict[_State, list[_State]] = {}
    open_states: list[_State] = [(0, False, False)]
    seen = set(open_states)
    while open_states:
        state = open_states.pop()
        for following in _next(program, state):
            before.setdefault(following, []).append(state)
            if following not in seen:
                seen.add(following)
                open_states.append(following)
    live = {state for state in seen if program.instructions[state[0]][0] == ACCEPT}
    open_states = [*live]
    while open_states:
        leading = [state for state in before.get(open_states.pop(), ()) if state not in live]
        live.update(leading)
        open_states += leading
    return {place for place, _, _ in live}


def _next(program: Program, state: _State) -> list[_State]:
    place, taken, ended = state
    operation = program.instructions[place][0]
    if operation == ROW:
        return [] if ended else [(place + 1, True, False)]
    if operation == AT_START and taken:
        return []
    return [(following, taken, ended or operation == AT_END) for following in successors(program, place)]


def _variables(rule: PatternRule, places: Iterable[int]) -> frozenset[str]:
    """The variables whose condition is asked at some places of the program."""
    instructions = rule.program.instructions
    mask = 0
    for place in places:
        mask |= instructions[place][1] if instructions[place][0] == ROW else 0
    return frozenset(name for i, name in enumerate(rule.names) if mask >> i & 1)


def _most(rule: PatternRule, asked: RowRequirement) -> float:
    """At most so many rows of these kinds a match binds."""
    columns, conditions = conditions_written_out(rule)
    possible = {name for kind in asked.kinds for name in _possible(kind, conditions, columns)}
    return inf if ANY in possible else _bound(rule.trees.part, frozenset(possible))


def _possible(kind: RowKind, conditions: dict[str, Node], columns: dict[str, Node]) -> Iterator[str]:
    """The variables whose rows can be of a kind."""
    for name in conditions if kind.variable == MATCH else (kind.variable,):
        more = None if kind.condition is None else inserted(kind.condition, columns)
        both = [each for each in (conditions.get(name), more) if each is not None]
        if not impossible(Both(tuple(both))):
            yield name


def _bound(part: Part, names: frozenset[str]) -> float:
    """At most so many rows a part binds to some variables."""
    if isinstance(part, Bind):
        return float(part.variable in names)
    if isinstance(part, Passed):
        return 0.0
    parts = [_bound(each, names) for each in below(part)]
    if isinstance(part, Repeat):
        return parts[0] and parts[0] * (inf if part.most is None else part.most)
    return max(parts) if isinstance(part, Or) else sum(parts)
