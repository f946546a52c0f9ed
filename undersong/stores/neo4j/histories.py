"""Agent histories in Neo4j: rows in event time, findings as EXHIBITS_PATTERN, cursors of sweeps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from neo4j import Record

from undersong.models import Finding, Row, encode
from undersong.patterns.catalog import all_rules
from undersong.rows.binary import pack
from undersong.rows.timestamps import from_microseconds, microseconds
from undersong.stores.codec import decoded, rows_of, touches
from undersong.stores.neo4j.connection import Connection, Transaction
from undersong.stores.neo4j.rows import bump, put_rows
from undersong.stores.protocol import BEGINNING, AgentEntry, AgentHistory, AgentSweep, Cursor, JudgeEntry, PackedHistory

_PAGE = 256  # agents that are listed at a time
_CHANGED = """
MATCH (j:Judge {judge_hash: $judge})<-[r:JUDGED_BY]-(a:Agent)
WHERE r.changed <= $last AND (r.changed > $change OR (r.changed = $change AND a.agent_id > $agent))
AND ($least = 0 OR COUNT { (a)-[:EVALUATED]->(e:Evaluation {judge_hash: $judge, state: 'scored'}) } >= $least)
RETURN a.agent_id AS agent, r.changed AS changed ORDER BY changed, agent LIMIT $page
"""
_ROWS = """
UNWIND $agents AS agent
MATCH (:Agent {agent_id: agent})-[:EVALUATED]->(e:Evaluation {judge_hash: $judge}) WHERE e.body IS NOT NULL
RETURN agent, collect(e.body) AS bodies
"""
_AGENTS = """
MATCH (a:Agent)-[:JUDGED_BY]->(:Judge {judge_hash: $judge})
MATCH (a)-[:EVALUATED]->(e:Evaluation {judge_hash: $judge}) WHERE e.body IS NOT NULL
RETURN a.agent_id AS agent, count(e) AS messages, count(DISTINCT e.thread_id) AS threads,
sum(CASE e.state WHEN 'scored' THEN 1 ELSE 0 END) AS read,
sum(CASE e.scale WHEN 'rank' THEN 1 ELSE 0 END) AS ranked, min(e.time) AS first, max(e.time) AS last
"""
_PUT_FINDINGS = """
UNWIND $items AS item
MERGE (a:Agent {agent_id: item.agent})
MERGE (p:Pattern {name: item.name})
MERGE (a)-[r:EXHIBITS_PATTERN {finding_id: item.id}]->(p)
ON CREATE SET r.detected_at = $now
SET r += item.properties
WITH r, item
CALL {
  WITH item
  UNWIND item.ends AS end
  OPTIONAL MATCH (e:Evaluation {thread_id: end[0], message_id: end[1], agent_id: item.agent})
  WHERE e.judge IN item.judges OR size(item.judges) = 0
  WITH end, min(e.evaluation_id) AS id ORDER BY end[2]
  RETURN collect(coalesce(id, '')) AS ids
}
SET r.start_eval_id = ids[0], r.end_eval_id = ids[1]
"""
_DROP = "UNWIND $items AS id MATCH ()-[r:EXHIBITS_PATTERN {finding_id: id}]->() DELETE r"
_CURRENT = """
UNWIND $items AS item MATCH (:Agent {agent_id: item.agent})-[r:JUDGED_BY]->(:Judge {judge_hash: $judge})
WHERE r.changed = item.changed
RETURN item.agent AS agent
"""
_OF_PATTERNS = """
UNWIND $items AS agent MATCH (:Agent {agent_id: agent})-[r:EXHIBITS_PATTERN]->() WHERE r.rule IN $patterns
RETURN r.finding_id AS id
"""


class GraphHistoryStore(Connection):
    """The part of a Store that patterns read: every agent's rows, across conversations."""

    def append(self, rows: Iterable[Row], findings: Iterable[Finding] = (), *, removed: Iterable[str] = ()) -> None:
        """See Store."""
        new_rows, new_findings, dropped = list(rows), list(findings), list(removed)

        def work(transaction: Transaction) -> None:
            put_rows(transaction, new_rows)
            drop_findings(transaction, dropped)
            put_findings(transaction, new_findings)

        self._write(work)

    def history(self, agent: str, judge_hash: str) -> tuple[Row, ...]:
        """See Store."""
        by_agent = self._histories([agent], judge_hash)
        return by_agent.get(agent, ())

    def rows_at(self, agent: str, judge_hash: str, places: Sequence[int]) -> tuple[Row, ...]:
        """See Store."""
        rows = self.history(agent, judge_hash)
        return tuple(rows[place] for place in places if place < len(rows))

    def _histories(self, agents: Sequence[str], judge_hash: str) -> dict[str, tuple[Row, ...]]:
        records = self._read(_ROWS, agents=list(agents), judge=judge_hash)
        with self._translated():
            return {each["agent"]: tuple(sorted(rows_of(each["bodies"]), key=_in_time)) for each in records}

    def thread(self, conversation_id: str, judge_hash: str) -> tuple[Row, ...]:
        """See Store."""
        query = "MATCH (e:Evaluation {thread_id: $thread, judge_hash: $judge}) WHERE e.body IS NOT NULL RETURN e.body"
        records = self._read(query, thread=conversation_id, judge=judge_hash)
        with self._translated():
            return tuple(sorted(rows_of(record[0] for record in records), key=lambda row: (row.position, row.id)))

    def aimed_at(self, agent: str) -> Iterator[Row]:
        """See Store."""
        records = self._read(
            "MATCH (e:Evaluation {target: $agent}) WHERE e.body IS NOT NULL RETURN e.body", agent=agent
        )
        with self._translated():
            return iter(rows_of(record[0] for record in records))

    def threads(self) -> Iterator[str]:
        """See Store."""
        records = self._read("MATCH (e:Evaluation) WHERE e.body IS NOT NULL RETURN DISTINCT e.thread_id")
        return iter(sorted(record[0] for record in records))

    def histories(self, judge_hash: str, after: Cursor = BEGINNING, least: int = 0) -> Iterator[AgentHistory]:
        """See Store."""
        last = self.changes()
        while True:
            page = self._read(
                _CHANGED, judge=judge_hash, last=last, change=after.change, agent=after.agent, least=least, page=_PAGE
            )
            rows = self._histories([record["agent"] for record in page], judge_hash)
            yield from (AgentHistory(agent, changed, rows.get(agent, ())) for agent, changed in page)
            if not page:
                return
            after = Cursor(page[-1]["changed"], page[-1]["agent"])

    def packed(self, judge_hash: str, after: Cursor = BEGINNING, least: int = 0) -> Iterator[PackedHistory]:
        """See Store."""
        for agent, changed, rows in self.histories(judge_hash, after, least):
            cells = [each for each in map(pack, rows) if each is not None]
            yield PackedHistory(agent, changed, len(rows), b"".join(cells) if len(cells) == len(rows) else None)

    def changes(self) -> int:
        """See Store."""
        return self.cursor("changes").change

    def agents(self, judge_hash: str) -> tuple[AgentEntry, ...]:
        """See Store."""
        return tuple(sorted(map(_entry, self._read(_AGENTS, judge=judge_hash)), key=lambda entry: entry.agent))

    def judges(self) -> tuple[JudgeEntry, ...]:
        """See Store."""
        query = (
            "MATCH (j:Judge) OPTIONAL MATCH (j)<-[r:JUDGED_BY]-(a:Agent)-[:EVALUATED]->"
            "(e:Evaluation {judge_hash: j.judge_hash}) WHERE e.body IS NOT NULL"
            " RETURN j.judge_hash AS judge_hash, j.name AS judge, count(e) AS rows, min(r.changed) AS first"
            " ORDER BY first, judge_hash"
        )
        return tuple(JudgeEntry(judge_hash=h, judge=name, rows=rows) for h, name, rows, _ in self._read(query))

    def cursor(self, name: str) -> Cursor:
        """See Store."""
        records = self._read("MATCH (c:Cursor {name: $name}) RETURN c.change, c.agent", name=name)
        return Cursor(*records[0]) if records else BEGINNING

    def put_sweep(
        self, judge_hash: str, swept: Sequence[AgentSweep], patterns: Collection[str], cursors: Mapping[str, Cursor]
    ) -> None:
        """See Store."""
        items = [{"agent": each.agent, "changed": each.changed} for each in swept]
        places = [{"name": name, "change": place.change, "agent": place.agent} for name, place in cursors.items()]
        put = (
            "UNWIND $items AS item MERGE (c:Cursor {name: item.name}) SET c.change = item.change, c.agent = item.agent"
        )

        def work(transaction: Transaction) -> None:
            current = {record["agent"] for record in transaction.run_batched(_CURRENT, items, judge=judge_hash)}
            findings = [finding for each in swept if each.agent in current for finding in each.findings]
            stored = transaction.run_batched(_OF_PATTERNS, sorted(current), patterns=sorted(patterns))
            new = {finding.finding_id for finding in findings}
            transaction.run_batched(_DROP, [record["id"] for record in stored if record["id"] not in new])
            put_findings(transaction, findings)
            transaction.run_batched(put, places)

        self._write(work)

    def put_findings(self, conversations: Iterable[str], findings: Iterable[Finding]) -> None:
        """See Store."""
        new_findings, audited = list(findings), frozenset(conversations)
        new = {finding.finding_id for finding in new_findings}
        query = (
            "MATCH (a:Agent)-[r:EXHIBITS_PATTERN]->() RETURN r.finding_id AS id, a.agent_id AS agent, r.body AS body"
        )
        placed = "UNWIND $items AS agent MATCH (:Agent {agent_id: agent})-[:JUDGED_BY]->(j) RETURN agent, j.judge_hash"

        def work(transaction: Transaction) -> None:
            stored = transaction.run(query)
            gone = [each for each in stored if each["id"] not in new and touches(each["body"], audited)]
            losers = sorted({each["agent"] for each in gone})
            bump(transaction, sorted({(agent, judge) for agent, judge in transaction.run_batched(placed, losers)}))
            transaction.run_batched(_DROP, [each["id"] for each in gone])
            put_findings(transaction, new_findings)

        self._write(work)

    def finding_ids(self) -> set[str]:
        """See Store."""
        query = "MATCH (:Agent)-[r:EXHIBITS_PATTERN]->() WHERE r.body IS NOT NULL RETURN r.finding_id"
        return {record[0] for record in self._read(query)}

    def findings(self, agent: str | None = None) -> Iterator[Finding]:
        """See Store."""
        query = (
            "MATCH (a:Agent)-[r:EXHIBITS_PATTERN]->() WHERE r.body IS NOT NULL"
            " AND ($agent IS NULL OR a.agent_id = $agent) RETURN r.body ORDER BY r.finding_id"
        )
        records = self._read(query, agent=agent)
        with self._translated():
            return iter([decoded(record[0], Finding) for record in records])


def drop_findings(transaction: Transaction, removed: Sequence[str]) -> None:
    """Drop the findings of these ids, within a transaction."""
    transaction.run_batched(_DROP, list(removed))


def put_findings(transaction: Transaction, findings: Sequence[Finding]) -> None:
    """Put findings under their ids, within a transaction; ``detected_at`` is the time at which one first comes."""
    transaction.run_batched(_PUT_FINDINGS, [_item(finding) for finding in findings], now=datetime.now(UTC))


@lru_cache(maxsize=1)
def pattern_names() -> dict[str, str]:
    """Rule id → the name of its Pattern node: the first seed's name where the rule has one as an alias."""
    return {rule.id: rule.file.aliases[0] for rule in all_rules() if rule.file.aliases}


def _item(finding: Finding) -> dict[str, Any]:
    places = list(zip(finding.message_conversations, finding.message_ids, strict=False))
    ends = [[*places[0], 0], [*places[-1], 1]] if places else []
    return {
        "id": finding.finding_id,
        "agent": finding.agent,
        "name": pattern_names().get(finding.pattern, finding.pattern),
        "judges": list(finding.judges),
        "ends": ends,
        "properties": {
            "rule": finding.pattern,
            "rule_hash": finding.rule_hash,
            "confidence": finding.strength,
            "eval_count": len(finding.message_ids),
            "level": finding.level,
            "target": finding.target,
            "body": encode(finding),
        },
    }


def _entry(record: Record) -> AgentEntry:
    return AgentEntry(
        agent=record["agent"],
        messages=record["messages"],
        read=record["read"],
        ranked=record["ranked"],
        threads=record["threads"],
        first=from_microseconds(record["first"]),
        last=from_microseconds(record["last"]),
    )


def _in_time(row: Row) -> tuple[bool, int, int, str, str]:
    time = 0 if row.time is None else microseconds(row.time)
    return row.time is not None, time, row.position, row.id, row.conversation
