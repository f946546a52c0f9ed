"""Live runs in Neo4j: all that a message changed in one transaction; the conversation is put as a whole."""

from __future__ import annotations

from collections.abc import Iterable

from undersong.models import Route
from undersong.stores import ConversationUpdate, StoredConversation, StoreVersions, Update
from undersong.stores.graph.connection import Transaction
from undersong.stores.graph.conversations import GraphConversationStore, put, put_answers, put_routes
from undersong.stores.graph.histories import drop_findings, put_findings
from undersong.stores.graph.rows import put_rows, remove_messages
from undersong.stores.records import decoded

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
