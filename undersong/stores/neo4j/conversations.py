"""Conversations in Neo4j: threads, messages, scans, routes, and what the judges answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from undersong.errors import StoreError
from undersong.models import Conversation, Evaluation, Message, Route, Scan, ThreadScan, encode
from undersong.stores.codec import Scans, decoded, outdated
from undersong.stores.neo4j.connection import Connection, Transaction, cypher
from undersong.stores.neo4j.histories import drop_findings, evaluation_id, put_findings, put_rows, remove_messages
from undersong.stores.neo4j.reviews import put_word_leads
from undersong.stores.protocol import (
    ConversationStore,
    ConversationUpdate,
    LiveStore,
    StoredConversation,
    StoreVersions,
    Update,
)


class GraphConversationStore(Connection, ConversationStore):
    """The conversations of the store, with scans, routes and answers."""

    def put_conversation(self, conversation: Conversation, scans: tuple[Scan, ...], thread: ThreadScan) -> None:
        """See Store."""
        self._check(conversation)

        def work(transaction: Transaction) -> None:
            stored = transaction.run(cypher.message_bodies, thread=conversation.id)
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
        records = self._read(cypher.conversation, thread=conversation_id)
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
        records = self._read(cypher.conversations)
        return iter(sorted(record[0] for record in records))

    def length(self, conversation_id: str) -> int | None:
        """See Store."""
        records = self._read(cypher.length, thread=conversation_id)
        return records[0][0] if records else None

    def messages(self, conversation_id: str, ids: Iterable[str]) -> tuple[Message, ...]:
        """See Store."""
        records = self._read(cypher.messages, thread=conversation_id, ids=sorted(set(ids)))
        with self._translated():
            return tuple(sorted((decoded(each["body"], Message) for each in records if each["body"]), key=_place))

    def answers(self, conversation_id: str, judge_hash: str) -> dict[str, Evaluation]:
        """See Store."""
        answers: dict[str, Evaluation] = {}
        for record in self._read(cypher.answers, thread=conversation_id, judge=judge_hash):
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
        records = self._read(cypher.routes, thread=conversation_id)
        with self._translated():
            return decoded(records[0][0], tuple[Route, ...]) if records else ()

    def evaluations(self, conversation_id: str, message_id: str | None = None) -> tuple[Evaluation, ...]:
        """See Store."""
        records = self._read(cypher.evaluations, thread=conversation_id, message=message_id)
        with self._translated():
            every = [decoded(record[0], Evaluation) for record in records]
        return tuple(sorted(every, key=lambda evaluation: (evaluation.message_id, evaluation.judge_hash)))

    def conversations_with(self, agent: str) -> tuple[str, ...]:
        """See Store."""
        return tuple(sorted(record["name"] for record in self._read(cypher.conversations_with, agent=agent)))

    def find_message(self, message_id: str) -> tuple[str, ...]:
        """See Store."""
        return tuple(sorted(record[0] for record in self._read(cypher.find_message, message=message_id)))


def put(transaction: Transaction, conversation: Conversation, scans: tuple[Scan, ...], thread: ThreadScan) -> None:
    """Replace a conversation, within a transaction."""
    name, ids = conversation.id, [message.id for message in conversation.messages]
    transaction.run(cypher.drop_other_messages, thread=name, ids=ids)
    head = encode(msgspec.structs.replace(conversation, messages=()))
    scanned = msgspec.json.encode(Scans(scans=scans, thread=thread))
    version = transaction.run(cypher.next_version)[0]["version"]
    transaction.run(cypher.put_thread, thread=name, body=head, scans=scanned, title=conversation.title, version=version)
    transaction.run_batched(cypher.put_messages, [_message(message) for message in conversation.messages], thread=name)


def put_answers(transaction: Transaction, answers: Iterable[tuple[str, Evaluation]]) -> None:
    """Put (conversation id, evaluation) pairs, within a transaction."""
    transaction.run_batched(cypher.put_answers, [_answer(name, evaluation) for name, evaluation in answers])


def put_routes(transaction: Transaction, routes: Iterable[tuple[str, tuple[Route, ...]]]) -> None:
    """Put (conversation id, routes) pairs, within a transaction."""
    items = [{"thread": name, "routes": msgspec.json.encode(each)} for name, each in routes]
    transaction.run_batched(cypher.put_routes, items)


def fill_texts(transaction: Transaction) -> None:
    """Migration to FOR_PEOPLE: messages had no text of their own, only within their body."""
    items = [
        {
            "thread": record["thread"],
            "message_id": record["id"],
            "properties": _message(decoded(record["body"], Message)),
        }
        for record in transaction.run(cypher.texts)
    ]
    transaction.run_batched(cypher.put_texts, items)


def _message(message: Message) -> dict[str, Any]:
    return {
        "message_id": message.id,
        "author": message.author,
        "role": message.role,
        "text": message.text,
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


class GraphLiveStore(GraphConversationStore, LiveStore):
    """The optimistic updates of live runs."""

    def versions(self, conversations: Iterable[str], agents: Iterable[str], judge_hash: str) -> StoreVersions:
        """See Store."""
        names, people = list(conversations), list(agents)
        return self._write(lambda transaction: _versions(transaction, names, people, judge_hash))

    def stored_conversation(self, conversation_id: str) -> StoredConversation | None:
        """See Store."""
        records = self._read(cypher.live_thread, thread=conversation_id)
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
            put_word_leads(transaction, update.leads)
            return _versions(transaction, names, agents, update.judge_hash)

        return self._write(work)


def _versions(transaction: Transaction, conversations: list[str], agents: list[str], judge_hash: str) -> StoreVersions:
    versions = transaction.run_batched(cypher.thread_versions, conversations)
    changed = transaction.run_batched(cypher.agent_versions, agents, judge=judge_hash)
    return StoreVersions(
        {record["id"]: record["number"] for record in versions}, {each["id"]: each["number"] for each in changed}
    )


def _put(transaction: Transaction, update: ConversationUpdate) -> None:
    name = update.conversation.id
    put(transaction, update.conversation, update.scans, update.thread)
    put_routes(transaction, [(name, update.routes)])
    transaction.run(cypher.put_named, thread=name, named=sorted(update.named))
