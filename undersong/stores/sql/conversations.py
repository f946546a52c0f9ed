"""Conversations in SQL tables: messages, scans, routes, and what the judges answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from undersong.errors import StoreError
from undersong.models import Conversation, Evaluation, Message, Route, Scan, ThreadScan, encode
from undersong.stores.codec import LiveMessageState, Scans, decoded, outdated
from undersong.stores.protocol import (
    ConversationStore,
    ConversationUpdate,
    LiveStore,
    StoredConversation,
    StoreVersions,
    Update,
)
from undersong.stores.sql.database import SQLConnection, SQLDatabase
from undersong.stores.sql.histories import advance, put_rows, remove_messages, update_findings
from undersong.stores.sql.reviews import put_word_leads


class SQLConversationStore(SQLDatabase, ConversationStore):
    """The conversations of the store, with scans, routes and answers."""

    def put_conversation(self, conversation: Conversation, scans: tuple[Scan, ...], thread: ThreadScan) -> None:
        """See Store."""
        self.put_conversations([(conversation, scans, thread)])

    def put_conversations(self, scanned: Iterable[tuple[Conversation, tuple[Scan, ...], ThreadScan]]) -> None:
        """See Store; in one transaction."""
        with self._translated():
            self._begin_audit()
        with self._writing() as db:
            for conversation, scans, thread in scanned:
                query = "SELECT id, body FROM messages WHERE conversation = ?"
                stored = db.execute(query, (conversation.id,)).fetchall()
                remove_messages(db, ((conversation.id, name) for name in outdated(conversation, stored)))
                put(db, conversation, scans, thread)

    def conversation(self, conversation_id: str) -> tuple[Conversation, tuple[Scan, ...], ThreadScan]:
        """See Store."""
        with self._reading() as db:  # both reads see the same version
            parts = read(db, conversation_id)
            if parts is None:
                what = f"no conversation '{conversation_id}'"
                raise StoreError(what, where=self.where, remedy="audit its file first")
            head, scanned, messages, looked = parts
            scans = scanned.scans if looked is None else tuple(each.scan for each in looked)
            if len(scans) != len(messages):
                raise msgspec.DecodeError(f"{len(messages)} messages and {len(scans)} scans")
        return msgspec.structs.replace(head, messages=messages), scans, scanned.thread

    def conversations(self) -> Iterator[str]:
        """See Store."""
        return self._names("conversations", "id")

    def length(self, conversation_id: str) -> int | None:
        """See Store."""
        query = "SELECT (SELECT count(*) FROM messages WHERE conversation = c.id) FROM conversations c WHERE id = ?"
        with self._translated():
            row = self._db.execute(query, (conversation_id,)).fetchone()
        return row[0] if row else None

    def messages(self, conversation_id: str, ids: Iterable[str]) -> tuple[Message, ...]:
        """See Store."""
        query = "SELECT body FROM messages WHERE conversation = ? AND id = ?"
        with self._reading() as db:
            rows = (db.execute(query, (conversation_id, each)).fetchone() for each in set(ids))
            messages = [decoded(row[0], Message) for row in rows if row is not None]
        return tuple(sorted(messages, key=lambda message: (message.position, message.id)))

    def answers(self, conversation_id: str, judge_hash: str) -> dict[str, Evaluation]:
        """See Store."""
        query = "SELECT body FROM evaluations WHERE conversation = ? AND judge_hash = ?"
        with self._translated():
            bodies = self._db.execute(query, (conversation_id, judge_hash)).fetchall()
        answers: dict[str, Evaluation] = {}
        for (body,) in bodies:
            with suppress(msgspec.DecodeError):  # a damaged answer is asked for again
                evaluation = decoded(body, Evaluation)
                answers[evaluation.message_id] = evaluation
        return answers

    def put_answers(self, answers: Iterable[tuple[str, Evaluation]]) -> None:
        """See Store."""
        with self._writing() as db:
            put_answers(db, answers)

    def put_routes(self, routes: Iterable[tuple[str, tuple[Route, ...]]]) -> None:
        """See Store."""
        rows = [(msgspec.json.encode(each), name) for name, each in routes]
        with self._writing() as db:
            db.executemany("UPDATE conversations SET routes = ? WHERE id = ?", rows)

    def routes(self, conversation_id: str) -> tuple[Route, ...]:
        """See Store."""
        query = "SELECT routes FROM conversations WHERE id = ? AND routes IS NOT NULL"
        with self._reading() as db:
            row = db.execute(query, (conversation_id,)).fetchone()
            if row:
                return decoded(row[0], tuple[Route, ...])
            return tuple(each.route for each in _live_states(db, conversation_id))

    def evaluations(self, conversation_id: str, message_id: str | None = None) -> tuple[Evaluation, ...]:
        """See Store."""
        query = "SELECT body FROM evaluations WHERE conversation = ? AND (CAST(? AS TEXT) IS NULL OR message = ?)"
        with self._translated():
            ordered = f"{query} ORDER BY message, judge_hash"
            bodies = self._db.execute(ordered, (conversation_id, message_id, message_id)).fetchall()
            return tuple(decoded(body, Evaluation) for (body,) in bodies)

    def conversations_with(self, agent: str) -> tuple[str, ...]:
        """See Store."""
        query = "SELECT DISTINCT conversation FROM messages WHERE agent = ? OR target = ? ORDER BY conversation"
        with self._translated():
            return tuple(name for (name,) in self._db.execute(query, (agent, agent)))

    def find_message(self, message_id: str) -> tuple[str, ...]:
        """See Store."""
        query = "SELECT conversation FROM messages WHERE id = ? ORDER BY conversation"
        with self._translated():
            return tuple(name for (name,) in self._db.execute(query, (message_id,)))

    def _names(self, table: str, column: str) -> Iterator[str]:
        """The distinct values of a column in order, some hundred at a time, so that writers need not wait."""
        query = f"SELECT DISTINCT {column} FROM {table} WHERE {column} > ? ORDER BY {column} LIMIT 500"
        last = ""
        while True:
            with self._translated():
                names = [name for (name,) in self._db.execute(query, (last,))]
            yield from names
            if not names:
                return
            last = names[-1]


def put(db: SQLConnection, conversation: Conversation, scans: tuple[Scan, ...], thread: ThreadScan) -> None:
    """Replace a conversation, within a transaction; messages that are the same stay, with their place in the search."""
    rows = db.execute("SELECT id, body FROM messages WHERE conversation = ? AND live IS NULL", (conversation.id,))
    stored = dict(rows.fetchall())
    numbers = Counter(message.id for message in conversation.messages)  # an id that comes twice fails below
    same = {m.id for m in conversation.messages if numbers[m.id] == 1 and stored.get(m.id) == encode(m)}
    every = db.execute("SELECT id FROM messages WHERE conversation = ?", (conversation.id,)).fetchall()
    gone = [(conversation.id, name) for (name,) in every if name not in same]
    db.executemany("DELETE FROM messages WHERE conversation = ? AND id = ?", gone)
    put_messages(db, ((message, None) for message in conversation.messages if message.id not in same))
    put_head(db, conversation, Scans(scans=scans, thread=thread), live=False)


def put_answers(db: SQLConnection, answers: Iterable[tuple[str, Evaluation]]) -> None:
    """Put (conversation id, evaluation) pairs, within a transaction."""
    rows = ((c, e.message_id, e.judge_hash, e.state, encode(e)) for c, e in answers)
    db.executemany("INSERT OR REPLACE INTO evaluations VALUES (?, ?, ?, ?, ?)", rows)


def put_head(db: SQLConnection, conversation: Conversation, scanned: Scans, *, live: bool) -> None:
    """Replace all of a conversation but its messages, which are there already; lists have its latest time from them.

    Its version is a number that no conversation had before.
    """
    head = encode(msgspec.structs.replace(conversation, messages=()))
    db.execute(
        "INSERT OR REPLACE INTO conversations VALUES (?, ?, ?, NULL, ?, ?)",
        (conversation.id, head, msgspec.json.encode(scanned), advance(db, "versions"), live),
    )


def put_messages(db: SQLConnection, messages: Iterable[tuple[Message, LiveMessageState | None]]) -> None:
    """Put messages, each with its scan and route of a live run or None."""
    rows = (
        (*_message_row(message), None if looked is None else msgspec.json.encode(looked))
        for message, looked in messages
    )
    db.executemany("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)


def read(
    db: SQLConnection, conversation_id: str
) -> tuple[Conversation, Scans, tuple[Message, ...], tuple[LiveMessageState, ...] | None] | None:
    """Head, scans, messages, and for each its live state (None: a batch run put them)."""
    query = "SELECT body, scans, live FROM conversations WHERE id = ?"
    row = db.execute(query, (conversation_id,)).fetchone()
    if row is None:
        return None
    query = "SELECT body FROM messages WHERE conversation = ? ORDER BY position, id"
    bodies = db.execute(query, (conversation_id,)).fetchall()
    messages = tuple(decoded(body, Message) for (body,) in bodies)
    looked = tuple(_live_states(db, conversation_id)) if row[2] else None
    return decoded(row[0], Conversation), decoded(row[1], Scans), messages, looked


def _live_states(db: SQLConnection, conversation_id: str) -> Iterator[LiveMessageState]:
    query = "SELECT live FROM messages WHERE conversation = ? AND live IS NOT NULL ORDER BY position, id"
    for (body,) in db.execute(query, (conversation_id,)).fetchall():
        yield decoded(body, LiveMessageState)


def _message_row(message: Message) -> tuple[str, str, int, str, str | None, int | None, bytes]:
    time = round(message.time.timestamp() * 1_000_000) if message.time else None
    ids = (message.conversation, message.id, message.position, message.agent)
    return (*ids, message.target, time, encode(message))


class SQLLiveStore(SQLConversationStore, LiveStore):
    """The optimistic updates of live runs."""

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
                routes = self.routes(conversation_id)
                return StoredConversation(conversation=conversation, scans=scanned.scans, routes=routes)
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
            put_word_leads(db, update.leads)
            return _versions(db, expected.conversations, expected.agents, update.judge_hash)


def _versions(db: SQLConnection, conversations: Iterable[str], agents: Iterable[str], judge_hash: str) -> StoreVersions:
    version = "SELECT version FROM conversations WHERE id = ?"
    changed = "SELECT changed FROM agents WHERE judge = (SELECT number FROM judges WHERE hash = ?) AND agent = ?"
    return StoreVersions(
        {name: _number(db, version, (name,)) for name in conversations},
        {agent: _number(db, changed, (judge_hash, agent)) for agent in agents},
    )


def _number(db: SQLConnection, query: str, values: tuple[str, ...]) -> int:
    row = db.execute(query, values).fetchone()
    return row[0] if row else 0


def _put(db: SQLConnection, update: ConversationUpdate) -> None:
    """Put what changed of a conversation; all of it where a batch run put it last."""
    name = update.conversation.id
    stored = db.execute("SELECT live FROM conversations WHERE id = ?", (name,)).fetchone()
    whole = stored is None or not stored[0]
    if whole:
        db.execute("DELETE FROM messages WHERE conversation = ?", (name,))
    else:
        gone = ((name, message_id) for message_id in update.changed)
        db.executemany("DELETE FROM messages WHERE conversation = ? AND id = ?", gone)
    aligned = zip(update.conversation.messages, update.scans, update.routes, strict=True)
    put_messages(
        db,
        (
            (message, LiveMessageState(scan=scan, route=route, named=message.id in update.named))
            for message, scan, route in aligned
            if whole or message.id in update.changed
        ),
    )
    put_head(db, update.conversation, Scans(scans=(), thread=update.thread), live=True)
