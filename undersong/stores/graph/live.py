"""Live runs in Neo4j: all that a message changed in one transaction; the conversation is put as a whole."""

from __future__ import annotations

from collections.abc import Iterable

from undersong.models import Route
from undersong.stores import Kept, Marks, Spoken, Update
from undersong.stores.graph.connection import Transaction
from undersong.stores.graph.conversations import Conversations, put, put_answers, put_routes
from undersong.stores.graph.histories import drop_findings, put_findings
from undersong.stores.graph.rows import keep, leave
from undersong.stores.records import decoded

_VERSIONS = "UNWIND $items AS id OPTIONAL MATCH (t:Thread {thread_id: id}) RETURN id, coalesce(t.version, 0) AS number"
_CHANGED = """
UNWIND $items AS id OPTIONAL MATCH (:Agent {agent_id: id})-[r:JUDGED_BY]->(:Judge {judge_hash: $judge})
RETURN id, coalesce(r.changed, 0) AS number
"""
_KEPT = """
MATCH (t:Thread {thread_id: $thread}) WHERE t.body IS NOT NULL RETURN t.named AS named, t.routes AS routes
"""


class Live(Conversations):
    """The part of a Store that live runs use."""

    def marks(self, conversations: Iterable[str], agents: Iterable[str], judge_hash: str) -> Marks:
        """See Store."""
        names, people = list(conversations), list(agents)
        return self._write(lambda transaction: _marks(transaction, names, people, judge_hash))

    def kept(self, conversation_id: str) -> Kept | None:
        """See Store."""
        found = self._read(_KEPT, thread=conversation_id)
        if not found:
            return None
        conversation, scans, _ = self.conversation(conversation_id)
        with self._translated():
            routes = decoded(found[0]["routes"] or b"[]", tuple[Route, ...])
        named = found[0]["named"]
        return Kept(
            conversation=conversation,
            scans=scans,
            routes=routes,
            named=None if named is None else frozenset(named),
        )

    def put_update(self, update: Update, marks: Marks) -> Marks | None:
        """See Store."""
        for spoken in update.spoken:
            self._check(spoken.conversation)

        def work(transaction: Transaction) -> Marks | None:
            names, agents = list(marks.conversations), list(marks.agents)
            if _marks(transaction, names, agents, update.judge_hash) != marks:
                return None
            leave(transaction, update.left)
            for spoken in update.spoken:
                _put(transaction, spoken)
            put_answers(transaction, update.answers)
            keep(transaction, update.rows, over=True)
            drop_findings(transaction, update.gone)
            put_findings(transaction, update.findings)
            return _marks(transaction, names, agents, update.judge_hash)

        return self._write(work)


def _marks(transaction: Transaction, conversations: list[str], agents: list[str], judge_hash: str) -> Marks:
    versions = transaction.each(_VERSIONS, conversations)
    changed = transaction.each(_CHANGED, agents, judge=judge_hash)
    return Marks(
        {record["id"]: record["number"] for record in versions}, {each["id"]: each["number"] for each in changed}
    )


def _put(transaction: Transaction, spoken: Spoken) -> None:
    name = spoken.conversation.id
    put(transaction, spoken.conversation, spoken.scans, spoken.thread)
    put_routes(transaction, [(name, spoken.routes)])
    named = "MATCH (t:Thread {thread_id: $thread}) SET t.named = $named"
    transaction.run(named, thread=name, named=sorted(spoken.named))
