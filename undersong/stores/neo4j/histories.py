"""Agent histories in Neo4j: rows chained by PRECEDES in event time, findings as EXHIBITS_PATTERN, cursors of sweeps."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec
from neo4j import Record

from undersong.models import TRAITS, Finding, Row, encode
from undersong.patterns.catalog import all_rules
from undersong.rows.binary import from_microseconds, microseconds
from undersong.stores.codec import decoded, row_body, rows_of, supersedes, touches
from undersong.stores.neo4j.connection import Connection, Transaction, cypher
from undersong.stores.protocol import BEGINNING, AgentEntry, AgentHistory, AgentSweep, Cursor, HistoryStore, JudgeEntry

_PAGE = 256  # agents that are listed at a time


class GraphHistoryStore(Connection, HistoryStore):
    """The agent histories of the store."""

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
    agents = [record["agent"] for record in transaction.run_batched(cypher.agents_with_findings, list(removed))]
    transaction.run_batched(cypher.drop_findings, list(removed))
    transaction.run_batched(cypher.drop_finding_nodes, list(removed))
    transaction.run_batched(cypher.count_findings_of, sorted(set(agents)))


def put_findings(transaction: Transaction, findings: Sequence[Finding]) -> None:
    """Put findings under their ids, within a transaction; ``detected_at`` is the time at which one first comes."""
    items = [_item(finding) for finding in findings]
    transaction.run_batched(cypher.put_findings, items, now=datetime.now(UTC))
    transaction.run_batched(cypher.put_finding_nodes, items)
    transaction.run_batched(cypher.count_findings_of, sorted({finding.agent for finding in findings}))


@lru_cache(maxsize=1)
def pattern_names() -> dict[str, str]:
    """Rule id → the name of its Pattern node: its older name where the rule has one as an alias."""
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
        "title": finding.title,
        "stages": [[*place, n, stage] for n, (place, stage) in enumerate(zip(places, _stages(finding), strict=False))],
        "about": {
            "name": finding.title,
            "pattern": finding.pattern,
            "level": finding.level,
            "confidence": finding.confidence,
            "strength": finding.strength,
            "target": finding.target,
            "started_at": finding.start,
            "ended_at": finding.end,
        },
        "properties": {
            "rule": finding.pattern,
            "rule_hash": finding.rule_hash,
            "confidence": finding.confidence,
            "strength": finding.strength,
            "eval_count": len(finding.message_ids),
            "level": finding.level,
            "target": finding.target,
            "body": encode(finding),
        },
    }


def _stages(finding: Finding) -> list[str | None]:
    """The stage of each message; None where the finding names none."""
    return [name for name, _ in finding.stages] or [None] * len(finding.message_ids)


def _entry(record: Record) -> AgentEntry:
    times = {end: from_microseconds(record[end]) for end in ("first", "last")}
    return AgentEntry(**(record.data() | times))


def _in_time(row: Row) -> tuple[bool, int, int, str, str]:
    return row.time is not None, _time(row) or 0, row.position, row.id, row.conversation


_NEVER = -(1 << 62)  # before any time

HistoryKey = tuple[str, str]  # an agent and the hash of a judge
RowOrderKey = tuple[int, int, str, str]  # the place of a timed row among its agent's


class ChangedHistories:
    """The histories that a transaction changes.

    Scored rows that are new and later than all before are put behind them. Any other history is chained again from its
    earliest changed row on; from the beginning, if a row has no time.
    """

    def __init__(self) -> None:
        self._since: dict[HistoryKey, int | None] = {}
        self._come: dict[HistoryKey, list[tuple[RowOrderKey, str]]] = {}
        self._again: set[HistoryKey] = set()

    def add(self, agent: str, judge: str, time: int | None) -> None:
        """A row, in microseconds, that goes or is another one."""
        self._note_time((agent, judge), time)
        self._again.add((agent, judge))

    def _note_time(self, place: HistoryKey, time: int | None) -> None:
        before = self._since.get(place, time)
        self._since[place] = None if before is None or time is None else min(before, time)

    def add_new(self, name: str, row: Row) -> None:
        """A row that is not there yet, with the id of its Evaluation."""
        place, time = (row.agent, row.judge_hash or ""), _time(row)
        if row.state == "scored" and time is None:
            self.add(*place, time)
            return
        self._note_time(place, time)
        if row.state == "scored" and time is not None:
            self._come.setdefault(place, []).append(((time, row.position, row.id, row.conversation), name))

    def apply(self, transaction: Transaction) -> None:
        """Say that they changed, all in one change, and chain their rows."""
        for come in self._come.values():
            come.sort()
        followed: list[list[str]] = []  # ids of Evaluations, each before the next
        rest = self._again.copy()
        for place, before, follows in bump(transaction, sorted(self._since), self._tails()):
            if follows:
                followed.append([*filter(None, [before]), *(name for _, name in self._come[place])])
            elif place in self._come:
                rest.add(place)
        transaction.run_batched(cypher.follow, followed)
        items = [{"agent": place[0], "judge": place[1], "since": self._since[place]} for place in sorted(rest)]
        transaction.run_batched(cypher.chain, items)
        transaction.run_batched(cypher.last_rows, items, never=_NEVER)
        summarise(transaction, self._since)

    def _tails(self) -> dict[HistoryKey, dict[str, Any]]:
        """Of the histories to which rows only came: the first time of these, and the last one of them."""
        return {
            place: {"first": come[0][0][0], "last_id": come[-1][1], "last_time": come[-1][0][0]}
            for place, come in self._come.items()
            if place not in self._again
        }


def summarise(transaction: Transaction, histories: Iterable[HistoryKey]) -> None:
    """Counts and averages on the agents, of the judge that is named last for each."""
    items = [{"agent": agent, "judge": judge} for agent, judge in sorted(histories)]
    transaction.run_batched(cypher.summarise_agents, items)


_NO_TAIL = {"first": None, "last_id": None, "last_time": None}


def bump(
    transaction: Transaction, changed: Sequence[HistoryKey], tails: dict[HistoryKey, dict[str, Any]] | None = None
) -> list[tuple[HistoryKey, str, bool]]:
    """Say that these histories changed, all in one change.

    With the ``tails`` of new rows: of each history the id of its last row before, and whether its tail comes behind it.
    """
    if not changed:
        return []
    tails = tails or {}
    items = [{"agent": place[0], "judge": place[1], **tails.get(place, _NO_TAIL)} for place in changed]
    records = transaction.run(cypher.bump, items=items, never=_NEVER)
    return [((each["agent"], each["judge"]), each["before"], each["follows"]) for each in records]


FOR_PEOPLE = 4  # the version in which messages have text, agents counts and averages, and findings nodes
RANKS_APART = 2  # the version of the graph in which ranks have names of their own


def evaluation_id(conversation: str, message: str, judge_hash: str | None) -> str:
    """The id of an Evaluation: a hash over conversation, message and judge."""
    return hashlib.sha256(msgspec.json.encode((conversation, message, judge_hash or ""))).hexdigest()[:32]


def put_rows(transaction: Transaction, rows: Sequence[Row], *, overwrite: bool = False) -> None:
    """Put rows into the histories, within a transaction; with ``overwrite`` an unread one may replace a read one."""
    ids = [evaluation_id(row.conversation, row.id, row.judge_hash) for row in rows]
    nodes = {
        record["id"]: tuple(record)[1:] for record in transaction.run_batched(cypher.stored_rows, sorted(set(ids)))
    }
    stored = {name: node for name, node in nodes.items() if node[2] is not None}  # others have an answer alone
    there, new = frozenset(stored), dict[str, Row]()
    changed = ChangedHistories()
    for name, row in zip(ids, rows, strict=True):
        body, judge = row_body(row), row.judge_hash or ""
        if name not in stored:
            changed.add_new(name, row)
        else:
            agent, state, stored_body, since = stored[name]
            if not supersedes(row.state, body, state, stored_body, overwrite=overwrite):
                continue
            changed.add(agent, judge, since)
            changed.add(row.agent, judge, _time(row))
        stored[name], new[name] = (row.agent, row.state, body, _time(row)), row
    transaction.run_batched(cypher.unlink_rows, [name for name in new if name in there])
    judges = {row.judge_hash or "": row.judge or "" for row in reversed(new.values())}  # the first row names its judge
    transaction.run_batched(cypher.put_judges, [{"hash": each, "name": judge} for each, judge in judges.items()])
    items = [item(name, row) for name, row in new.items()]
    transaction.run_batched(cypher.create_rows, [each for each in items if each["id"] not in nodes])
    transaction.run_batched(cypher.merge_rows, [each for each in items if each["id"] in nodes])
    transaction.run_batched(
        cypher.put_indicators, [each for name, row in new.items() for each in _indicators(name, row)]
    )
    changed.apply(transaction)


def remove_messages(transaction: Transaction, places: Iterable[tuple[str, str]]) -> None:
    """Take messages, by conversation and id, out of every history, within a transaction."""
    records = transaction.run_batched(
        cypher.rows_of_messages, [{"thread": thread, "message": message} for thread, message in places]
    )
    ids = [record["id"] for record in records]
    transaction.run_batched(cypher.unlink_rows, ids)
    transaction.run_batched(cypher.forget_rows, ids)
    changed = ChangedHistories()
    for record in records:
        changed.add(record["agent"], record["judge"], record["time"])
    changed.apply(transaction)


_SAME_NAMES = ("target", "position", "state", "scale", "tier", "observed", "branch")


def item(name: str, row: Row) -> dict[str, Any]:
    """A row as the parameters of an Evaluation node with id ``name``."""
    timed = row.time is not None
    return {
        "id": name,
        "properties": {
            **{name: getattr(row, name) for name in _SAME_NAMES},
            "agent_id": row.agent,
            "judge": row.judge or "",
            "judge_hash": row.judge_hash or "",
            "thread_id": row.conversation,
            "message_id": row.id,
            "created_at": row.time,
            "time": _time(row),
            "sequence": "" if timed else row.conversation,
            "body": row_body(row),
        },
        "traits": _scores(row),
    }


def upgrade_summaries(transaction: Transaction) -> None:
    """Migration to FOR_PEOPLE: agents had no counts and averages, findings no node of their own."""
    summarise(transaction, [(each["agent"], each["judge"]) for each in transaction.run(cypher.all_histories)])
    bodies = [record["body"] for record in transaction.run(cypher.finding_bodies) if record["body"]]
    findings = [decoded(body, Finding) for body in bodies]
    renamed = [finding.finding_id for finding in findings if finding.pattern.startswith("love_bombing")]
    drop_findings(transaction, renamed)
    put_findings(transaction, findings)


def upgrade(transaction: Transaction) -> None:
    """Migration to RANKS_APART: scores that are ranks were ``trait_...`` before, where queries take them for levels."""
    records = transaction.run(cypher.all_rows)
    rows = zip((record["id"] for record in records), rows_of(record["body"] for record in records), strict=True)
    items = [{"id": name, "scale": row.scale, "traits": _scores(row)} for name, row in rows if row.scale is not None]
    transaction.run_batched(cypher.rescale, items)


def _time(row: Row) -> int | None:
    return None if row.time is None else microseconds(row.time)


def _scores(row: Row) -> dict[str, float | list[str] | None]:
    """``trait_...`` for scores that are levels, ``rank_...`` for ranks, ``not_applicable`` for traits without either.

    None takes a property away: so a trait that does not apply has no score, and a query sees null and never 0.
    """
    prefix, other = ("rank_", "trait_") if row.scale == "rank" else ("trait_", "rank_")
    traits = row.traits or {}
    missing = [str(trait) for trait in TRAITS if trait in traits and traits[trait] is None]
    scores = {f"{prefix}{trait}": traits.get(trait) for trait in TRAITS}
    return {**scores, **dict.fromkeys(f"{other}{trait}" for trait in TRAITS), "not_applicable": missing or None}


def _indicators(name: str, row: Row) -> list[dict[str, Any]]:
    return [{"id": name, "indicator": each.id, "confidence": each.confidence} for each in row.indicators or ()]
