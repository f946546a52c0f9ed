"""What each value of a row says by itself: the parts of conditions that it alone decides, found by a look-up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from undersong.models import TRAITS, Row
from undersong.patterns.expressions import Both, Call, Either, Field, Node, Not, Text, walk
from undersong.patterns.fields import FIELDS, ROW_FUNCTIONS, Context, row_leaf
from undersong.patterns.logic import Evaluate, Value, compile_tree

_MOST_VALUES = 4_096  # of one field whose facts are remembered; scores have a thousand
_NO_TRAITS: Mapping[str, float] = {}


class Demand(NamedTuple):
    """A condition over facts: all of ``every``, one or more of each of ``some``, and what no single value decides."""

    every: int
    some: tuple[int, ...]
    rest: tuple[Evaluate, ...]


class Judged(NamedTuple):
    """A condition on indicators and nothing else."""

    condition: Node
    indicators: frozenset[str]
    holds: Evaluate


class _OfValue(NamedTuple):
    """The facts that one value of a row decides, remembered by that value."""

    read: Callable[[Row], Value]
    known: dict[Value, int]
    tests: list[tuple[int, Evaluate]]

    def learn(self, value: Value, context: Context) -> int:
        if len(self.known) >= _MOST_VALUES:
            self.known.clear()
        bits = sum(bit for bit, holds in self.tests if holds(context) is True)
        self.known[value] = bits
        return bits


class Facts:
    """Numbers the parts of conditions that one value decides, a bit for each, and tells which are true of a row.

    A part that is unknown is not true, and a condition without ``not`` above its parts is true exactly where enough of
    them are: so ``not`` is first moved down to them.
    """

    def __init__(self) -> None:
        self._demands: dict[Node, Demand] = {}
        self._bits: dict[Node, int] = {}
        self._values: dict[Node, _OfValue] = {}
        self._traits: list[tuple[str, _OfValue]] = []
        self._others: list[_OfValue] = []

    def demand(self, condition: Node) -> Demand:
        """What a condition about a row alone asks of its facts; the same for the same condition."""
        if condition not in self._demands:
            self._demands[condition] = self._demand(condition)
        return self._demands[condition]

    def _demand(self, condition: Node) -> Demand:
        every, some, rest = 0, list[int](), list[Evaluate]()
        for clause in _parted(condition, Both):
            options = list(_parted(clause, Either))
            bits = [bit for option in options if (bit := self._bit(option))]
            if len(bits) < len(options):
                rest.append(compile_tree(clause, row_leaf))
            elif len(bits) == 1:
                every |= bits[0]
            else:
                some.append(sum(set(bits)))
        return Demand(every, tuple(some), tuple(rest))

    def of(self, context: Context) -> int:
        """The facts that are true of a row."""
        facts, row = 0, context.row
        traits = row.traits or _NO_TRAITS
        for name, each in self._traits:
            value: Value = traits.get(name)
            bits = each.known.get(value)
            facts |= each.learn(value, context) if bits is None else bits
        for each in self._others:
            value = each.read(row)
            bits = each.known.get(value)
            facts |= each.learn(value, context) if bits is None else bits
        return facts

    def _bit(self, part: Node) -> int:
        """The bit of a part that one value decides; 0 where it takes more."""
        source = _only_source(part)
        if source is None:
            return 0
        if part not in self._bits:
            self._bits[part] = 1 << len(self._bits)
            decided = self._of(source)
            decided.tests.append((self._bits[part], compile_tree(part, row_leaf)))
            decided.known.clear()
        return self._bits[part]

    def _of(self, source: Field | Call) -> _OfValue:
        known = self._values.get(source)
        if known is None:
            known = self._values[source] = _OfValue(_read(source), {}, [])
            if source.name in TRAITS:
                self._traits.append((source.name, known))
            else:
                self._others.append(known)
        return known


def indicators_alone(node: Node) -> frozenset[str]:
    """The indicators that alone decide a condition; empty where anything else does."""
    names = set()
    for part in walk(node):
        if isinstance(part, Field) or (isinstance(part, Call) and part.name in ("flag", "signal")):
            return frozenset()
        if isinstance(part, Call) and part.name == "indicator" and isinstance(part.arguments[0], Text):
            names.add(part.arguments[0].value)
    return frozenset(names)


def _parted(node: Node, kind: type[Both] | type[Either], *, denied: bool = False) -> Iterator[Node]:
    """The parts that ``kind`` joins at the top of a tree; where it is ``denied``, those of its opposite."""
    if isinstance(node, kind):
        for part in node.parts:
            yield from _parted(part, kind, denied=denied)
    elif isinstance(node, Not):
        yield from _parted(node.part, Either if kind is Both else Both, denied=not denied)
    else:
        yield Not(node) if denied else node


def _read(source: Field | Call) -> Callable[[Row], Value]:
    if isinstance(source, Field):
        return FIELDS[source.name].read
    ask = row_leaf(source)
    return lambda row: ask(Context(row, {}))


def _only_source(node: Node) -> Field | Call | None:
    """The field of the row, or the question to it, that alone decides a part; None where there is none, or more."""
    calls = {part for part in walk(node) if isinstance(part, Call) and part.name in ROW_FUNCTIONS}
    fields = {part for part in walk(node) if isinstance(part, Field)}
    sources = calls | fields
    return sources.pop() if len(sources) == 1 and all(field.name in FIELDS for field in fields) else None
