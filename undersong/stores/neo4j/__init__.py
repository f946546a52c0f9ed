"""A Neo4j database as the store: the same facts as the first seed's graph (see ``schema``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from undersong.datafiles.taxonomy import CombinationPattern, SabotagePathway, Taxonomy, taxonomy
from undersong.models import encode
from undersong.patterns.catalog import all_rules
from undersong.stores.codec import decoded
from undersong.stores.neo4j.connection import VERSION, Transaction
from undersong.stores.neo4j.conversations import GraphLiveStore, put
from undersong.stores.neo4j.histories import GraphHistoryStore, pattern_names
from undersong.stores.neo4j.rows import RANKS_APART, put_rows, remove_messages, upgrade
from undersong.stores.protocol import Redaction, Tombstone

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


_TRAITS = """
UNWIND $items AS item
MERGE (d:Dimension {name: item.dimension})
MERGE (t:Trait {name: item.name}) SET t.polarity = item.polarity, t.value = item.value
MERGE (t)-[:BELONGS_TO]->(d)
"""
_INDICATORS = """
UNWIND $items AS item
MATCH (t:Trait {name: item.trait})
MERGE (i:Indicator {indicator_id: item.id})
SET i.name = item.name, i.description = item.description, i.sequence_only = item.sequence_only
MERGE (i)-[:BELONGS_TO]->(t)
"""
_PATTERNS = """
UNWIND $items AS item
MERGE (p:Pattern {name: item.name})
SET p.rule = item.rule, p.title = item.title, p.level = item.level, p.pattern_id = item.id
WITH p, item UNWIND item.indicators AS id
MATCH (i:Indicator {indicator_id: id})
MERGE (p)-[:COMPOSED_OF]->(i)
"""


def seed(transaction: Transaction) -> None:
    """Make the nodes, or bring them up to date; the same again changes nothing."""
    catalog = taxonomy()
    traits = catalog.traits.values()
    transaction.run_batched(
        _TRAITS,
        [{"name": t.id, "dimension": t.dimension, "polarity": t.polarity, "value": t.value} for t in traits],
    )
    transaction.run_batched(
        _INDICATORS,
        [
            {
                "id": i.id,
                "name": i.name,
                "trait": i.trait,
                "description": i.description,
                "sequence_only": i.sequence_only,
            }
            for i in catalog.indicators.values()
        ],
    )
    transaction.run_batched(_PATTERNS, _patterns(catalog))


def _patterns(catalog: Taxonomy) -> list[dict[str, object]]:
    """Every rule is a Pattern; combination patterns and sabotage pathways are composed of their indicators."""
    shapes: dict[str, CombinationPattern | SabotagePathway] = {
        **catalog.combination_patterns,
        **catalog.sabotage_pathways,
    }
    parts = {shape.name: (id_, sorted(shape.indicators)) for id_, shape in shapes.items()}
    items: list[dict[str, object]] = []
    for rule in all_rules():
        name = pattern_names().get(rule.id, rule.id)
        id_, indicators = parts.pop(rule.id, (None, []))
        about = {"rule": rule.id, "title": rule.file.title, "level": rule.file.level}
        items.append({"name": name, "id": id_, "indicators": indicators, **about})
    for name, (id_, indicators) in parts.items():
        items.append({"name": name, "id": id_, "indicators": indicators, "rule": None, "title": name, "level": None})
    return items


FOLDER = Path(__file__).parent / "recipes"


def recipes() -> dict[str, str]:
    """Rule id → a query with the parameter ``judge``.

    Each record has agent, start_eval_id, end_eval_id, eval_count, message_ids and confidence.
    """
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.cypher"))}
