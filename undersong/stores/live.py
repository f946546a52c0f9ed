"""Live runs in SQLite: a conversation grows by a message, in one transaction with all that the message changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from undersong.models import Route
from undersong.stores import ConversationUpdate, StoredConversation, StoreVersions, Update
from undersong.stores.conversations import put_answers, put_head, put_messages, read
from undersong.stores.database import Database
from undersong.stores.histories import put_rows, remove_messages, update_findings
from undersong.stores.records import LiveMessageState, Scans, decoded


class SQLiteLiveStore(Database):
    """The part of a Store that live runs use."""

    def versions(self, conversations: Iterable[str], agents: Iterable[str], judge_hash: str) -> StoreVersions:
        """See Store."""
        with self._reading() as db:
            return _versions(db, conversations, agents, judge_hash)

    def stored_conversation(self, conversation_id: str) -> StoredConversation | None:
        """See Store."""
        with self._reading() as db:
            parts = read(db, conversation_id)
            if parts is None:
                return None
            head, scanned, messages, looked = parts
            conversation = msgspec.structs.replace(head, messages=messages)
            if looked is None:
                routes = db.execute("SELECT routes FROM conversations WHERE id = ?", (conversation_id,)).fetchone()[0]
                return StoredConversation(
                    conversation=conversation, scans=scanned.scans, routes=decoded(routes or b"[]", tuple[Route, ...])
                )
            return StoredConversation(
                conversation=conversation,
                scans=tuple(each.scan for each in looked),
                routes=tuple(each.route for each in looked),
                named=frozenset(message.id for message, each in zip(messages, looked, strict=True) if each.named),
            )

    def put_update(self, update: Update, expected: StoreVersions) -> StoreVersions | None:
        """See Store."""
        with self._writing() as db:
            if _versions(db, expected.conversations, expected.agents, update.judge_hash) != expected:
                return None
            remove_messages(db, update.detached)
            for changed in update.conversations:
                _put(db, changed)
            put_answers(db, update.answers)
            put_rows(db, update.rows, overwrite=True)
            update_findings(db, update.findings, update.removed)
            return _versions(db, expected.conversations, expected.agents, update.judge_hash)


def _versions(
    db: sqlite3.Connection, conversations: Iterable[str], agents: Iterable[str], judge_hash: str
) -> StoreVersions:
    version = "SELECT version FROM conversations WHERE id = ?"
    changed = "SELECT changed FROM agents WHERE judge = (SELECT number FROM judges WHERE hash = ?) AND agent = ?"
    return StoreVersions(
        {name: _number(db, version, (name,)) for name in conversations},
        {agent: _number(db, changed, (judge_hash, agent)) for agent in agents},
    )


def _number(db: sqlite3.Connection, query: str, values: tuple[str, ...]) -> int:
    row = db.execute(query, values).fetchone()
    return row[0] if row else 0


def _put(db: sqlite3.Connection, update: ConversationUpdate) -> None:
    """Put what changed of a conversation; all of it where a batch run put it last."""
    name = update.conversation.id
    stored = db.execute("SELECT live FROM conversations WHERE id = ?", (name,)).fetchone()
    whole = stored is None or not stored[0]
    if whole:
        db.execute("DELETE FROM messages WHERE conversation = ?", (name,))
    else:
        gone = ((name, message_id) for message_id in update.changed)
        db.executemany("DELETE FROM messages WHERE conversation = ? AND id = ?", gone)
    put_head(db, update.conversation, Scans(scans=(), thread=update.thread), live=True)
    aligned = zip(update.conversation.messages, update.scans, update.routes, strict=True)
    put_messages(
        db,
        (
            (message, LiveMessageState(scan=scan, route=route, named=message.id in update.named))
            for message, scan, route in aligned
            if whole or message.id in update.changed
        ),
    )
