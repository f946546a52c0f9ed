"""Packed histories in SQLite: put together from the index by agent, and kept by the sweep that has read them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from undersong.stores import AgentSweep, PackedHistory
from undersong.stores.packed import LAYOUT

OF_AGENT = (
    "FROM history WHERE agent = ? AND judge = (SELECT number FROM judges WHERE hash = ?)"
    " ORDER BY time, position, id, conversation"
)
_PACKED = f"SELECT count(*), CAST(group_concat(cells, '') AS BLOB) FROM (SELECT cells {OF_AGENT})"  # the index alone
_KEPT = "SELECT cells FROM swept WHERE agent = ? AND judge = (SELECT number FROM judges WHERE hash = ?) AND changed = ?"
_KEEP = (
    "INSERT INTO swept SELECT number, ?, ?, ? FROM judges WHERE hash = ? ON CONFLICT (judge, agent)"
    " DO UPDATE SET changed = excluded.changed, cells = excluded.cells WHERE changed <> excluded.changed"
)
_CURRENT = "agents.judge = swept.judge AND agents.agent = swept.agent AND agents.changed = swept.changed"


def packed_history(db: sqlite3.Connection, judge_hash: str, agent: str, changed: int) -> PackedHistory:
    """The history of an agent as of its change ``changed``, packed; a later one where others write meanwhile."""
    cached = db.execute(_KEPT, (agent, judge_hash, changed)).fetchone()
    if cached:
        return PackedHistory(agent, changed, len(cached[0]) // LAYOUT.size, cached[0])
    return PackedHistory(agent, changed, *_put_together(db, agent, judge_hash))


def cache_packed(db: sqlite3.Connection, judge_hash: str, swept: Iterable[AgentSweep]) -> None:
    """Keep the packed histories that a sweep has read, within a transaction in which they are the current ones."""
    packed = ((each.agent, each.changed, each.cells, judge_hash) for each in swept if each.cells)
    db.executemany(_KEEP, packed)


def drop_stale(db: sqlite3.Connection) -> None:
    """Take away what is no longer the history of its agent, within a transaction."""
    db.execute(f"DELETE FROM swept WHERE NOT EXISTS (SELECT 1 FROM agents WHERE {_CURRENT})")


def mismatched_agents(db: sqlite3.Connection) -> Iterator[str]:
    """The agents of which a packed history that counts as current is not that of the rows."""
    query = f"SELECT hash, swept.agent, cells FROM swept JOIN agents ON {_CURRENT} JOIN judges ON number = swept.judge"
    for judge_hash, agent, cells in db.execute(query):
        if _put_together(db, agent, judge_hash)[1] != cells:
            yield agent


def _put_together(db: sqlite3.Connection, agent: str, judge_hash: str) -> tuple[int, bytes | None]:
    """How many rows, and their cells; None where a row has none."""
    rows, cells = db.execute(_PACKED, (agent, judge_hash)).fetchone()
    return rows, (cells or b"") if len(cells or b"") == rows * LAYOUT.size else None
