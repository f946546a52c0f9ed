"""Conversations in Neo4j: threads, messages, scans, routes, and what the judges answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from undersong.errors import StoreError
from undersong.models import Conversation, Evaluation, Message, Route, Scan, ThreadScan, encode
from undersong.stores.codec import Scans, decoded, outdated
from undersong.stores.neo4j.connection import Connection, Transaction
from undersong.stores.neo4j.histories import drop_findings, put_findings
from undersong.stores.neo4j.rows import evaluation_id, put_rows, remove_messages
from undersong.stores.protocol import ConversationUpdate, StoredConversation, StoreVersions, Update

_PUT_THREAD = """
MERGE (t:Thread {thread_id: $thread})
SET t.body = $body, t.scans = $scans, t.title = $title, t.version = $version REMOVE t.routes, t.named
"""
_NEXT_VERSION = """
MERGE (c:Cursor {name: 'versions'}) ON CREATE SET c.change = 0, c.agent = ''
SET c.change = c.change + 1 RETURN c.change AS version
"""
_PUT_MESSAGES = """
MATCH (t:Thread {thread_id: $thread})
UNWIND $items AS item
MERGE (m:Message {thread_id: $thread, message_id: item.message_id})
SET m += item
MERGE (m)-[:IN]->(t)
"""
_PUT_ANSWERS = """
UNWIND $items AS item
MERGE (e:Evaluation {evaluation_id: item.evaluation_id})
SET e += item
WITH e MATCH (m:Message {thread_id: e.thread_id, message_id: e.message_id})
MERGE (e)-[:OF]->(m)
"""


class GraphConversationStore(Connection):
    """The part of a Store that holds what was said, scanned, routed and answered."""

    def put_conversation(self, conversation: Conversation, scans: tuple[Scan, ...], thread: ThreadScan) -> None:
        """See Store."""
        self._check(conversation)

        def work(transaction: Transaction) -> None:
            query = "MATCH (m:Message {thread_id: $thread}) WHERE m.body IS NOT NULL RETURN m.message_id, m.body"
            stored = transaction.run(query, thread=conversation.id)
            gone = outdated(conversation, ((record[0], record[1]) for record in stored))
            remove_messages(transaction, [(conversation.id, name) for name in gone])
            put(transaction, conversation, scans, thread)

        self._write(work)

    def _check(self, conversation: Conversation) -> None:
        if len({message.id for message in conversation.messages}) < len(conversation.messages):
            what = f"conversation '{conversation.id}' has two messages of one id"
            raise StoreError(what, where=self.address, remedy="give every message an id of its own")

    def conversation(self, conversation_id: str) -> tuple[Conversation, tuple[Scan, ...], ThreadScan]:
        """See Store."""
        query = (
            "MATCH (t:Thread {thread_id: $thread}) WHERE t.body IS NOT NULL OPTIONAL MATCH (m:Message)-[:IN]->(t)"
            " WHERE m.body IS NOT NULL RETURN t.body AS head, t.scans AS scans, collect(m.body) AS messages"
        )
        records = self._read(query, thread=conversation_id)
        if not records:
            what = f"no conversation '{conversation_id}'"
            raise StoreError(what, where=self.address, remedy="audit its file first")
        with self._translated():
            messages = sorted((decoded(body, Message) for body in records[0]["messages"]), key=_place)
            scanned, head = decoded(records[0]["scans"], Scans), decoded(records[0]["head"], Conversation)
            if len(scanned.scans) != len(messages):
                raise msgspec.DecodeError(f"{len(messages)} messages and {len(scanned.scans)} scans")
        return msgspec.structs.replace(head, messages=tuple(messages)), scanned.scans, scanned.thread

    def conversations(self) -> Iterator[str]:
        """See Store."""
        records = self._read("MATCH (t:Thread) WHERE t.body IS NOT NULL RETURN t.thread_id")
        return iter(sorted(record[0] for record in records))

    def length(self, conversation_id: str) -> int | None:
        """See Store."""
        query = (
            "MATCH (t:Thread {thread_id: $thread}) WHERE t.body IS NOT NULL"
            " RETURN COUNT { (m:Message)-[:IN]->(t) WHERE m.body IS NOT NULL }"
        )
        records = self._read(query, thread=conversation_id)
        return records[0][0] if records else None

    def messages(self, conversation_id: str, ids: Iterable[str]) -> tuple[Message, ...]:
        """See Store."""
        query = "UNWIND $ids AS id MATCH (m:Message {thread_id: $thread, message_id: id}) RETURN m.body AS body"
        records = self._read(query, thread=conversation_id, ids=sorted(set(ids)))
        with self._translated():
            return tuple(sorted((decoded(each["body"], Message) for each in records if each["body"]), key=_place))

    def answers(self, conversation_id: str, judge_hash: str) -> dict[str, Evaluation]:
        """See Store."""
        query = (
            "MATCH (e:Evaluation {thread_id: $thread, judge_hash: $judge}) WHERE e.answer IS NOT NULL RETURN e.answer"
        )
        answers: dict[str, Evaluation] = {}
        for record in self._read(query, thread=conversation_id, judge=judge_hash):
            with suppress(msgspec.DecodeError):  # a damaged answer is asked for again
                evaluation = decoded(record[0], Evaluation)
                answers[evaluation.message_id] = evaluation
        return answers

    def put_answers(self, answers: Iterable[tuple[str, Evaluation]]) -> None:
        """See Store."""
        pairs = list(answers)
        self._write(lambda transaction: put_answers(transaction, pairs))

    def put_routes(self, routes: Iterable[tuple[str, tuple[Route, ...]]]) -> None:
        """See Store."""
        pairs = list(routes)
        self._write(lambda transaction: put_routes(transaction, pairs))

    def routes(self, conversation_id: str) -> tuple[Route, ...]:
        """See Store."""
        query = "MATCH (t:Thread {thread_id: $thread}) WHERE t.routes IS NOT NULL RETURN t.routes"
        records = self._read(query, thread=conversation_id)
        with self._translated():
            return decoded(records[0][0], tuple[Route, ...]) if records else ()

    def evaluations(self, conversation_id: str, message_id: str | None = None) -> tuple[Evaluation, ...]:
        """See Store."""
        query = (
            "MATCH (e:Evaluation {thread_id: $thread}) WHERE e.answer IS NOT NULL"
            " AND ($message IS NULL OR e.message_id = $message) RETURN e.answer"
        )
        records = self._read(query, thread=conversation_id, message=message_id)
        with self._translated():
            every = [decoded(record[0], Evaluation) for record in records]
        return tuple(sorted(every, key=lambda evaluation: (evaluation.message_id, evaluation.judge_hash)))

    def conversations_with(self, agent: str) -> tuple[str, ...]:
        """See Store."""
        query = (
            "MATCH (m:Message {agent_id: $agent}) RETURN DISTINCT m.thread_id AS name"
            " UNION MATCH (m:Message {target: $agent}) RETURN DISTINCT m.thread_id AS name"
        )
        return tuple(sorted(record["name"] for record in self._read(query, agent=agent)))

    def find_message(self, message_id: str) -> tuple[str, ...]:
        """See Store."""
        query = "MATCH (m:Message {message_id: $message}) WHERE m.body IS NOT NULL RETURN m.thread_id"
        return tuple(sorted(record[0] for record in self._read(query, message=message_id)))


def put(transaction: Transaction, conversation: Conversation, scans: tuple[Scan, ...], thread: ThreadScan) -> None:
    """Replace a conversation, within a transaction."""
    name, ids = conversation.id, [message.id for message in conversation.messages]
    gone = "MATCH (m:Message {thread_id: $thread}) WHERE NOT m.message_id IN $ids DETACH DELETE m"
    transaction.run(gone, thread=name, ids=ids)
    head = encode(msgspec.structs.replace(conversation, messages=()))
    scanned = msgspec.json.encode(Scans(scans=scans, thread=thread))
    version = transaction.run(_NEXT_VERSION)[0]["version"]
    transaction.run(_PUT_THREAD, thread=name, body=head, scans=scanned, title=conversation.title, version=version)
    transaction.run_batched(_PUT_MESSAGES, [_message(message) for message in conversation.messages], thread=name)


def put_answers(transaction: Transaction, answers: Iterable[tuple[str, Evaluation]]) -> None:
    """Keep (conversation id, evaluation) pairs, within a transaction."""
    transaction.run_batched(_PUT_ANSWERS, [_answer(name, evaluation) for name, evaluation in answers])


def put_routes(transaction: Transaction, routes: Iterable[tuple[str, tuple[Route, ...]]]) -> None:
    """Keep (conversation id, routes) pairs, within a transaction."""
    items = [{"thread": name, "routes": msgspec.json.encode(each)} for name, each in routes]
    transaction.run_batched(
        "UNWIND $items AS item MATCH (t:Thread {thread_id: item.thread}) SET t.routes = item.routes", items
    )


def _message(message: Message) -> dict[str, Any]:
    return {
        "message_id": message.id,
        "position": message.position,
        "created_at": message.time,
        "agent_id": message.agent,
        "target": message.target,
        "body": encode(message),
    }


def _answer(conversation: str, evaluation: Evaluation) -> dict[str, Any]:
    return {
        "evaluation_id": evaluation_id(conversation, evaluation.message_id, evaluation.judge_hash),
        "thread_id": conversation,
        "message_id": evaluation.message_id,
        "judge": evaluation.judge,
        "judge_hash": evaluation.judge_hash,
        "answer": encode(evaluation),
    }


def _place(message: Message) -> tuple[int, str]:
    return message.position, message.id


_VERSIONS = "UNWIND $items AS id OPTIONAL MATCH (t:Thread {thread_id: id}) RETURN id, coalesce(t.version, 0) AS number"
_CHANGED = """
UNWIND $items AS id OPTIONAL MATCH (:Agent {agent_id: id})-[r:JUDGED_BY]->(:Judge {judge_hash: $judge})
RETURN id, coalesce(r.changed, 0) AS number
"""
_KEPT = """
MATCH (t:Thread {thread_id: $thread}) WHERE t.body IS NOT NULL RETURN t.named AS named, t.routes AS routes
"""


class GraphLiveStore(GraphConversationStore):
    """The part of a Store that live runs use."""

    def versions(self, conversations: Iterable[str], agents: Iterable[str], judge_hash: str) -> StoreVersions:
        """See Store."""
        names, people = list(conversations), list(agents)
        return self._write(lambda transaction: _versions(transaction, names, people, judge_hash))

    def stored_conversation(self, conversation_id: str) -> StoredConversation | None:
        """See Store."""
        records = self._read(_KEPT, thread=conversation_id)
        if not records:
            return None
        conversation, scans, _ = self.conversation(conversation_id)
        with self._translated():
            routes = decoded(records[0]["routes"] or b"[]", tuple[Route, ...])
        named = records[0]["named"]
        return StoredConversation(
            conversation=conversation,
            scans=scans,
            routes=routes,
            named=None if named is None else frozenset(named),
        )

    def put_update(self, update: Update, expected: StoreVersions) -> StoreVersions | None:
        """See Store."""
        for changed in update.conversations:
            self._check(changed.conversation)

        def work(transaction: Transaction) -> StoreVersions | None:
            names, agents = list(expected.conversations), list(expected.agents)
            if _versions(transaction, names, agents, update.judge_hash) != expected:
                return None
            remove_messages(transaction, update.detached)
            for changed in update.conversations:
                _put(transaction, changed)
            put_answers(transaction, update.answers)
            put_rows(transaction, update.rows, overwrite=True)
            drop_findings(transaction, update.removed)
            put_findings(transaction, update.findings)
            return _versions(transaction, names, agents, update.judge_hash)

        return self._write(work)


def _versions(transaction: Transaction, conversations: list[str], agents: list[str], judge_hash: str) -> StoreVersions:
    versions = transaction.run_batched(_VERSIONS, conversations)
    changed = transaction.run_batched(_CHANGED, agents, judge=judge_hash)
    return StoreVersions(
        {record["id"]: record["number"] for record in versions}, {each["id"]: each["number"] for each in changed}
    )


def _put(transaction: Transaction, update: ConversationUpdate) -> None:
    name = update.conversation.id
    put(transaction, update.conversation, update.scans, update.thread)
    put_routes(transaction, [(name, update.routes)])
    named = "MATCH (t:Thread {thread_id: $thread}) SET t.named = $named"
    transaction.run(named, thread=name, named=sorted(update.named))
