"""Agent histories in SQL tables: one row per message and judge in the order of event time, findings, cursors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from undersong.models import Finding, Row, encode
from undersong.rows.binary import LAYOUT, from_microseconds, microseconds, pack
from undersong.stores.codec import decoded, row_body, rows_of, supersedes, touches
from undersong.stores.protocol import (
    BEGINNING,
    AgentEntry,
    AgentHistory,
    AgentSweep,
    Cursor,
    HistoryStore,
    JudgeEntry,
    PackedHistory,
)
from undersong.stores.sql.database import SQLConnection, SQLDatabase

_PAGE = 256  # agents that are listed or asked about at a time
_INSERT = "INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_RANKED = "coalesce(json_extract(CAST(body AS TEXT), '$.scale'), '') = 'rank'"
_JUDGE = "(SELECT number FROM judges WHERE hash = ?)"
OF_AGENT = f"FROM history WHERE agent = ? AND judge = {_JUDGE} ORDER BY time NULLS FIRST, position, id, conversation"
_NUMBERS = f"SELECT rowid {OF_AGENT}"  # from the index alone, as is


class SQLHistoryStore(SQLDatabase, HistoryStore):
    """The agent histories of the store."""

    def append(self, rows: Iterable[Row], findings: Iterable[Finding] = (), *, removed: Iterable[str] = ()) -> None:
        """See Store."""
        with self._writing() as db:
            put_rows(db, rows)
            update_findings(db, findings, removed)

    def history(self, agent: str, judge_hash: str) -> tuple[Row, ...]:
        """See Store."""
        with self._translated():
            return rows_of(body for (body,) in self._db.execute(f"SELECT body {OF_AGENT}", (agent, judge_hash)))

    def rows_at(self, agent: str, judge_hash: str, places: Sequence[int]) -> tuple[Row, ...]:
        """See Store."""
        with self._reading() as db:
            numbers = [each for (each,) in db.execute(_NUMBERS, (agent, judge_hash)).fetchall()]
            wanted = [numbers[place] for place in places if place < len(numbers)]
            if not wanted:
                return ()
            query = f"SELECT rowid, body FROM history WHERE rowid IN ({', '.join(map(str, wanted))})"
            bodies = dict(db.execute(query).fetchall())
            return rows_of(bodies[number] for number in wanted)

    def thread(self, conversation_id: str, judge_hash: str) -> tuple[Row, ...]:
        """See Store."""
        query = f"SELECT body FROM history WHERE conversation = ? AND judge = {_JUDGE} ORDER BY position, id"
        with self._translated():
            return rows_of(body for (body,) in self._db.execute(query, (conversation_id, judge_hash)))

    def aimed_at(self, agent: str) -> Iterator[Row]:
        """See Store."""
        with self._translated():
            for name in [name for (name,) in self._db.execute("SELECT DISTINCT conversation FROM history")]:
                bodies = self._db.execute("SELECT body FROM history WHERE conversation = ?", (name,)).fetchall()
                yield from (row for row in rows_of(body for (body,) in bodies) if row.target == agent)

    def threads(self) -> Iterator[str]:
        """See Store."""
        query = "SELECT DISTINCT conversation FROM history ORDER BY conversation"
        with self._translated():
            return iter([name for (name,) in self._db.execute(query)])

    def histories(self, judge_hash: str, after: Cursor = BEGINNING, least: int = 0) -> Iterator[AgentHistory]:
        """See Store."""
        for agent, changed in self._changed_since(judge_hash, after, least):
            yield AgentHistory(agent, changed, self.history(agent, judge_hash))

    def packed(self, judge_hash: str, after: Cursor = BEGINNING, least: int = 0) -> Iterator[PackedHistory]:
        """See Store."""
        for agent, changed in self._changed_since(judge_hash, after, least):
            with self._translated():
                history = packed_history(self._db, judge_hash, agent, changed)
            yield history

    def _changed_since(self, judge_hash: str, after: Cursor, least: int) -> Iterator[tuple[str, int]]:
        last = self.changes()
        while True:
            page = self._changed(judge_hash, after, last, least)
            yield from page
            if not page:
                return
            after = Cursor(page[-1][1], page[-1][0])

    def _changed(self, judge_hash: str, after: Cursor, last: int, least: int) -> list[tuple[str, int]]:
        query = (
            "SELECT agent, changed FROM agents JOIN judges ON number = judge WHERE hash = ? AND changed <= ?"
            " AND (changed, agent) > (?, ?) AND (SELECT count(*) FROM (SELECT 1 FROM history WHERE"
            " history.agent = agents.agent AND history.judge = agents.judge AND state = 'scored' LIMIT ?) AS scored)"
            " >= ? ORDER BY changed, agent LIMIT ?"
        )
        with self._translated():
            return self._db.execute(query, (judge_hash, last, *after, least, least, _PAGE)).fetchall()

    def agents(self, judge_hash: str) -> tuple[AgentEntry, ...]:
        """See Store."""
        query = (
            "SELECT agent, min(time), max(time), count(*), count(*) FILTER (WHERE state = 'scored'),"
            f" count(*) FILTER (WHERE {_RANKED}), count(DISTINCT conversation)"
            f" FROM history WHERE judge = {_JUDGE} GROUP BY agent ORDER BY agent"
        )
        with self._translated():
            return tuple(_agent_entry(*columns) for columns in self._db.execute(query, (judge_hash,)))

    def judges(self) -> tuple[JudgeEntry, ...]:
        """See Store."""
        query = "SELECT hash, name, (SELECT count(*) FROM history WHERE judge = number) FROM judges ORDER BY number"
        with self._translated():
            return tuple(JudgeEntry(judge_hash=h, judge=n, rows=rows) for h, n, rows in self._db.execute(query))

    def cursor(self, name: str) -> Cursor:
        """See Store."""
        with self._translated():
            row = self._db.execute("SELECT change, agent FROM cursors WHERE name = ?", (name,)).fetchone()
        return Cursor(*row) if row else BEGINNING

    def put_sweep(
        self, judge_hash: str, swept: Sequence[AgentSweep], patterns: Collection[str], cursors: Mapping[str, Cursor]
    ) -> None:
        """See Store."""
        with self._writing() as db:
            current = _current(db, judge_hash, swept)
            _replace(db, current, patterns)
            cache_packed(db, judge_hash, current)
            db.executemany(
                "INSERT OR REPLACE INTO cursors VALUES (?, ?, ?)", ((name, *place) for name, place in cursors.items())
            )

    def put_findings(self, conversations: Iterable[str], findings: Iterable[Finding]) -> None:
        """See Store."""
        rows, audited = [_finding_row(finding) for finding in findings], frozenset(conversations)
        new_ids = {row[0] for row in rows}
        with self._writing() as db:
            stored = db.execute("SELECT id, agent, body FROM findings").fetchall()
            gone = [(name, agent) for name, agent, body in stored if name not in new_ids and touches(body, audited)]
            _bump(db, (place for _, agent in gone for place in _places(db, agent)))  # a sweep may find them again
            db.executemany("DELETE FROM findings WHERE id = ?", ((name,) for name, _ in gone))
            db.executemany("INSERT OR REPLACE INTO findings VALUES (?, ?, ?, ?, ?)", rows)

    def finding_ids(self) -> set[str]:
        """See Store."""
        with self._translated():
            return {name for (name,) in self._db.execute("SELECT id FROM findings")}

    def findings(self, agent: str | None = None) -> Iterator[Finding]:
        """See Store."""
        query = "SELECT body FROM findings WHERE CAST(? AS TEXT) IS NULL OR agent = ? ORDER BY id"
        with self._translated():
            bodies = self._db.execute(query, (agent, agent)).fetchall()
            return iter([decoded(body, Finding) for (body,) in bodies])


def _agent_entry(agent: str, first: int | None, last: int | None, *counts: int) -> AgentEntry:
    numbers = dict(zip(("messages", "read", "ranked", "threads"), counts, strict=True))
    return AgentEntry(agent=agent, first=from_microseconds(first), last=from_microseconds(last), **numbers)


def put_rows(db: SQLConnection, rows: Iterable[Row], *, overwrite: bool = False) -> None:
    """Put rows into the histories, within a transaction; with ``overwrite`` an unread one may replace a read one."""
    numbers: dict[str | None, int] = {}
    changed: set[tuple[int, str]] = set()
    for row in rows:
        if row.judge_hash not in numbers:
            numbers[row.judge_hash] = _judge(db, row)
        changed.update((numbers[row.judge_hash], agent) for agent in _put(db, numbers[row.judge_hash], row, overwrite))
    _bump(db, changed)


def update_findings(db: SQLConnection, findings: Iterable[Finding], removed: Iterable[str]) -> None:
    """Put findings and drop those ``removed``, within a transaction."""
    db.executemany("DELETE FROM findings WHERE id = ?", ((name,) for name in removed))
    db.executemany("INSERT OR REPLACE INTO findings VALUES (?, ?, ?, ?, ?)", map(_finding_row, findings))


def remove_messages(db: SQLConnection, places: Iterable[tuple[str, str]]) -> None:
    """Take messages, by conversation and id, out of every history, within a transaction."""
    changed: set[tuple[int, str]] = set()
    for place in places:
        changed.update(
            db.execute("SELECT judge, agent FROM history WHERE conversation = ? AND id = ?", place).fetchall()
        )
        db.execute("DELETE FROM history WHERE conversation = ? AND id = ?", place)
    _bump(db, changed)


def _judge(db: SQLConnection, row: Row) -> int:
    key = row.judge_hash or ""
    db.execute("INSERT OR IGNORE INTO judges (hash, name) VALUES (?, ?)", (key, row.judge or ""))
    number: int = db.execute("SELECT number FROM judges WHERE hash = ?", (key,)).fetchone()[0]
    return number


def _put(db: SQLConnection, judge: int, row: Row, overwrite: bool) -> tuple[str, ...]:
    """Put a row; returns the agents whose histories changed by it. Without ``overwrite`` what was read stays read."""
    body = row_body(row)
    time = None if row.time is None else microseconds(row.time)
    new = (row.conversation, row.id, judge, row.agent, time, row.position, row.state, body, pack(row))
    if db.execute(f"INSERT OR IGNORE {_INSERT}", new).rowcount:
        return (row.agent,)
    query = "SELECT agent, state, body FROM history WHERE conversation = ? AND id = ? AND judge = ?"
    agent, state, stored_body = db.execute(query, new[:3]).fetchone()
    if not supersedes(row.state, body, state, stored_body, overwrite=overwrite):
        return ()
    db.execute(f"INSERT OR REPLACE {_INSERT}", new)
    return agent, row.agent


def _bump(db: SQLConnection, changed: Iterable[tuple[int, str]]) -> None:
    """Say that these (judge, agent) histories changed, all in one change."""
    places = set(changed)
    if not places:
        return
    now = advance(db, "changes")
    db.executemany("INSERT OR REPLACE INTO agents VALUES (?, ?, ?)", ((*place, now) for place in places))


def advance(db: SQLConnection, cursor: str) -> int:
    """The next number of a cursor that counts changes, within a transaction."""
    more = "INSERT INTO cursors VALUES (?, 1, '') ON CONFLICT (name) DO UPDATE SET change = cursors.change + 1"
    db.execute(more, (cursor,))
    number: int = db.execute("SELECT change FROM cursors WHERE name = ?", (cursor,)).fetchone()[0]
    return number


def _places(db: SQLConnection, agent: str) -> list[tuple[int, str]]:
    """The histories of an agent, one per judge."""
    return db.execute(
        "SELECT number, agent FROM judges JOIN agents ON judge = number WHERE agent = ?", (agent,)
    ).fetchall()


def _current(db: SQLConnection, judge_hash: str, swept: Sequence[AgentSweep]) -> list[AgentSweep]:
    """Those whose history is still the one that was swept; the next sweep reads the others again."""
    query = "SELECT agent, changed FROM agents JOIN judges ON number = judge WHERE hash = ? AND agent IN"
    now = dict(_of_agents(db, query, swept, judge_hash))
    return [each for each in swept if now.get(each.agent) == each.changed]


def _replace(db: SQLConnection, swept: Sequence[AgentSweep], patterns: Collection[str]) -> None:
    stored = list(_of_agents(db, "SELECT id, pattern FROM findings WHERE agent IN", swept))
    findings = [finding for each in swept for finding in each.findings]
    new = {finding.finding_id for finding in findings}
    gone = [(name,) for name, pattern in stored if pattern in patterns and name not in new]
    db.executemany("DELETE FROM findings WHERE id = ?", gone)
    db.executemany("INSERT OR REPLACE INTO findings VALUES (?, ?, ?, ?, ?)", map(_finding_row, findings))


def _of_agents(
    db: SQLConnection, query: str, swept: Sequence[AgentSweep], *parameters: str
) -> Iterator[tuple[str, Any]]:
    for first in range(0, len(swept), _PAGE):
        names = [each.agent for each in swept[first : first + _PAGE]]
        yield from db.execute(f"{query} ({', '.join('?' * len(names))})", (*parameters, *names))


def _finding_row(finding: Finding) -> tuple[str, str, str, str | None, bytes]:
    return finding.finding_id, finding.pattern, finding.agent, finding.target, encode(finding)


_PACKED = (  # from the index alone
    f"SELECT count(*), CAST(group_concat(cells, '') AS BLOB) FROM (SELECT cells {OF_AGENT}) AS ordered"
)
_CACHED = f"SELECT cells FROM swept WHERE agent = ? AND judge = {_JUDGE} AND changed = ?"
_CACHE = (
    "INSERT INTO swept SELECT number, ?, ?, ? FROM judges WHERE hash = ? ON CONFLICT (judge, agent)"
    " DO UPDATE SET changed = excluded.changed, cells = excluded.cells WHERE swept.changed <> excluded.changed"
)
_CURRENT = "agents.judge = swept.judge AND agents.agent = swept.agent AND agents.changed = swept.changed"


def packed_history(db: SQLConnection, judge_hash: str, agent: str, changed: int) -> PackedHistory:
    """The history of an agent as of its change ``changed``, packed; a later one where others write meanwhile."""
    cached = db.execute(_CACHED, (agent, judge_hash, changed)).fetchone()
    if cached:
        return PackedHistory(agent, changed, len(cached[0]) // LAYOUT.size, cached[0])
    return PackedHistory(agent, changed, *_put_together(db, agent, judge_hash))


def cache_packed(db: SQLConnection, judge_hash: str, swept: Iterable[AgentSweep]) -> None:
    """Cache the packed histories that a sweep has read, within a transaction in which they are the current ones."""
    packed = ((each.agent, each.changed, each.cells, judge_hash) for each in swept if each.cells)
    db.executemany(_CACHE, packed)


def drop_stale(db: SQLConnection) -> None:
    """Take away what is no longer the history of its agent, within a transaction."""
    db.execute(f"DELETE FROM swept WHERE NOT EXISTS (SELECT 1 FROM agents WHERE {_CURRENT})")


def mismatched_agents(db: SQLConnection) -> Iterator[str]:
    """The agents of which a packed history that counts as current is not that of the rows."""
    query = f"SELECT hash, swept.agent, cells FROM swept JOIN agents ON {_CURRENT} JOIN judges ON number = swept.judge"
    for judge_hash, agent, cells in db.execute(query):
        if _put_together(db, agent, judge_hash)[1] != cells:
            yield agent


def _put_together(db: SQLConnection, agent: str, judge_hash: str) -> tuple[int, bytes | None]:
    """How many rows, and their cells; None where a row has none."""
    rows, cells = db.execute(_PACKED, (agent, judge_hash)).fetchone()
    return rows, (cells or b"") if len(cells or b"") == rows * LAYOUT.size else None
