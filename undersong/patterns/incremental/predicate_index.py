"""What each value of a row says by itself: the parts of conditions that it alone decides, found by a look-up."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod
from typing import NamedTuple

from undersong.models import TRAITS, Row
from undersong.patterns.language.expressions import Both, Call, Compare, Either, Field, Node, Not, Number, Text, walk
from undersong.patterns.language.fields import FIELDS, ROW_FUNCTIONS, Context, row_leaf
from undersong.patterns.language.logic import Evaluate, Value, compile_tree

_MOST_VALUES = 4_096  # of one field whose facts are remembered; scores have a thousand
_MOST_CLAUSES = 16  # into which one is taken apart
_NO_TRAITS: Mapping[str, float | None] = {}


class CnfCondition(NamedTuple):
    """A condition over facts: all of ``every``, one or more of each of ``some``, and what no single value decides."""

    every: int
    some: tuple[int, ...]
    rest: tuple[Evaluate, ...]


class IndicatorCondition(NamedTuple):
    """A condition on indicators and nothing else."""

    condition: Node
    indicators: frozenset[str]
    holds: Evaluate


class _ValueIndex:
    """The facts that one value of a row decides, remembered by that value.

    Where it is only held against numbers, these are its ``marks``: what lies between two of them has the same facts.
    """

    __slots__ = ("cached", "marks", "read", "steps", "tests")

    def __init__(self, read: Callable[[Row], Value]) -> None:
        self.read = read
        self.cached: dict[Value, int] = {}
        self.tests: list[tuple[int, Evaluate]] = []
        self.marks: list[float] = []
        self.steps = True

    def add(self, bit: int, part: Node) -> None:
        """One more part that the value decides."""
        self.tests.append((bit, compile_tree(part, row_leaf)))
        self.cached.clear()
        mark = _mark(part)
        self.steps = self.steps and mark is not None
        self.marks = sorted({*self.marks, mark}) if self.steps and mark is not None else []

    def evaluate(self, value: Value, context: Context) -> int:
        if len(self.cached) >= _MOST_VALUES:
            self.cached.clear()
        bits = sum(bit for bit, holds in self.tests if holds(context) is True)
        self.cached[value] = bits
        return bits


class PredicateIndex:
    """Numbers the parts of conditions that one value decides, a bit for each, and tells which are true of a row.

    A part that is unknown is not true, and a condition without ``not`` above its parts is true exactly where enough of
    them are: so ``not`` is first moved down to them.
    """

    def __init__(self) -> None:
        self._demands: dict[Node, CnfCondition] = {}
        self._bits: dict[Node, int] = {}
        self._values: dict[Node, _ValueIndex] = {}
        self._traits: list[tuple[str, _ValueIndex]] = []
        self._others: list[_ValueIndex] = []

    def to_cnf(self, condition: Node) -> CnfCondition:
        """What a condition about a row alone asks of its facts; the same for the same condition."""
        if condition not in self._demands:
            self._demands[condition] = self._build_cnf(condition)
        return self._demands[condition]

    def _build_cnf(self, condition: Node) -> CnfCondition:
        every, some, rest = 0, list[int](), list[Evaluate]()
        for options in self._clauses(condition):
            bits = [bit for option in options if (bit := self._bit(option))]
            if len(bits) < len(options):
                rest.append(compile_tree(Either(options), row_leaf))
            elif len(bits) == 1:
                every |= bits[0]
            else:
                some.append(sum(set(bits)))
        return CnfCondition(every, tuple(some), tuple(rest))

    def _clauses(self, condition: Node) -> Iterator[tuple[Node, ...]]:
        """Options of which one each must hold; an option that joins parts of which each is a fact is taken apart."""
        for clause in _parted(condition, Both):
            options = [[each] if self._bit(each) else [*_parted(each, Both)] for each in _parted(clause, Either)]
            if prod(map(len, options)) > _MOST_CLAUSES:
                yield tuple(_parted(clause, Either))
                continue
            for chosen in product(*options):
                yield tuple(dict.fromkeys(part for each in chosen for part in _parted(each, Either)))

    def true_bits(self, context: Context) -> int:
        """The facts that are true of a row."""
        facts, row = 0, context.row
        traits: Mapping[str, float | None] = row.traits or _NO_TRAITS
        for name, index in self._traits:
            value: Value = traits.get(name)
            if index.marks and value is not None:  # its place among them, odd on one of them
                value = bisect_left(index.marks, value) + bisect_right(index.marks, value)
            bits = index.cached.get(value)
            facts |= index.evaluate(value, context) if bits is None else bits
        for index in self._others:
            value = index.read(row)
            bits = index.cached.get(value)
            facts |= index.evaluate(value, context) if bits is None else bits
        return facts

    def _bit(self, part: Node) -> int:
        """The bit of a part that one value decides; 0 where it takes more."""
        source = _only_source(part)
        if source is None:
            return 0
        if part not in self._bits:
            self._bits[part] = 1 << len(self._bits)
            self._index_of(source).add(self._bits[part], part)
        return self._bits[part]

    def _index_of(self, source: Field | Call) -> _ValueIndex:
        index = self._values.get(source)
        if index is None:
            index = self._values[source] = _ValueIndex(_read(source))
            if source.name in TRAITS:
                self._traits.append((source.name, index))
            else:
                self._others.append(index)
        return index


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


def _mark(part: Node) -> float | None:
    """The number that a value is held against, None where it is more than that."""
    compared = part.part if isinstance(part, Not) else part
    if not isinstance(compared, Compare):
        return None
    sides = compared.left, compared.right
    numbers = [each.value for each in sides if isinstance(each, Number)]
    return numbers[0] if len(numbers) == 1 and any(isinstance(each, Field) for each in sides) else None


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
