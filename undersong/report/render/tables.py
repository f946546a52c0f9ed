"""Tables for analysts: every result of a report as a flat record; findings, leads, claims, reviews, messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from undersong.errors import UsageError
from undersong.models import TRAITS, Case, Deduction, Finding, Message, Moment, Row, SessionVerdict, decode
from undersong.report.order import group_of, order_findings, order_sessions
from undersong.rows.flat import (
    CLAIM,
    FINDING,
    LEAD,
    REVIEW,
    claim_record,
    csv_text,
    finding_record,
    lead_record,
    review_record,
)

KEYS = ("type", "id", "name", "title", "group", "level", "session", "agent", "target", "message_ids", "position",
        "start", "end", "points", "confidence", "status", "reading", "strength", "chance", "q", "stability", "basis",
        "quotes", "source", "explanation")  # fmt: skip
OF_FINDING = (
    "title",
    "level",
    "agent",
    "target",
    "confidence",
    "status",
    "reading",
    "strength",
    "chance",
    "q",
    "stability",
)
OF_DEDUCTION = ("position", "points", "explanation")
OF_MOMENT = ("title", "agent", "position", "strength", "basis", "explanation")
Messages = Mapping[tuple[str, str], Message]


def results(case: Case) -> Iterator[dict[str, Any]]:
    """Records with the same keys, findings first, then session by session, the worst first; None = does not apply."""
    messages = {(message.conversation, message.id): message for message in case.cited}
    for finding in order_findings(case.findings):
        yield _finding(finding, messages)
    for session in order_sessions(case):
        yield from (_of_session(each, session, messages) for each in session.deductions)
        yield from (_of_session(each, session, messages) for each in session.moments)


def _record(
    claim: Finding | Deduction | Moment, names: Sequence[str], message: Message | None, **facts: Any
) -> dict[str, Any]:
    """All keys: those in ``names`` from the claim, its quotes, the source of its message, and ``facts``."""
    copied = {name: getattr(claim, name) for name in names}
    quotes = [msgspec.to_builtins(quote) for quote in claim.quotes]
    source = str(message.source_ref) if message and message.source_ref else None
    return dict.fromkeys(KEYS) | copied | {"quotes": quotes, "source": source} | facts


def _finding(finding: Finding, messages: Messages) -> dict[str, Any]:
    home = next(iter(finding.message_conversations or finding.conversations), "")
    return _record(
        finding,
        OF_FINDING,
        messages.get((home, finding.message_ids[0])),
        type="finding",
        id=finding.finding_id,
        name=finding.pattern,
        group=group_of(finding.pattern),
        session=next(iter(finding.conversations), None),
        message_ids=list(finding.message_ids),
        start=finding.start.isoformat() if finding.start else None,
        end=finding.end.isoformat() if finding.end else None,
    )


def _of_session(claim: Deduction | Moment, session: SessionVerdict, messages: Messages) -> dict[str, Any]:
    message = messages.get((session.conversation, claim.message_id))
    if isinstance(claim, Deduction):
        name, agent = claim.mechanism, message.agent if message else None
        own = {"type": "deduction", "title": claim.kind, "agent": agent}
    else:
        name, own = claim.code, {"type": claim.kind}
    return _record(
        claim,
        OF_DEDUCTION if isinstance(claim, Deduction) else OF_MOMENT,
        message,
        **own,
        id=f"{session.conversation}#{claim.message_id}#{name}",
        name=name,
        group=group_of(name),
        session=session.conversation,
        message_ids=[claim.message_id],
        start=message.time.isoformat() if message and message.time else None,
    )


# of CSV and Parquet alike, with their columns
TABLES = {"findings": FINDING, "leads": LEAD, "claims": CLAIM, "reviews": REVIEW}
MESSAGES, RESULTS = "messages.parquet", "results.parquet"
GROUP = 50_000  # rows of a row group, which is what is held in memory
VERSION = "1"  # of the columns, in the metadata of the files


def require() -> None:
    """Raise UsageError where pyarrow is missing."""
    try:
        import pyarrow.parquet  # noqa: F401 - only whether it is there
    except ImportError as error:
        remedy = "pip install 'undersong[parquet]'"
        raise UsageError("pyarrow is not installed", where="--format parquet", remedy=remedy) from error


def write_tables(case: Case, evaluations: Path, folder: Path) -> None:
    """Parquet: findings, leads, claims, reviews; messages with a column a trait; ``results`` as in results.jsonl."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from undersong.rows.arrow import report_tables

    schema = _messages_schema(pa)
    with evaluations.open("rb") as lines, pq.ParquetWriter(folder / MESSAGES, schema) as writer:
        rows = (_message(decode(line, Row), schema.names) for line in lines)
        while group := list(islice(rows, GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
    result_rows = [_flat(each) for each in results(case)]
    pq.write_table(pa.Table.from_pylist(result_rows, schema=_results_schema(pa)), folder / RESULTS)
    for name, table in report_tables(case):
        pq.write_table(table, folder / f"{name}.parquet")


def write_csv(case: Case, folder: Path) -> None:
    """Findings, leads, claims and reviews as CSV, UTF-8 with the mark by which spreadsheets know it."""
    claims = (claim for session in case.sessions for claim in session.claims)
    records: dict[str, Iterator[dict[str, Any]]] = {
        "findings": map(finding_record, case.findings),
        "leads": map(lead_record, case.leads),
        "claims": map(claim_record, claims),
        "reviews": map(review_record, case.reviews),
    }
    for name, columns in TABLES.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8-sig", newline="") as file:
            file.writelines(csv_text(columns, records[name]))


def _messages_schema(pa: Any) -> Any:
    names = ("id", "conversation", "agent", "target", "role", "observed", "tier", "state", "reason", "judge")
    columns = [(name, pa.string()) for name in names]
    columns += [("position", pa.int64()), ("time", pa.timestamp("us", tz="UTC")), ("sampled", pa.bool_())]
    columns += [(name, pa.float64()) for name in ("triage", "density", "sentiment_score", "code_change_delta", *TRAITS)]
    columns += [("total", pa.int64()), ("hard_constraints", pa.list_(pa.string()))]
    return pa.schema(columns, metadata={"undersong": VERSION})


def _message(row: Row, names: Sequence[str]) -> dict[str, Any]:
    """The columns of a row: each trait by itself, everything else under the name of its field."""
    traits = row.traits or {}
    return {name: traits.get(name) if name in TRAITS else getattr(row, name) for name in names}


def _results_schema(pa: Any) -> Any:
    texts = ("type", "id", "name", "title", "group", "level", "session", "agent", "target", "start", "end", "basis",
             "source", "explanation", "quotes")  # fmt: skip
    columns = [(name, pa.string()) for name in texts]
    columns += [(name, pa.float64()) for name in ("strength", "chance", "q", "stability")]
    columns += [("position", pa.int64()), ("points", pa.int64()), ("message_ids", pa.list_(pa.string()))]
    return pa.schema(columns, metadata={"undersong": VERSION})


def _flat(claim: dict[str, Any]) -> dict[str, Any]:
    """The quotes as JSON, so that every engine reads the table."""
    return claim | {"quotes": msgspec.json.encode(claim["quotes"]).decode()}
