"""What the parts of a rule depend on, and what a row alone must say for a condition to hold."""

from __future__ import annotations

from collections.abc import Mapping

from undersong.patterns.expressions import Both, Either, Field, Node, Window, children, replaced, walk
from undersong.patterns.fields import FIELDS

ROW, TABLE, FRAME = 0, 1, 2  # what a value depends on: its row, the agent's rows before it, the rule's sequence


class DependencyLevels:
    """What each part of a rule depends on; a column depends on what its expression does."""

    def __init__(self, columns: Mapping[str, Node]) -> None:
        self.columns = columns
        self._known: dict[Node, int] = {}
        self._named: dict[Node, bool] = {}

    def of(self, node: Node) -> int:
        """ROW, TABLE or FRAME."""
        if node not in self._known:
            self._known[node] = max(map(self._leaf, _outer(node)), default=ROW)
        return self._known[node]

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


def _outer(node: Node) -> list[Node]:
    """The node and everything below it, but not what stands within windows."""
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
