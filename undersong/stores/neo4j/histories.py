"""Agent histories in Neo4j: rows in event time, findings as EXHIBITS_PATTERN, cursors of sweeps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from neo4j import Record

from undersong.models import Finding, Row, encode
from undersong.patterns.catalog import all_rules
from undersong.rows.timestamps import from_microseconds, microseconds
from undersong.stores.codec import decoded, rows_of, touches
from undersong.stores.neo4j.connection import Connection, Transaction, cypher
from undersong.stores.neo4j.rows import bump, put_rows
from undersong.stores.protocol import BEGINNING, AgentEntry, AgentHistory, AgentSweep, Cursor, HistoryStore, JudgeEntry

_PAGE = 256  # agents that are listed at a time


class GraphHistoryStore(Connection, HistoryStore):
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

    def _histories(self, agents: Sequence[str], judge_hash: str) -> dict[str, tuple[Row, ...]]:
        records = self._read(cypher.rows_of_agents, agents=list(agents), judge=judge_hash)
        with self._translated():
            return {each["agent"]: tuple(sorted(rows_of(each["bodies"]), key=_in_time)) for each in records}

    def thread(self, conversation_id: str, judge_hash: str) -> tuple[Row, ...]:
        """See Store."""
        records = self._read(cypher.rows_of_thread, thread=conversation_id, judge=judge_hash)
        with self._translated():
            return tuple(sorted(rows_of(record[0] for record in records), key=lambda row: (row.position, row.id)))

    def aimed_at(self, agent: str) -> Iterator[Row]:
        """See Store."""
        records = self._read(cypher.rows_aimed_at, agent=agent)
        with self._translated():
            return iter(rows_of(record[0] for record in records))

    def threads(self) -> Iterator[str]:
        """See Store."""
        records = self._read(cypher.threads)
        return iter(sorted(record[0] for record in records))

    def histories(self, judge_hash: str, after: Cursor = BEGINNING, least: int = 0) -> Iterator[AgentHistory]:
        """See Store."""
        last = self.changes()
        while True:
            page = self._read(
                cypher.changed_agents, judge=judge_hash, last=last, least=least, page=_PAGE, **after._asdict()
            )
            rows = self._histories([record["agent"] for record in page], judge_hash)
            yield from (AgentHistory(agent, changed, rows.get(agent, ())) for agent, changed in page)
            if not page:
                return
            after = Cursor(page[-1]["changed"], page[-1]["agent"])

    def agents(self, judge_hash: str) -> tuple[AgentEntry, ...]:
        """See Store."""
        return tuple(sorted(map(_entry, self._read(cypher.agents, judge=judge_hash)), key=lambda entry: entry.agent))

    def judges(self) -> tuple[JudgeEntry, ...]:
        """See Store."""
        return tuple(JudgeEntry(judge_hash=h, judge=name, rows=rows) for h, name, rows, _ in self._read(cypher.judges))

    def cursor(self, name: str) -> Cursor:
        """See Store."""
        records = self._read(cypher.cursor, name=name)
        return Cursor(*records[0]) if records else BEGINNING

    def put_sweep(
        self, judge_hash: str, swept: Sequence[AgentSweep], patterns: Collection[str], cursors: Mapping[str, Cursor]
    ) -> None:
        """See Store."""
        items = [{"agent": each.agent, "changed": each.changed} for each in swept]
        places = [{"name": name, **place._asdict()} for name, place in cursors.items()]

        def work(transaction: Transaction) -> None:
            current = {
                record["agent"] for record in transaction.run_batched(cypher.unchanged_agents, items, judge=judge_hash)
            }
            findings = [finding for each in swept if each.agent in current for finding in each.findings]
            stored = transaction.run_batched(cypher.findings_by_patterns, sorted(current), patterns=sorted(patterns))
            new = {finding.finding_id for finding in findings}
            drop_findings(transaction, [record["id"] for record in stored if record["id"] not in new])
            put_findings(transaction, findings)
            transaction.run_batched(cypher.put_cursors, places)

        self._write(work)

    def put_findings(self, conversations: Iterable[str], findings: Iterable[Finding]) -> None:
        """See Store."""
        new_findings, audited = list(findings), frozenset(conversations)
        new = {finding.finding_id for finding in new_findings}

        def work(transaction: Transaction) -> None:
            stored = transaction.run(cypher.finding_bodies)
            gone = [each for each in stored if each["id"] not in new and touches(each["body"], audited)]
            losers = sorted({each["agent"] for each in gone})
            bump(
                transaction,
                sorted({(agent, judge) for agent, judge in transaction.run_batched(cypher.judges_of_agents, losers)}),
            )
            drop_findings(transaction, [each["id"] for each in gone])
            put_findings(transaction, new_findings)

        self._write(work)

    def finding_ids(self) -> set[str]:
        """See Store."""
        return {record[0] for record in self._read(cypher.finding_ids)}

    def findings(self, agent: str | None = None) -> Iterator[Finding]:
        """See Store."""
        records = self._read(cypher.findings, agent=agent)
        with self._translated():
            return iter([decoded(record[0], Finding) for record in records])


def drop_findings(transaction: Transaction, removed: Sequence[str]) -> None:
    """Drop the findings of these ids, within a transaction."""
    transaction.run_batched(cypher.drop_findings, list(removed))


def put_findings(transaction: Transaction, findings: Sequence[Finding]) -> None:
    """Put findings under their ids, within a transaction; ``detected_at`` is the time at which one first comes."""
    transaction.run_batched(cypher.put_findings, [_item(finding) for finding in findings], now=datetime.now(UTC))


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
    times = {end: from_microseconds(record[end]) for end in ("first", "last")}
    return AgentEntry(**(record.data() | times))


def _in_time(row: Row) -> tuple[bool, int, int, str, str]:
    time = 0 if row.time is None else microseconds(row.time)
    return row.time is not None, time, row.position, row.id, row.conversation
