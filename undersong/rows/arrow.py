"""Findings, leads, claims, evaluations and messages as Arrow tables, with a schema that has a version.

Version 1. Times are microseconds UTC, null where there is none; a score is null where its message was not scored, and
``state`` says why. Where ``scale`` is "rank" only the order of the scores counts: no threshold holds for them. Columns
may be added under the same version; one that changes or goes makes a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from undersong.errors import UsageError
from undersong.models import TRAITS, Case, Finding, Lead, LedgerClaim, Message, Review, Row
from undersong.models.frame import FrameLibrary, FrameRows
from undersong.rows.flat import claim_record, finding_record, lead_record, review_record

VERSION = "1"

_TIME = pa.timestamp("us", tz="UTC")
_TEXT, _NUMBER, _WHOLE = pa.string(), pa.float64(), pa.int64()
_ABOUT = {b"undersong.version": VERSION.encode()}


def _schema(*columns: tuple[str, pa.DataType]) -> pa.Schema:
    """A schema from names, several in one text, with their type."""
    fields = [(name, kind) for names, kind in columns for name in names.split()]
    return pa.schema(fields, metadata=_ABOUT)


FINDINGS = _schema(
    ("finding_id pattern title level rule_hash agent target", _TEXT),
    ("start end", _TIME),
    ("strength chance q stability confidence", _NUMBER),
    ("message_ids message_conversations stages gap_ids unread_ids conversations judges notes", pa.list_(_TEXT)),
    ("measures", pa.map_(_TEXT, _NUMBER)),
    ("quotes", pa.list_(_TEXT)),
    ("status reading", _TEXT),
    ("nominated_by", pa.list_(_TEXT)),
)
LEADS = _schema(
    ("id", _TEXT),
    ("rank", _WHOLE),
    ("kind agent target conversation reason", _TEXT),
    ("score", _NUMBER),
    ("above_cut", pa.bool_()),
    ("message_ids message_conversations quotes", pa.list_(_TEXT)),
    ("evidence", pa.map_(_TEXT, _NUMBER)),
)
CLAIMS = _schema(
    ("conversation message_id", _TEXT),
    ("position", _WHOLE),
    ("agent", _TEXT),
    ("time", _TIME),
    ("kind object sentence state reason", _TEXT),
    ("evidence evidence_message_ids", pa.list_(_TEXT)),
    ("check", _TEXT),
    ("masked", pa.bool_()),
    ("thought model", _TEXT),
)
REVIEWS = _schema(
    ("kind id verdict", _TEXT),
    ("reasons", pa.list_(_TEXT)),
    ("note reviewer", _TEXT),
    ("at", _TIME),
    ("shown_score", pa.bool_()),
    ("drawn", _TEXT),
    ("propensity", _NUMBER),
    ("pool", _WHOLE),
    ("pattern rule_hash level", _TEXT),
    ("confidence", _NUMBER),
    ("agent target evidence", _TEXT),
    ("conversations message_ids", pa.list_(_TEXT)),
)
EVALUATIONS = _schema(
    ("conversation message_id", _TEXT),
    ("position", _WHOLE),
    ("time", _TIME),
    ("agent target role observed branch tier state reason judge judge_hash scale", _TEXT),
    ("flags", _WHOLE),
    ("indicators", pa.list_(pa.struct([("id", _TEXT), ("confidence", _NUMBER)]))),
    (" ".join(TRAITS), _NUMBER),
)
FINDING_MESSAGES = _schema(("finding_id pattern agent target stage conversation message_id quote", _TEXT))
MESSAGES = _schema(
    ("conversation message_id", _TEXT),
    ("position", _WHOLE),
    ("time", _TIME),
    ("author agent target role reply_to model text", _TEXT),
)


def findings_table(findings: Iterable[Finding]) -> pa.Table:
    """One row per finding."""
    return _table(FINDINGS, (_mapped(finding_record(each), "measures") for each in findings))


def leads_table(leads: Iterable[Lead]) -> pa.Table:
    """One row per lead, best first as they come; ``evidence`` maps what was counted to its figure."""
    return _table(LEADS, (_mapped(lead_record(each), "evidence") for each in leads))


def claims_table(claims: Iterable[LedgerClaim]) -> pa.Table:
    """One row per claim of an agent about its work, with what speaks for or against it."""
    return _table(CLAIMS, map(claim_record, claims))


def reviews_table(reviews: Iterable[Review]) -> pa.Table:
    """One row per review, in the order of time."""
    return _table(REVIEWS, map(review_record, reviews))


def evaluations_table(rows: Iterable[Row]) -> pa.Table:
    """One row per message and judge."""
    return _table(EVALUATIONS, (_evaluation(each) for each in rows))


def messages_table(messages: Iterable[Message]) -> pa.Table:
    """One row per message, with its text; a lone surrogate of a broken export is written as ``?``."""
    return _table(MESSAGES, (_message(each) for each in messages))


def finding_messages_table(finding: Finding) -> pa.Table:
    """One row per message that a finding names, in its order."""
    quotes = {quote.message_id: quote.text for quote in finding.quotes}
    homes = finding.message_conversations or finding.conversations[:1] * len(finding.message_ids)
    stages = [stage for stage, _ in finding.stages] or [""] * len(finding.message_ids)
    whose = {name: getattr(finding, name) for name in ("finding_id", "pattern", "agent", "target")}
    rows = (
        whose | {"stage": stage, "conversation": home, "message_id": name, "quote": quotes.get(name)}
        for stage, home, name in zip(stages, homes, finding.message_ids, strict=False)
    )
    return _table(FINDING_MESSAGES, rows)


def to_frame(record: Case | Finding, library: FrameLibrary = "polars", rows: FrameRows = "findings") -> Any:
    """The findings, leads, claims or reviews of a case, or the messages of a finding, as a data frame.

    One row each (docs/store.md); ``library`` is "polars", "pandas" or "pyarrow". Raises UsageError for a library that
    is not known or not installed, and for unknown ``rows``; needs the extra ``parquet``.
    """
    if not isinstance(record, Case | Finding):
        remedy = "give the case of an audit, `to_frame(case, rows='leads')`, or a finding; rows: docs/store.md"  # type: ignore[unreachable]
        raise UsageError(f"no frame of {type(record).__name__}", where="to_frame", remedy=remedy)
    table = _case_table(record, rows) if isinstance(record, Case) else finding_messages_table(record)
    try:
        if library == "polars":
            import polars

            return polars.from_arrow(table)
        if library == "pandas":
            return table.to_pandas()
    except ModuleNotFoundError as error:
        remedy = f"pip install 'undersong[parquet]' {library}, or take 'pyarrow'"
        raise UsageError(f"{library} is not installed", remedy=remedy) from error
    if library != "pyarrow":
        raise UsageError(f"unknown library '{library}'", remedy="known are polars, pandas, pyarrow")
    return table


def _case_table(case: Case, rows: str) -> pa.Table:
    tables = dict(report_tables(case))
    if rows not in tables:
        raise UsageError(f"no rows '{rows}'", where="to_frame", remedy=f"known are {', '.join(tables)}")
    return tables[rows]


def _table(schema: pa.Schema, rows: Iterable[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=schema)


def _mapped(record: dict[str, Any], name: str) -> dict[str, Any]:
    """The record with a map as Arrow takes it."""
    return record | {name: list(record[name].items())}


def _evaluation(row: Row) -> dict[str, Any]:
    values = {name: getattr(row, name, None) for name in EVALUATIONS.names}
    seen = None if row.indicators is None else [{"id": i.id, "confidence": i.confidence} for i in row.indicators]
    return values | (row.traits or {}) | {"message_id": row.id, "flags": row.total, "indicators": seen}


def _message(message: Message) -> dict[str, Any]:
    values = {name: getattr(message, name, None) for name in MESSAGES.names}
    return values | {"message_id": message.id, "text": message.text.encode(errors="replace").decode()}


def schemas() -> Iterator[tuple[str, pa.Schema]]:
    """The tables by name."""
    yield from (("findings", FINDINGS), ("evaluations", EVALUATIONS), ("messages", MESSAGES))


def report_tables(case: Case) -> Iterator[tuple[str, pa.Table]]:
    """The findings, leads, claims and reviews of a case, by name."""
    yield "findings", findings_table(case.findings)
    yield "leads", leads_table(case.leads)
    yield "claims", claims_table(claim for session in case.sessions for claim in session.claims)
    yield "reviews", reviews_table(case.reviews)
