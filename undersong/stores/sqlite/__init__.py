"""One SQLite file as the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from undersong.core.owned_folder import scratch_folder
from undersong.errors import StoreError
from undersong.models import encode
from undersong.stores.codec import decoded
from undersong.stores.protocol import BEGINNING, Redaction, Store, Tombstone
from undersong.stores.sqlite.connection import FIRST_TABLES
from undersong.stores.sqlite.conversations import SQLiteLiveStore, put
from undersong.stores.sqlite.histories import (
    SQLiteHistoryStore,
    advance,
    drop_stale,
    mismatched_agents,
    put_rows,
    remove_messages,
)
from undersong.stores.sqlite.lists import SQLiteLists, mismatched_totals, unsearchable
from undersong.stores.sqlite.reviews import SQLiteReviewStore, forget_reviewed
from undersong.stores.sqlite.seals import content_digest, seal_errors

UNWIPED = "unwiped"  # a cursor that is there while forgotten bytes may still be in the files


class SQLiteStore(SQLiteLiveStore, SQLiteHistoryStore, SQLiteReviewStore, SQLiteLists, Store):
    """A Store in one file; several processes may read and write it, one at a time may put conversations."""

    def __init__(self, path: Path, *, read_only: bool = False, durable: bool = False) -> None:
        """As Database; also ends an erasure whose process was killed before the bytes were gone."""
        super().__init__(path, read_only=read_only, durable=durable)
        if not read_only and self.cursor(UNWIPED) != BEGINNING:
            with suppress(StoreError):  # a reader of an older version keeps them, until the next try
                self._wipe()

    def counts(self) -> dict[str, int]:
        """See Store."""
        with self._translated():
            return {table: self._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in FIRST_TABLES}

    def redact(self, redaction: Redaction) -> None:
        """See Store."""
        with self._translated():
            self._lock.acquire()
            self._db.execute("PRAGMA secure_delete = ON")
        with self._writing() as db:
            _redact(db, redaction)
            if not redaction.elsewhere:
                advance(db, UNWIPED)
        if not redaction.elsewhere:
            self._wipe()

    def _wipe(self) -> None:
        """Leave no byte of what was deleted in the files."""
        with self._translated(), self._lock_queue.exclusive():
            self._db.execute("VACUUM")
            if self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                what = "another process reads an older version, so what was forgotten is still in the log file"
                remedy = "end that process and run `undersong store migrate`, which empties the log"
                raise StoreError(what, where=str(self.path), remedy=remedy)
        with self._writing() as db:
            db.execute("DELETE FROM cursors WHERE name = ?", (UNWIPED,))

    def tombstones(self) -> tuple[Tombstone, ...]:
        """See Store."""
        with self._translated():
            bodies = self._db.execute("SELECT body FROM graves ORDER BY kind, digest").fetchall()
            return tuple(decoded(body, Tombstone) for (body,) in bodies)

    def integrity_errors(self) -> Iterator[str]:
        """See Store."""
        with self._reading() as db:  # or what others write between two reads would look like damage
            words = [word for (word,) in db.execute("PRAGMA integrity_check")]
            others = [f"the packed history of {agent} is not that of its rows" for agent in mismatched_agents(db)]
            others += [*unsearchable(db), *mismatched_totals(db), *seal_errors(db)]
            return iter([*(words if words != ["ok"] else []), *others])

    def digest(self) -> str | None:
        """See Store."""
        with self._reading() as db:
            return content_digest(db)

    def facts(self) -> dict[str, str]:
        """See Store."""
        with self._translated():
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            size = self._place.stat().st_size
        return {"store": str(self.path), "version": str(version), "size": f"{size:,} bytes"}


def _redact(db: sqlite3.Connection, redaction: Redaction) -> None:
    for conversation, scans, thread, routes in redaction.replaced:
        put(db, conversation, scans, thread)
        db.execute("UPDATE conversations SET routes = ? WHERE id = ?", (msgspec.json.encode(routes), conversation.id))
    for name in redaction.dropped:
        _forget(db, "conversation = ?", (name,))
        for table, column in (("conversations", "id"), ("messages", "conversation"), ("evaluations", "conversation")):
            db.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))
    for place in redaction.answers:
        _forget(db, "conversation = ? AND message = ?", place)
    db.execute("DELETE FROM histories WHERE agent = ?", (redaction.name,))
    db.executemany("DELETE FROM evaluations WHERE conversation = ? AND message = ?", redaction.answers)
    remove_messages(db, redaction.detached)
    put_rows(db, redaction.rows)
    db.executemany("DELETE FROM findings WHERE id = ?", ((name,) for name in redaction.removed))
    forget_reviewed(db, redaction)
    if not redaction.elsewhere:
        db.execute("INSERT INTO words (words) VALUES ('optimize')")  # or the index would hold the words that went
    db.execute("DELETE FROM agents WHERE agent NOT IN (SELECT agent FROM history) AND agent = ?", (redaction.name,))
    db.execute("UPDATE cursors SET agent = '' WHERE agent = ?", (redaction.name,))
    drop_stale(db)
    tombstone = redaction.tombstone
    db.execute("INSERT OR IGNORE INTO graves VALUES (?, ?, ?)", (tombstone.kind, tombstone.digest, encode(tombstone)))


def _forget(db: sqlite3.Connection, where: str, place: tuple[str, ...]) -> None:
    """Drop the raw answers of judges about messages that are forgotten: they quote them."""
    hashes = f"SELECT json_extract(CAST(body AS TEXT), '$.message_hash') FROM evaluations WHERE {where}"
    db.execute(f"DELETE FROM paid WHERE message_hash IN ({hashes})", place)


def open_store(address: str, read_only: bool) -> SQLiteStore:
    """The store at a path."""
    return SQLiteStore(Path(address), read_only=read_only)


@contextmanager
def temporary_store() -> Iterator[SQLiteStore]:
    """A store in a temporary file that is removed afterwards: bounded memory for a run that stores nothing."""
    with scratch_folder() as folder, SQLiteStore(folder / "run.db") as store:
        yield store
