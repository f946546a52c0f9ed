"""What the numbers of rows alone say of a match: most matches that ``having`` refuses fail there, at no cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from undersong.models import Row
from undersong.patterns.incremental.automaton import LazyAutomaton
from undersong.patterns.incremental.lazy_columns import Derive, day, of_agent, of_column, of_eager, of_others
from undersong.patterns.incremental.predicate_index import (
    CnfCondition,
    IndicatorCondition,
    PredicateIndex,
    indicators_alone,
)
from undersong.patterns.incremental.windows import is_tally
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Both, Call, Field, Member, Node, Variable, Window, parse, walk
from undersong.patterns.language.fields import Context, row_leaf
from undersong.patterns.language.inputs import FRAME, ROW, TABLE, DependencyLevels, implied
from undersong.patterns.language.logic import Evaluate, compile_tree
from undersong.patterns.language.row_pattern import ANY
from undersong.patterns.language.rulefile import RuleFile, written
from undersong.patterns.language.values import MATCH, MatchRows, WindowColumn, compile_measure, measure
from undersong.patterns.reference.columns import gathered

_SOME_ROW = Context(Row(id=""), {})


class CountConditions:
    """The conditions of ``having`` (with the measures that they name) that ask for numbers of rows and nothing else."""

    def __init__(self, file: RuleFile, names: Sequence[str]) -> None:
        self.names = names
        self.measures: dict[str, Evaluate] = {}
        for name, text in file.measures.items():
            tree = parse(written(text))
            if _only_counts(tree, self.measures):
                self.measures[name] = compile_measure(tree)
        trees = [parse(written(text)) for text in file.having]
        self.having = [compile_measure(tree) for tree in trees if _only_counts(tree, self.measures)]

    def refuse(self, bindings: Sequence[int]) -> bool:
        """Whether a match that binds its rows so (-1: passed over) surely fails ``having``."""
        if not self.having:
            return False
        passed = bindings.count(-1)
        sizes = {name: bindings.count(index) for index, name in enumerate(self.names)}
        sizes |= {ANY: passed, MATCH: len(bindings) - passed}
        rows = {name: [_SOME_ROW] * size for name, size in sizes.items()}
        measures = measure(rows, self.measures)
        return not all(holds(MatchRows(rows, measures)) is True for holds in self.having)


def _only_counts(tree: Node, measures: Collection[str]) -> bool:
    for part in walk(tree):
        if isinstance(part, Member) or (isinstance(part, Field) and part.name not in measures):
            return False
        if (
            isinstance(part, Call)
            and any(isinstance(each, Variable) for each in part.arguments)
            and part.name != "count"
        ):
            return False
    return True


GAP = "gap_hours"


class Exact(NamedTuple):
    """The part of a variable's condition that needs columns; it is asked only where the row alone allows it."""

    bit: int
    holds: Evaluate


class WindowSlots:
    """The windows over an agent's rows, each stored once for all rules that ask for it.

    ``agent`` are over all its rows, ``others`` the running sums over what it directs at anyone, ``apart`` the windows
    over ``others`` that are no running sums: these are kept for each target.
    """

    def __init__(self) -> None:
        self.agent: dict[Window, WindowColumn] = {}
        self.reads: list[Evaluate] = []  # what each window over the agent's rows takes of a row
        self.others: dict[Window, WindowColumn] = {}
        self.apart: dict[Window, WindowColumn] = {}

    def place(self, column: WindowColumn) -> int:
        """The slot of a window over the agent's rows or over ``others``."""
        over_others = self.others if is_tally(column.window) else self.apart
        slots = over_others if column.window.over == "others" else self.agent
        if column.window not in slots:
            slots[column.window] = column
            if slots is self.agent:
                self.reads.append(column.value if _takes_all(column) else partial(gathered, column))
        return list(slots).index(column.window)


class RowPlan:
    """One rule: its automaton, its conditions by what they depend on, and where each derived value comes from.

    ``shared`` and ``own`` give the derived values by name: the same in all sequences of the agent, or not. ``windows``
    are those over the sequence itself, ``apart`` names the slots of those over others that are kept per target: both
    must see every row. ``always`` has the variables that the row alone does not decide, ``indicator_conditions``
    and ``cnf_conditions`` what
    it must say for the others: of indicators only, or of facts.
    """

    def __init__(self, index: int, rule: PatternRule, slots: WindowSlots, facts: PredicateIndex) -> None:
        self.index, self.rule = index, rule
        self.machine = LazyAutomaton(rule.program)
        first, later = self.machine.first, self.machine.later
        self.opening = first.wanted | later.wanted
        self.always_opens = first.takes_any or later.takes_any
        self.independent = rule.skip.to == "next"
        self.levels = DependencyLevels(rule.trees.columns)
        self.within, self.max_unread, self.until = rule.within, rule.file.max_unread, rule.until
        self.strongest = rule.file.keep == "strongest"
        self.shared: dict[str, Derive] = {"day": day}
        self.own: dict[str, Derive] = {GAP: of_eager(GAP)}
        self.windows: list[WindowColumn] = []
        self.apart: dict[str, int] = {}
        self._place_columns(slots)
        self.asks_gap = GAP in _names(_trees(rule.file))
        self.eager = bool(self.windows or self.apart or self.asks_gap)
        self.counts = CountConditions(rule.file, rule.names)
        self.always = 0
        self.indicator_conditions: list[tuple[int, IndicatorCondition]] = []
        self.cnf_conditions: list[tuple[int, CnfCondition]] = []
        late = dict(self._read_alone(facts))
        tests = list(self._tests(late))
        self.shared_tests = tuple(test for test, shared in tests if shared)
        self.own_tests = tuple(test for test, shared in tests if not shared)
        self.shared_bits = sum(test.bit for test in self.shared_tests)
        self.own_bits = sum(test.bit for test in self.own_tests)
        self.derived_bits = self.shared_bits | self.own_bits

    def _place_columns(self, slots: WindowSlots) -> None:
        for column in self.rule.columns:
            for window in column.windows:
                self._place_window(window, slots)
            derived = self.own if self.levels.of(Field(column.name)) == FRAME else self.shared
            derived[column.name] = of_column(column.value)

    def _place_window(self, column: WindowColumn, slots: WindowSlots) -> None:
        window, key = column.window, column.key
        every_row = column.of_row_only and self.rule.file.partition_by == ("agent",)  # as in a window over the agent
        if window.over == "agent" or (window.over == "partition" and every_row):
            self.shared[key] = of_agent(slots.place(column))
        elif window.over == "partition":
            self.windows.append(column)
            self.own[key] = of_eager(key)
        elif is_tally(window):
            self.own[key] = of_others(slots.place(column), window)
        else:
            self.apart[key] = slots.place(column)
            self.own[key] = of_eager(key)

    def _read_alone(self, facts: PredicateIndex) -> Iterator[tuple[int, tuple[Evaluate, ...]]]:
        """What rows alone must say for the variables; yields, by bit, what is asked once a match is under way."""
        for i, tree in enumerate(self.rule.trees.define):
            bit, node = 1 << i, implied(tree, self.levels)
            if node is None:
                self.always |= bit
                continue
            names = indicators_alone(node)
            if names:
                self.indicator_conditions.append((bit, IndicatorCondition(node, names, compile_tree(node, row_leaf))))
                continue
            demand = facts.to_cnf(node)
            if demand.rest and not bit & self.opening:
                yield bit, demand.rest
                demand = demand._replace(rest=())
            self.cnf_conditions.append((bit, demand))

    def _tests(self, late: Mapping[int, tuple[Evaluate, ...]]) -> Iterator[tuple[Exact, bool]]:
        for i, tree in enumerate(self.rule.trees.define):
            parts = tree.parts if isinstance(tree, Both) else (tree,)
            derived = tuple(part for part in parts if self.levels.of(part) != ROW)
            asked = (*late.get(1 << i, ()), *(compile_tree(part, row_leaf) for part in derived))
            if asked:
                shared = all(self.levels.of(part) == TABLE for part in derived)
                yield Exact(1 << i, asked[0] if len(asked) == 1 else _all_of(asked)), shared


def _takes_all(column: WindowColumn) -> bool:
    """Whether a window takes the value of every row as it is."""
    return column.counts is None and column.window.function != "count"


def _all_of(parts: tuple[Evaluate, ...]) -> Evaluate:
    return lambda context: all(part(context) is True for part in parts)


def _trees(file: RuleFile) -> Iterator[Node]:
    """Every expression of a rule that may name a column."""
    texts = [*file.columns.values(), *file.define.values(), *file.measures.values(), *file.having]
    yield from (parse(written(text)) for text in texts)
    if file.until is not None:
        yield parse(written(file.until))


def _names(trees: Iterable[Node]) -> frozenset[str]:
    return frozenset(part.name for tree in trees for part in walk(tree) if isinstance(part, Field | Member))
