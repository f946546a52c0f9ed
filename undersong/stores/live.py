"""Live runs in SQLite: a conversation grows by a message, in one transaction with all that the message changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from undersong.models import Route
from undersong.stores import Kept, Marks, Spoken, Update
from undersong.stores.conversations import put_answers, put_head, put_messages, read
from undersong.stores.database import Database
from undersong.stores.histories import keep, leave, put_found
from undersong.stores.records import Looked, Scans, decoded


class Live(Database):
    """The part of a Store that live runs use."""

    def marks(self, conversations: Iterable[str], agents: Iterable[str], judge_hash: str) -> Marks:
        """See Store."""
        with self._reading() as db:
            return _marks(db, conversations, agents, judge_hash)

    def kept(self, conversation_id: str) -> Kept | None:
        """See Store."""
        with self._reading() as db:
            found = read(db, conversation_id)
            if found is None:
                return None
            head, scanned, messages, looked = found
            conversation = msgspec.structs.replace(head, messages=messages)
            if looked is None:
                routes = db.execute("SELECT routes FROM conversations WHERE id = ?", (conversation_id,)).fetchone()[0]
                return Kept(
                    conversation=conversation, scans=scanned.scans, routes=decoded(routes or b"[]", tuple[Route, ...])
                )
            return Kept(
                conversation=conversation,
                scans=tuple(each.scan for each in looked),
                routes=tuple(each.route for each in looked),
                named=frozenset(message.id for message, each in zip(messages, looked, strict=True) if each.named),
            )

    def put_update(self, update: Update, marks: Marks) -> Marks | None:
        """See Store."""
        with self._writing() as db:
            if _marks(db, marks.conversations, marks.agents, update.judge_hash) != marks:
                return None
            leave(db, update.left)
            for spoken in update.spoken:
                _put(db, spoken)
            put_answers(db, update.answers)
            keep(db, update.rows, over=True)
            put_found(db, update.findings, update.gone)
            return _marks(db, marks.conversations, marks.agents, update.judge_hash)


def _marks(db: sqlite3.Connection, conversations: Iterable[str], agents: Iterable[str], judge_hash: str) -> Marks:
    version = "SELECT version FROM conversations WHERE id = ?"
    changed = "SELECT changed FROM agents WHERE judge = (SELECT number FROM judges WHERE hash = ?) AND agent = ?"
    return Marks(
        {name: _number(db, version, (name,)) for name in conversations},
        {agent: _number(db, changed, (judge_hash, agent)) for agent in agents},
    )


def _number(db: sqlite3.Connection, query: str, values: tuple[str, ...]) -> int:
    found = db.execute(query, values).fetchone()
    return found[0] if found else 0


def _put(db: sqlite3.Connection, spoken: Spoken) -> None:
    """Put what changed of a conversation; all of it where a batch run put it last."""
    name = spoken.conversation.id
    known = db.execute("SELECT live FROM conversations WHERE id = ?", (name,)).fetchone()
    whole = known is None or not known[0]
    if whole:
        db.execute("DELETE FROM messages WHERE conversation = ?", (name,))
    else:
        gone = ((name, message_id) for message_id in spoken.changed)
        db.executemany("DELETE FROM messages WHERE conversation = ? AND id = ?", gone)
    put_head(db, spoken.conversation, Scans(scans=(), thread=spoken.thread), live=True)
    aligned = zip(spoken.conversation.messages, spoken.scans, spoken.routes, strict=True)
    put_messages(
        db,
        (
            (message, Looked(scan=scan, route=route, named=message.id in spoken.named))
            for message, scan, route in aligned
            if whole or message.id in spoken.changed
        ),
    )
