"""A store in SQL tables, but for its connection: conversations, histories, reviews, and what is forgotten of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import msgspec

from undersong.models import encode
from undersong.stores.codec import decoded
from undersong.stores.protocol import BEGINNING, Redaction, Store, Tombstone
from undersong.stores.sql.conversations import SQLLiveStore, put
from undersong.stores.sql.database import COUNTED, SQLConnection
from undersong.stores.sql.histories import (
    SQLHistoryStore,
    advance,
    drop_stale,
    mismatched_agents,
    put_rows,
    remove_messages,
)
from undersong.stores.sql.reviews import SQLReviewStore, forget_reviewed

UNWIPED = "unwiped"  # a cursor that is there while forgotten bytes may still be in the files


class SQLStore(SQLLiveStore, SQLHistoryStore, SQLReviewStore, Store):
    """What the stores in SQL have in common."""

    def counts(self) -> dict[str, int]:
        """See Store."""
        with self._translated():
            return {table: self._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in COUNTED}

    def tombstones(self) -> tuple[Tombstone, ...]:
        """See Store."""
        with self._translated():
            bodies = self._db.execute("SELECT body FROM graves ORDER BY kind, digest").fetchall()
            return tuple(decoded(body, Tombstone) for (body,) in bodies)

    @abstractmethod
    def another(self) -> SQLStore:
        """See Store."""

    def unwiped(self) -> bool:
        """Whether bytes of what was forgotten may still be in the files: the process was killed before it ended."""
        return self.cursor(UNWIPED) != BEGINNING

    def wiped(self) -> None:
        """Say that they are gone."""
        with self._writing() as db:
            db.execute("DELETE FROM cursors WHERE name = ?", (UNWIPED,))

    def integrity_errors(self) -> Iterator[str]:
        """See Store."""
        with self._reading() as db:
            return iter([f"the packed history of {agent} is not that of its rows" for agent in mismatched_agents(db)])


def redact_rows(db: SQLConnection, redaction: Redaction) -> None:
    """Do all of a redaction, within a transaction."""
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
    db.execute("DELETE FROM agents WHERE agent NOT IN (SELECT agent FROM history) AND agent = ?", (redaction.name,))
    db.execute("UPDATE cursors SET agent = '' WHERE agent = ?", (redaction.name,))
    drop_stale(db)
    if not redaction.elsewhere:
        advance(db, UNWIPED)
    tombstone = redaction.tombstone
    db.execute("INSERT OR IGNORE INTO graves VALUES (?, ?, ?)", (tombstone.kind, tombstone.digest, encode(tombstone)))


def _forget(db: SQLConnection, where: str, place: tuple[str, ...]) -> None:
    """Drop the raw answers of judges about messages that are forgotten: they quote them."""
    hashes = f"SELECT json_extract(CAST(body AS TEXT), '$.message_hash') FROM evaluations WHERE {where}"
    db.execute(f"DELETE FROM paid WHERE message_hash IN ({hashes})", place)
