"""The execution plan of a rule: what is computed from it before it sees a row."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Both, Call, Field, Node, Variable, Window, walk
from undersong.patterns.language.fields import FIELDS
from undersong.patterns.language.inputs import FRAME, TABLE, DependencyLevels, implied
from undersong.patterns.language.row_pattern import AT_END, AT_START
from undersong.patterns.vectorized.dfa import ProgramArrays, program_arrays
from undersong.patterns.vectorized.rolling import SUMMED
from undersong.patterns.vectorized.start_filter import MatchRequirements, match_requirements


class LayeredCondition(NamedTuple):
    """A variable's condition: what a row alone must say, what the agent's rows add, and what the rule's sequence adds.

    ``row`` mentions no column; it holds wherever the other two can.
    """

    row: Node | None
    before: Node | None
    within: Node | None


class VectorPlan(NamedTuple):
    """A rule, taken apart. ``code`` is None where only the reference can walk; ``whole``: it needs whole sequences;
    ``placed``: windows need to know where in their sequences rows are.
    """

    rule: PatternRule
    levels: DependencyLevels
    conditions: tuple[LayeredCondition, ...]
    requirements: MatchRequirements
    having: tuple[Node, ...]
    code: ProgramArrays | None
    anchored: bool
    whole: bool
    placed: bool

    @property
    def targeted(self) -> bool:
        """Whether its sequences are towards targets."""
        return "target" in self.rule.file.partition_by


@lru_cache(maxsize=256)
def plan(rule: PatternRule) -> VectorPlan:
    """The plan of a rule."""
    trees, levels = rule.trees, DependencyLevels(rule.trees.columns)
    conditions = tuple(_condition(tree, levels) for tree in trees.define)
    operations = {operation for operation, _, _ in rule.program.instructions}
    anchored = bool(operations & {AT_START, AT_END})
    return VectorPlan(
        rule,
        levels,
        conditions,
        match_requirements(trees.part, rule.program, rule.names, trees.having),
        _having(trees.having, trees.measures),
        program_arrays(rule.program) if not rule.program.slots else None,
        anchored,
        anchored or any(map(_needs_all, [*trees.columns.values(), *trees.define, *_some(trees.until)])),
        any(isinstance(part, Window) and part.over != "agent" for tree in every_tree(rule) for part in walk(tree)),
    )


def every_tree(rule: PatternRule) -> tuple[Node, ...]:
    """The expressions of a rule over rows and matches, but for `where`."""
    trees = rule.trees
    return *trees.columns.values(), *trees.define, *_some(trees.until), *trees.having, *trees.measures.values()


def _having(trees: tuple[Node, ...], measures: Mapping[str, Node]) -> tuple[Node, ...]:
    """The conditions on measures, the cheapest first: all must hold, so their order changes no result."""
    costs: dict[str, int] = {}
    for name, tree in measures.items():
        costs[name] = _cost(tree, costs)
    parts = [part for tree in trees for part in (tree.parts if isinstance(tree, Both) else (tree,))]
    return tuple(sorted(parts, key=lambda part: _cost(part, costs)))


def _cost(tree: Node, measures: Mapping[str, int]) -> int:
    cost = 0
    for part in walk(tree):
        if isinstance(part, Field):
            cost += measures.get(part.name, 0)
        elif isinstance(part, Call):
            cost += 0 if isinstance(part.arguments[0], Variable) else 10 if part.name in ("std", "slope") else 2
    return cost


def _some(tree: Node | None) -> tuple[Node, ...]:
    return () if tree is None else (tree,)


def _condition(tree: Node, levels: DependencyLevels) -> LayeredCondition:
    parts = tree.parts if isinstance(tree, Both) else (tree,)
    before = tuple(part for part in parts if levels.of(part) == TABLE)
    within = tuple(part for part in parts if levels.of(part) == FRAME)
    return LayeredCondition(implied(tree, levels), *(Both(group) if group else None for group in (before, within)))


def _needs_all(tree: Node) -> bool:
    """Whether a value depends on rows of the sequence that running sums do not stand for."""
    windows = [part for part in walk(tree) if isinstance(part, Window) and part.over == "partition"]
    gaps = any(isinstance(part, Field) and part.name == "gap_hours" for part in walk(tree))
    return gaps or not all(map(running_sum, windows))


def running_sum(window: Window) -> bool:
    """Whether a window is a sum over all earlier rows, of what each row alone says."""
    parts = [*walk(window.value), *(walk(window.where) if window.where is not None else [])]
    alone = all(part.name in FIELDS for part in parts if isinstance(part, Field))
    return alone and window.function in SUMMED and window.rows is None and window.hours is None and not window.lag
