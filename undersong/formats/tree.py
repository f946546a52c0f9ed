"""Reply trees with regenerated answers: the order of all nodes, and the branch of those that were abandoned."""

from __future__ import annotations

from collections.abc import Mapping


def branches(parents: Mapping[str, str | None], current: str | None) -> dict[str, str | None]:
    """Every reachable node in reading order → None on the path to ``current``, else the node its branch began with.

    ``parents`` is in the order in which siblings were made; without a known ``current`` the last leaf is taken.
    Nodes on a circle are not reachable and are left out.
    """
    children: dict[str | None, list[str]] = {}
    for node, parent in parents.items():
        children.setdefault(parent if parent in parents else None, []).append(node)
    active = _path_to(current, parents) if current in parents else _last_path(children)
    branch_of: dict[str, str | None] = {}
    stack: list[tuple[str, str | None]] = [(node, None) for node in reversed(children.get(None, []))]
    while stack:
        node, branch = stack.pop()
        branch_of[node] = None if node in active else branch or node
        below = children.get(node, [])
        stack.extend((child, branch_of[node] if child == below[0] else None) for child in reversed(below))
    return branch_of


def _path_to(node: str | None, parents: Mapping[str, str | None]) -> set[str]:
    path: set[str] = set()
    while node is not None and node in parents and node not in path:
        path.add(node)
        node = parents[node]
    return path


def _last_path(children: Mapping[str | None, list[str]]) -> set[str]:
    path: set[str] = set()
    node: str | None = None
    while below := children.get(node):
        node = below[-1]
        path.add(node)
    return path
