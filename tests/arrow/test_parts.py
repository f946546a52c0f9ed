"""A corpus in parts gives what one process gives, byte for byte: rows, findings, outcomes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path

import duckdb
import msgspec
import pyarrow as pa
import pytest

from tests.arrow.parts import Result, audited, batch_of, detected, of_all, plain
from undersong.arrow import (
    MESSAGES,
    ROWS,
    detect_batches,
    findings_in,
    message_batches,
    routing_from,
    rows_in,
    scan_batches,
    score_batches,
    summaries,
    timed_batches,
)
from undersong.errors import InputError
from undersong.formats.ingest import read
from undersong.models import Case, Conversation, Row, encode
from undersong.patterns.catalog import all_rules, load_rules
from undersong.patterns.detect import RowSearch
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.reference.downstream import reads_others
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.confidence import with_confidence
from undersong.patterns.significance.estimate import estimate_significance
from undersong.patterns.tools.rule_tests import table
from undersong.pipeline.audit import audit
from undersong.pipeline.options import Options
from undersong.pipeline.partwise import ScoredPart, SearchedPart
from undersong.scan import load_book

ROOT = Path(__file__).parents[2]
EFFORT = ResamplingConfig(draws=19, replicas=2)
Audited = tuple[list[Conversation], Case, list[Row]]


@pytest.fixture(scope="module")
def whole() -> Audited:
    """Conversations of people and of coding agents, and their audit by one process."""
    talks = sorted((ROOT / "demo" / "conversations").iterdir())
    paths = [ROOT / "bench" / "talks" / "dev" / "messages.jsonl", ROOT / "demo" / "network.jsonl", *talks]
    conversations = [each for each in read(paths) if isinstance(each, Conversation)]
    chosen = conversations[:-4:4] + conversations[-4:]
    case, rows = audit(chosen)
    return chosen, case, sorted(rows, key=lambda row: (row.conversation, row.position))


@pytest.mark.parametrize("parts", [1, 3, 17])
def test_an_audit_in_parts_is_that_of_one_process(whole: Audited, parts: int) -> None:
    conversations, case, rows = whole
    result = audited(conversations, parts, seed=parts)
    assert list(map(encode, map(plain, result.rows))) == list(map(encode, rows))
    assert list(map(encode, result.findings)) == list(map(encode, case.findings))
    assert result.outcomes == case.outcomes


def test_rows_carry_texts_claims_and_what_the_scan_saw(whole: Audited) -> None:
    conversations, case, _ = whole
    scanned = list(scan_batches(message_batches(conversations)))
    scored = list(score_batches(scanned, routing_from(summaries(scanned))))
    columns = pa.Table.from_batches(scored, schema=ROWS).to_pylist()
    claims = [claim["sentence"]["text"] for row in columns for claim in row["claims"] or ()]
    assert sorted(claims) == sorted(claim.sentence.text for session in case.sessions for claim in session.claims)
    assert claims
    texts = {(message.conversation, message.id): message.text for each in conversations for message in each.messages}
    assert {(row["conversation"], row["id"]): row["text"] for row in columns if row["summary"] is None} == texts
    assert any(row["hits"] for row in columns)
    assert any(row["signals"] for row in columns)


@cache
def rules_and_rows() -> tuple[tuple[PatternRule, ...], list[Row]]:
    """Every shipped rule, and rows of their cases side by side: some that match, some that do not."""
    rules = all_rules()
    rows: list[Row] = []
    for rule in rules:
        for number, example in enumerate((*rule.file.cases.hits[:1], *rule.file.cases.near_misses[:1])):
            prefix = f"{rule.id}/{number}/"
            rows += [_named(row, prefix) for row in table(example.rows, example.base)]
    return rules, rows


def _named(row: Row, prefix: str) -> Row:
    target = None if row.target is None else prefix + row.target
    conversation = prefix + row.conversation
    return msgspec.structs.replace(row, agent=prefix + row.agent, target=target, conversation=conversation)


@pytest.fixture(scope="module")
def one() -> Result:
    """The detection by one process."""
    rules, rows = rules_and_rows()
    return in_one_process(rows, rules)


def in_one_process(rows: list[Row], rules: tuple[PatternRule, ...]) -> Result:
    search = RowSearch(rows)
    detection = search.detect(rules)
    weighed = estimate_significance(detection.findings, detection.outcomes, search, rules, EFFORT)
    return Result(rows, with_confidence(weighed.findings, rows, rules), detection.outcomes)


@pytest.mark.parametrize("parts", [1, 17])
def test_detection_in_parts_is_that_of_one_process(one: Result, parts: int) -> None:
    rules, rows = rules_and_rows()
    result = detected(rows, parts, seed=parts, options=Options(rules=rules, effort=EFFORT))
    assert len({finding.pattern for finding in one.findings}) > 20
    followers = {rule.hash for rule in rules if reads_others(rule)}
    assert any(finding.rule_hash in followers for finding in one.findings)
    assert list(map(encode, result.findings)) == list(map(encode, one.findings))
    assert result.outcomes == one.outcomes


def test_a_row_without_a_time_has_that_of_its_conversation_before_it_goes_to_its_agent() -> None:
    _, rows = rules_and_rows()
    thinned = [msgspec.structs.replace(row, time=None) if place % 3 else row for place, row in enumerate(rows)]
    one = in_one_process(thinned, load_rules())
    result = detected(thinned, 5, options=Options(effort=EFFORT))
    assert one.findings
    assert list(map(encode, result.findings)) == list(map(encode, one.findings))


def test_rules_and_books_go_to_another_process() -> None:
    rules = all_rules()
    again = pickle.loads(pickle.dumps(rules))
    assert [(each.hash, each.source, each.file) for each in again] == [(r.hash, r.source, r.file) for r in rules]
    assert again[0] is pickle.loads(pickle.dumps(rules[0]))
    assert pickle.loads(pickle.dumps(load_book())) is load_book()


def test_a_table_of_somebody_else_needs_names_and_texts_alone() -> None:
    query = """select * from (values ('a', 'kira', 'You are wonderful.', timestamp '2026-01-01 10:00:00'),
        ('a', 'bo', 'Thanks.', timestamp '2026-01-01 10:01:00')) rows(conversation, author, text, time)"""
    reader = duckdb.sql(query).to_arrow_reader()
    scanned = list(scan_batches(reader))
    rows = list(rows_in(score_batches(scanned, routing_from(summaries(scanned)))))
    assert [(row.agent, row.target, row.position, row.state) for row in rows] == [
        ("a/kira", "a/bo", 0, "scored"),
        ("a/bo", "a/kira", 1, "scored"),
    ]


def test_duckdb_reads_what_a_step_wrote(whole: Audited) -> None:
    conversations, case, _ = whole
    scanned = list(scan_batches(message_batches(conversations)))
    scored = pa.Table.from_batches(score_batches(scanned, routing_from(summaries(scanned))), schema=ROWS)
    query = "select count(*) from scored where summary is null and state = 'scored' and signals is not null"
    assert duckdb.sql(query).fetchall()[0][0] == case.states["scored"]
    assert scored.num_rows == case.messages + 1


def test_what_cannot_be_read_is_refused_with_a_remedy() -> None:
    _, rows = rules_and_rows()
    by_agent = [list(group) for _, group in groupby(sorted(rows[:40], key=agent_of), key=agent_of)]
    mixed = [by_agent[0][0], *by_agent[1], *by_agent[0][1:]]
    corpus = of_all([list(timed_batches([batch_of(rows[:1])]))], ScoredPart, 0)
    with pytest.raises(InputError, match="sort the batches by agent"):
        list(detect_batches([batch_of(mixed)], corpus))
    twice = [rows[0], msgspec.structs.replace(rows[0], position=7)]
    with pytest.raises(InputError, match="two rows have one id"):
        list(timed_batches([batch_of(twice)]))
    with pytest.raises(InputError, match="a batch cannot be read"):
        list(scan_batches([pa.record_batch({"conversation": ["a"], "text": [3.5]})]))
    with pytest.raises(InputError, match="is ScoredPart, not SearchedPart"):
        of_all([list(timed_batches([batch_of(rows[:1])]))], SearchedPart, 0)


def test_a_summary_can_name_no_code_of_others() -> None:
    evil = pickle.dumps(print)
    with pytest.raises(InputError, match="is part of no summary"):
        routing_from([evil])


def test_no_rows_are_no_findings_and_no_failure() -> None:
    assert list(rows_in(timed_batches([]))) == []
    corpus = of_all([list(timed_batches([]))], ScoredPart, 0)
    assert list(findings_in(detect_batches([], corpus))) == []
    assert [batch.schema for batch in message_batches(())] == []
    assert MESSAGES.names[0] == "id"


def agent_of(row: Row) -> str:
    return row.agent


def test_batches_are_made_as_they_are_asked_for() -> None:
    _, rows = rules_and_rows()
    asked: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number, (_, group) in enumerate(groupby(rows, key=lambda row: row.conversation)):
            asked.append(number)
            yield batch_of(list(group))

    next(timed_batches(batches()))
    assert len(asked) <= 2
