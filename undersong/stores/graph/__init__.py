"""A Neo4j database as the store: the same facts as the first seed's graph (see ``schema``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec

from undersong.models import encode
from undersong.stores import Redaction, Tombstone
from undersong.stores.graph.connection import Transaction
from undersong.stores.graph.conversations import put
from undersong.stores.graph.histories import GraphHistoryStore
from undersong.stores.graph.live import GraphLiveStore
from undersong.stores.graph.recipes import recipes
from undersong.stores.graph.rows import RANKS_APART, put_rows, remove_messages, upgrade
from undersong.stores.graph.schema import VERSION
from undersong.stores.graph.taxonomy import seed
from undersong.stores.records import decoded

_COUNTED = {
    "conversations": "MATCH (t:Thread) WHERE t.body IS NOT NULL RETURN count(t)",
    "messages": "MATCH (m:Message) WHERE m.body IS NOT NULL RETURN count(m)",
    "evaluations": "MATCH (e:Evaluation) WHERE e.answer IS NOT NULL RETURN count(e)",
    "findings": "MATCH ()-[r:EXHIBITS_PATTERN]->() WHERE r.body IS NOT NULL RETURN count(r)",
}
_DROP_THREADS = """
UNWIND $items AS name
CALL { WITH name MATCH (n:Message {thread_id: name}) DETACH DELETE n }
CALL { WITH name MATCH (n:Evaluation {thread_id: name}) DETACH DELETE n }
CALL { WITH name MATCH (n:Thread {thread_id: name}) DETACH DELETE n }
"""
_DROP_ANSWERS = """
UNWIND $items AS place MATCH (e:Evaluation {thread_id: place[0], message_id: place[1]}) DETACH DELETE e
"""
_DROP_AGENT = """
OPTIONAL MATCH (c:Cursor {agent: $name}) SET c.agent = ''
WITH DISTINCT $name AS name
MATCH (a:Agent {agent_id: name}) WHERE NOT (a)-[:EVALUATED]->() DETACH DELETE a
"""


class GraphStore(GraphLiveStore, GraphHistoryStore):
    """A Store in a Neo4j database; any number of processes read and write it, one transaction a time."""

    def _upgrade(self, version: int) -> None:
        def work(transaction: Transaction) -> None:
            if version < RANKS_APART:
                upgrade(transaction)
            transaction.run("MATCH (c:Cursor {name: 'version'}) SET c.change = $version", version=VERSION)

        self._write(work)

    def counts(self) -> dict[str, int]:
        """See Store."""
        return {name: self._read(query)[0][0] for name, query in _COUNTED.items()}

    def redact(self, redaction: Redaction) -> None:
        """See Store. The server's transaction logs keep old bytes until it rotates them."""

        def work(transaction: Transaction) -> None:
            for conversation, scans, thread, routes in redaction.replaced:
                put(transaction, conversation, scans, thread)
                body = msgspec.json.encode(routes)
                transaction.run("MATCH (t:Thread {thread_id: $t}) SET t.routes = $r", t=conversation.id, r=body)
            remove_messages(transaction, redaction.detached)
            transaction.run_batched(_DROP_THREADS, redaction.dropped)
            transaction.run_batched(_DROP_ANSWERS, [list(place) for place in redaction.answers])
            put_rows(transaction, redaction.rows)
            drop = "UNWIND $items AS id MATCH ()-[r:EXHIBITS_PATTERN {finding_id: id}]->() DELETE r"
            transaction.run_batched(drop, redaction.removed)
            transaction.run(_DROP_AGENT, name=redaction.name)
            tombstone = redaction.tombstone
            bury = "MERGE (g:Grave {kind: $kind, digest: $digest}) ON CREATE SET g.body = $body"
            transaction.run(bury, kind=tombstone.kind, digest=tombstone.digest, body=encode(tombstone))

        self._write(work)

    def seed(self) -> None:
        """Put the taxonomy and the patterns into the graph; the same again changes nothing."""
        self._write(seed)

    def run_recipe(self, name: str, judge_hash: str) -> list[dict[str, Any]]:
        """The records of one of the ``recipes`` over the scores of a judge."""
        return [record.data() for record in self._read(recipes()[name], judge=judge_hash)]

    def tombstones(self) -> tuple[Tombstone, ...]:
        """See Store."""
        stored = self._read("MATCH (g:Grave) RETURN g.body ORDER BY g.kind, g.digest")
        with self._translated():
            return tuple(decoded(record[0], Tombstone) for record in stored)

    def repeatable_read(self) -> AbstractContextManager[None]:
        """See Store."""
        return nullcontext()

    def integrity_errors(self) -> Iterator[str]:
        """See Store."""
        query = "MATCH (e:Evaluation) WHERE e.body IS NOT NULL AND NOT (e)<-[:EVALUATED]-() RETURN e.evaluation_id"
        return (f"evaluation {record[0]} belongs to no agent" for record in self._read(query))

    def facts(self) -> dict[str, str]:
        """See Store."""
        components = self._read("CALL dbms.components() YIELD name, versions RETURN name, versions[0] AS version")
        return {"store": self.address} | {record["name"]: record["version"] for record in components}


def open_store(address: str, read_only: bool) -> GraphStore:
    """The store at an address."""
    return GraphStore(address, read_only=read_only)
