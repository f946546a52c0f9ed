"""Inputs of a rule: what rows must have before it can say anything about them, and what its parts depend on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from undersong.models import DIMENSIONS, TRAITS, Row
from undersong.models.row import DownstreamRow
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Both, Either, Field, Node, Window, children, replaced, walk
from undersong.patterns.language.fields import DOWNSTREAM, FIELDS

_ALWAYS_THERE = frozenset({"observed", "target", "directed", "agent", "conversation", "role", "state", "position"})
_FROM_SCAN = frozenset({"total", "density", "sampled"})  # every row has a value, scanned or not
NEVER_MISSING = _ALWAYS_THERE | _FROM_SCAN
_SIGNAL = "signals:"
_TRAITS = frozenset({*TRAITS, *DIMENSIONS})
_OTHERS = frozenset({*FIELDS, "indicators"}) - _TRAITS - NEVER_MISSING - {DOWNSTREAM}
_RANKS_ONLY = (
    "needs scores as levels; this text is of a kind that the judge was not measured on, so they are ranks: "
    "name a judge that gives levels with --judge"
)


def available_inputs(read: Iterable[Row], wanted: Collection[str]) -> frozenset[str]:
    """Those of the ``wanted`` inputs that at least one read row has."""
    traits, others = _TRAITS.intersection(wanted), frozenset(wanted) - _TRAITS - NEVER_MISSING
    for row in read:
        if others:
            others -= {name for name in others if gives(row, name)}
        if traits and row.traits is not None:
            traits -= {name for name in traits if gives(row, name)}
        if not others and not traits:
            break
    return frozenset(wanted) - others - traits


class CorpusInputs:
    """What the rows of a corpus have, of all agents: it decides which rules apply to any of them.

    ``present`` are the inputs that at least one read row has, ``named`` the indicators of any row, ``ranks`` whether
    some read row has ranks for scores. What parts of a corpus have adds up (``merge``).
    """

    def __init__(
        self, present: Iterable[str] = (), named: Iterable[str] = (), *, any_read: bool = False, ranks: bool = False
    ) -> None:
        self.present, self.named, self.any_read, self.ranks = set(present), set(named), any_read, ranks
        self._traits, self._others = _TRAITS - self.present, _OTHERS - self.present

    def add(self, row: Row) -> None:
        """Note what a row has, of which the traits that are ranks are out (``absolute_rows``)."""
        if row.indicators:
            self.named.update([each.id for each in row.indicators])
        if row.state != "scored" or row.branch is not None:
            return
        self.any_read = True
        self.ranks |= row.scale == "rank"
        self.present.update([_SIGNAL + name for name in row.signals])
        if self._others:
            self._note({name for name in self._others if gives(row, name)})
        if self._traits and row.traits is not None:
            self._note({name for name in self._traits if gives(row, name)})

    def merge(self, other: CorpusInputs) -> None:
        """Note what the rows of another part have."""
        self.named |= other.named
        self.any_read |= other.any_read
        self.ranks |= other.ranks
        self._note(other.present)

    def _note(self, names: set[str]) -> None:
        self.present |= names
        self._traits, self._others = self._traits - names, self._others - names


def gives(row: Row, name: str) -> bool:
    """Whether a read row has an input: a field, ``indicators`` or ``signals:NAME``."""
    if name in NEVER_MISSING:
        return True
    if name == DOWNSTREAM:
        return isinstance(row, DownstreamRow)
    if name == "indicators":
        return row.indicators is not None
    if name.startswith(_SIGNAL):
        return name.removeprefix(_SIGNAL) in row.signals
    if name == "tier" and row.observed != "unknown":
        return True  # rules that compare tiers ask for `observed` first
    return name in FIELDS and FIELDS[name].read(row) is not None


def lacking(
    rule: PatternRule, has: Collection[str], gives: Collection[str] | None, *, any_read: bool, ranks: bool = False
) -> str:
    """Why a rule cannot say anything about these rows; "" where it can.

    ``has`` are the inputs that some read row has; ``gives`` names what the judge fills, None where nobody says;
    ``ranks``: some read row has ranks for scores, which count as missing.
    """
    if not any_read:
        return "no message was read"
    missing = {need for need in rule.needs if need not in has}
    if gives is not None:
        if "indicators" in rule.needs and "indicators" not in gives:
            missing.add("indicators")
        if "traits" not in gives:
            missing |= rule.needs & _TRAITS
    if not missing:
        return ""
    if DOWNSTREAM in missing:
        return "needs the messages of other agents beside those of one: audit, detect and sweep look for it"
    if ranks and missing <= _TRAITS:
        return _RANKS_ONLY
    missing -= _TRAITS if ranks else set()  # named by what no other text would have either
    return f"needs {', '.join(sorted(name.removeprefix(_SIGNAL) for name in missing))}, which no read message has"


_NAME = re.compile(r"[A-Za-z_]\w*")


def inputs_by_stage(rule: PatternRule) -> dict[str, frozenset[str]]:
    """Per DEFINE variable the names in its condition, those behind its columns included."""
    columns = {name: _names(str(text), {}) for name, text in rule.file.columns.items()}
    return {variable: _names(str(text), columns) for variable, text in rule.file.define.items()}


def stage_inputs(by_stage: Mapping[str, Collection[str]], stage: str) -> Collection[str]:
    """The names that a stage rests on; of a stage without conditions those of all stages."""
    return by_stage.get(stage) or {name for each in by_stage.values() for name in each}


def _names(text: str, columns: Mapping[str, frozenset[str]]) -> frozenset[str]:
    names = frozenset(_NAME.findall(text))
    return names.union(*(columns[name] for name in names & columns.keys()))


ROW, TABLE, FRAME = 0, 1, 2  # what a value depends on: its row, the agent's rows before it, the rule's sequence


class DependencyLevels:
    """What each part of a rule depends on; a column depends on what its expression does."""

    def __init__(self, columns: Mapping[str, Node]) -> None:
        self.columns = columns
        self._known: dict[Node, int] = {}
        self._named: dict[Node, bool] = {}

    def of(self, node: Node) -> int:
        """ROW, TABLE or FRAME."""
        if not self.columns:
            return _level_without_columns(node)
        if node not in self._known:
            self._known[node] = self.worked_out(node)
        return self._known[node]

    def worked_out(self, node: Node) -> int:
        """The level from the parts of an expression."""
        return max(map(self._leaf, _outer(node)), default=ROW)

    def named(self, node: Node) -> bool:
        """Whether it mentions a column: then its value is the rule's own."""
        if node not in self._named:
            self._named[node] = any(isinstance(part, Field) and part.name in self.columns for part in walk(node))
        return self._named[node]

    def _leaf(self, node: Node) -> int:
        if isinstance(node, Window):
            return TABLE if node.over == "agent" else FRAME
        if not isinstance(node, Field) or node.name in FIELDS:
            return ROW
        if node.name in self.columns:
            return self.of(self.columns[node.name])
        return TABLE if node.name == "day" else FRAME


@lru_cache(maxsize=8192)
def _level_without_columns(node: Node) -> int:
    return DependencyLevels({}).worked_out(node)


def _outer(node: Node) -> list[Node]:
    """The node and everything below it, but not what is within windows."""
    nodes, open_nodes = [], [node]
    while open_nodes:
        nodes.append(open_nodes.pop())
        if not isinstance(nodes[-1], Window):
            open_nodes.extend(children(nodes[-1]))
    return nodes


def implied(tree: Node, levels: DependencyLevels) -> Node | None:
    """What a row alone must say for a condition to hold; None: anything."""
    if levels.of(tree) == ROW:
        return written_out(tree, levels)
    if isinstance(tree, Field) and tree.name in levels.columns:
        return implied(levels.columns[tree.name], levels)
    if not isinstance(tree, Both | Either):
        return None
    parts = [part for part in (implied(part, levels) for part in tree.parts) if part is not None]
    if isinstance(tree, Either) and len(parts) < len(tree.parts):
        return None
    return type(tree)(tuple(parts)) if parts else None


def written_out(tree: Node, levels: DependencyLevels) -> Node:
    """The same without names of columns, so that rules share it."""
    for part in [*walk(tree)]:
        if isinstance(part, Field) and part.name in levels.columns:
            tree = replaced(tree, part, written_out(levels.columns[part.name], levels))
    return tree
