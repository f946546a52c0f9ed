"""The store in a Neo4j database; docs/store.md has the graph's nodes and relationships."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

import msgspec
from neo4j import Record

from undersong.datafiles.taxonomy import CombinationPattern, SabotagePathway, Taxonomy, taxonomy
from undersong.models import encode
from undersong.patterns.catalog import all_rules
from undersong.stores.codec import decoded
from undersong.stores.neo4j.connection import FOLDER, VERSION, Transaction, cypher
from undersong.stores.neo4j.conversations import GraphLiveStore, fill_texts, put, put_routes
from undersong.stores.neo4j.histories import (
    FOR_PEOPLE,
    RANKS_APART,
    GraphHistoryStore,
    drop_findings,
    pattern_names,
    put_rows,
    remove_messages,
    upgrade,
    upgrade_summaries,
)
from undersong.stores.neo4j.reviews import GraphReviewStore, forget_reviewed
from undersong.stores.protocol import Redaction, Store, Tombstone

_COUNTED = ("conversations", "messages", "evaluations", "findings")
# what is stored; the taxonomy comes with the program, and other labels are other people's
LABELS = ("Agent", "Claim", "Cursor", "Evaluation", "Finding", "Grave", "Judge", "Lead", "Message", "Review", "Thread")
_encode = msgspec.msgpack.Encoder(enc_hook=str, order="sorted").encode


class GraphStore(GraphLiveStore, GraphHistoryStore, GraphReviewStore, Store):
    """A Store in a Neo4j database; any number of processes read and write it, one transaction a time."""

    def _upgrade(self, version: int) -> None:
        def work(transaction: Transaction) -> None:
            if version < RANKS_APART:
                upgrade(transaction)
            if version < FOR_PEOPLE:
                fill_texts(transaction)
                upgrade_summaries(transaction)
            transaction.run(cypher.put_version, version=VERSION)

        self._write(work)

    def _prepare(self) -> None:
        super()._prepare()
        if not self._read(cypher.traits)[0]["traits"]:
            self.seed()

    def counts(self) -> dict[str, int]:
        """See Store."""
        return {name: self._read(getattr(cypher, f"count_{name}"))[0][0] for name in _COUNTED}

    def redact(self, redaction: Redaction) -> None:
        """See Store. The server's transaction logs keep old bytes until it rotates them."""

        def work(transaction: Transaction) -> None:
            for conversation, scans, thread, routes in redaction.replaced:
                put(transaction, conversation, scans, thread)
                put_routes(transaction, [(conversation.id, routes)])
            remove_messages(transaction, redaction.detached)
            transaction.run_batched(cypher.drop_threads, redaction.dropped)
            transaction.run_batched(cypher.drop_answers, [list(place) for place in redaction.answers])
            put_rows(transaction, redaction.rows)
            drop_findings(transaction, redaction.removed)
            forget_reviewed(transaction, redaction)
            transaction.run(cypher.drop_agent, name=redaction.name)
            tombstone = redaction.tombstone
            names = {"kind": tombstone.kind, "digest": tombstone.digest}
            transaction.run(cypher.put_tombstone, **names, body=encode(tombstone))

        self._write(work)

    def seed(self) -> None:
        """Put the taxonomy and the patterns into the graph; the same again changes nothing."""
        self._write(seed)

    def run_recipe(self, name: str, judge_hash: str) -> list[dict[str, Any]]:
        """The records of one of the ``recipes`` over the scores of a judge."""
        return [record.data() for record in self._read(recipes()[name], judge=judge_hash)]

    def tombstones(self) -> tuple[Tombstone, ...]:
        """See Store."""
        stored = self._read(cypher.tombstones)
        with self._translated():
            return tuple(decoded(record[0], Tombstone) for record in stored)

    def integrity_errors(self) -> Iterator[str]:
        """See Store."""
        return (f"evaluation {record[0]} belongs to no agent" for record in self._read(cypher.rows_without_agent))

    def digest(self) -> str | None:
        """See Store; what is written meanwhile may be in it in part."""
        return self._streamed(content_digest, (cypher.content_nodes, cypher.content_relationships), labels=LABELS)

    def facts(self) -> dict[str, str]:
        """See Store."""
        components = self._read(cypher.components)
        return {"store": self.address} | {record["name"]: record["version"] for record in components}


def open_store(address: str, read_only: bool) -> GraphStore:
    """The store at an address."""
    return GraphStore(address, read_only=read_only)


def seed(transaction: Transaction) -> None:
    """Make the nodes, or bring them up to date; the same again changes nothing."""
    catalog = taxonomy()
    traits = catalog.traits.values()
    items = [{"name": t.id, "dimension": t.dimension, "polarity": t.polarity, "value": t.value} for t in traits]
    transaction.run_batched(cypher.put_traits, items)
    fields = ("id", "name", "trait", "description", "sequence_only")
    indicators = [{name: getattr(each, name) for name in fields} for each in catalog.indicators.values()]
    transaction.run_batched(cypher.put_indicator_types, indicators)
    transaction.run_batched(cypher.put_patterns, _patterns(catalog))


def _patterns(catalog: Taxonomy) -> list[dict[str, object]]:
    """Every rule is a Pattern; combination patterns and sabotage pathways are composed of their indicators."""
    shapes: dict[str, CombinationPattern | SabotagePathway] = {
        **catalog.combination_patterns,
        **catalog.sabotage_pathways,
    }
    parts = {shape.name: (id_, sorted(shape.indicators)) for id_, shape in shapes.items()}
    items: list[dict[str, object]] = []
    for rule in all_rules():
        if rule.file.variant_of is not None:
            continue
        name = pattern_names().get(rule.id, rule.id)
        id_, indicators = parts.pop(rule.id, (None, []))
        about = {"rule": rule.id, "title": rule.file.title, "level": rule.file.level}
        names = {"aliases": [each for each in (rule.id, *rule.file.aliases) if each != name]}
        items.append(
            {"name": name, "id": id_, "indicators": indicators, "sets": sorted(rule.file.sets), **names, **about}
        )
    for name, (id_, indicators) in parts.items():
        empty: dict[str, object] = {"rule": None, "level": None, "aliases": [], "sets": []}
        items.append({"name": name, "id": id_, "indicators": indicators, "title": name, **empty})
    return items


def recipes() -> dict[str, str]:
    """Rule id → a query with the parameter ``judge``.

    Each record has agent, start_eval_id, end_eval_id, eval_count, message_ids and confidence.
    """
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((FOLDER / "recipes").glob("*.cypher"))}


def content_digest(nodes: Iterable[Record], relationships: Iterable[Record]) -> str:
    """SHA-256 over all of them: another one after any change. The server's own numbers of nodes do not count.

    ``nodes``: number, labels, properties. ``relationships``: number of the first node, type, properties, number of the
    second node, and its name where it is of the taxonomy.
    """
    hashes = {number: _hash(sorted(labels), properties) for number, labels, properties in nodes}
    links = [
        _hash(hashes.get(first), kind, properties, hashes.get(second), name)
        for first, kind, properties, second, name in relationships
    ]
    return sha256(b"".join((*sorted(hashes.values()), b"/", *sorted(links)))).hexdigest()


def _hash(*parts: object) -> bytes:
    return sha256(_encode(parts)).digest()
