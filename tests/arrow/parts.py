"""A corpus in parts through the four steps, in plain Python: what a cluster does, without one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from undersong.arrow import (
    ROWS,
    detect_batches,
    findings_in,
    finished_batches,
    message_batches,
    routing_from,
    rows_in,
    scan_batches,
    score_batches,
    summaries,
    summary_of,
    timed_batches,
    weigh_batches,
)
from undersong.models import Conversation, Finding, Row
from undersong.patterns.catalog import load_rules
from undersong.patterns.reference.downstream import addressed_by, reads_others
from undersong.pipeline.case_builder import quoted
from undersong.pipeline.options import Options
from undersong.pipeline.partwise import ScoredPart, SearchedPart, WeighedPart, judge_named

Batches = list[pa.RecordBatch]


class Result(NamedTuple):
    """What came out of all parts: rows by conversation, findings, outcomes."""

    rows: list[Row]
    findings: tuple[Finding, ...]
    outcomes: tuple[Any, ...]


def parted(items: Sequence[Any], parts: int, seed: int) -> list[list[Any]]:
    """The items in a drawn order, each in a drawn part; some parts may be empty."""
    draw = Random(f"parts/{seed}")
    shuffled = list(items)
    draw.shuffle(shuffled)
    several: list[list[Any]] = [[] for _ in range(parts)]
    for item in shuffled:
        draw.choice(several).append(item)
    return several


def of_all(parts: Iterable[Batches], kind: type[Any], seed: int) -> Any:
    """The merged summary of all parts, in a drawn order."""
    several = [data for part in parts for data in summaries(part)]
    Random(f"order/{seed}").shuffle(several)
    return summary_of(several, kind)


def audited(conversations: Sequence[Conversation], parts: int, seed: int = 0, options: Options | None = None) -> Result:
    """The audit of a corpus of which every step sees a part at a time."""
    options = options or Options()
    scanned = [list(scan_batches(message_batches(own), options)) for own in parted(conversations, parts, seed)]
    routing = routing_from([data for part in scanned for data in summaries(part)], options)
    judge = judge_named(options.judge)
    scored = [list(score_batches(part, routing, options)) for part in scanned]
    corpus = of_all(scored, ScoredPart, seed)
    findings, outcomes = searched(scored, corpus, parts, seed, options)
    rows = sorted(
        (row for part in scored for row in rows_in(finished_batches(part, corpus))),
        key=lambda row: (row.conversation, row.position),
    )
    store: Any = _Conversations(conversations)
    rules = options.rules or load_rules()
    return Result(rows, quoted(findings, rows, store, judge, rules), outcomes)


def detected(rows: Sequence[Row], parts: int, seed: int = 0, options: Options | None = None) -> Result:
    """The detection over rows that were scored elsewhere, in parts."""
    options = options or Options()
    by_conversation: dict[str, list[Row]] = {}
    for row in rows:
        by_conversation.setdefault(row.conversation, []).append(row)
    timed = [
        list(timed_batches(batch_of(own) for own in part))
        for part in parted(list(by_conversation.values()), parts, seed)
    ]
    corpus = of_all(timed, ScoredPart, seed)
    findings, outcomes = searched(timed, corpus, parts, seed, options)
    return Result([row for part in timed for row in rows_in(part)], findings, outcomes)


def searched(
    parts: Iterable[Batches], corpus: ScoredPart, number: int, seed: int, options: Options
) -> tuple[tuple[Finding, ...], tuple[Any, ...]]:
    rules = options.rules or load_rules()
    agents = by_agent(parts, rules)
    found_parts = [
        (own, list(detect_batches(own, corpus, options)))
        for own in (together(each) for each in parted(sorted(agents.items()), number, seed + 1))
    ]
    summary: SearchedPart = of_all([out for _, out in found_parts], SearchedPart, seed)
    named = {finding.agent for _, out in found_parts for finding in findings_in(out)}
    again = [together([(name, agents[name]) for name in part]) for part in parted(sorted(named), number, seed + 2)]
    weighed = [list(weigh_batches(own, corpus, summary, options)) for own in again]
    tests: WeighedPart = of_all(weighed, WeighedPart, seed)
    findings = (finding for part in weighed for finding in findings_in(part))
    return tests.corrected(findings, summary), summary.outcomes(options, corpus)


def by_agent(parts: Iterable[Batches], rules: Sequence[Any]) -> dict[str, pa.Table]:
    """The rows of each agent as a table, with those of the agents that it addressed beside them."""
    table = pa.Table.from_batches([batch for part in parts for batch in part], schema=ROWS)
    table = table.filter(pa.compute.is_null(table["summary"]))
    names = table["agent"].to_pylist()
    own = {name: table.filter(pa.compute.equal(table["agent"], name)) for name in dict.fromkeys(names)}
    followers = [rule for rule in rules if reads_others(rule)]
    both = {}
    for name, rows in own.items():
        read = list(rows_in(rows.to_batches()))
        addressed = {other for rule in followers for other in addressed_by(rule, read)} & own.keys() - {name}
        beside = [_beside(own[other], name) for other in sorted(addressed)]
        both[name] = pa.concat_tables([rows, *beside])
    return both


def _beside(rows: pa.Table, name: str) -> pa.Table:
    place = rows.schema.get_field_index("beside")
    return rows.set_column(place, rows.schema.field(place), pa.array([name] * len(rows), pa.string()))


def together(agents: Sequence[tuple[str, pa.Table]]) -> Iterator[pa.RecordBatch]:
    for _, table in agents:
        yield from table.to_batches()


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    from undersong.arrow.tables import _ROWS

    return _ROWS.batch(list(rows))


def plain(row: Row) -> Row:
    """The row as the rows of ``audit`` are: without its text."""
    return msgspec.structs.replace(row, text=None, hits=())


class _Conversations:
    def __init__(self, conversations: Sequence[Conversation]) -> None:
        self._by_id = {each.id: each for each in conversations}

    def conversation(self, name: str) -> tuple[Conversation]:
        return (self._by_id[name],)
