"""Findings, evaluations and messages as Arrow tables, with a schema that has a version.

Version 1. Times are microseconds UTC, null where there is none; a score is null where its message was not scored, and
``state`` says why. Where ``scale`` is "rank" only the order of the scores counts: no threshold holds for them. Columns
may be added under the same version; one that changes or goes makes a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import pyarrow as pa

from undersong.errors import UsageError
from undersong.models import TRAITS, Case, Finding, Message, Row

VERSION = "1"
Library = Literal["polars", "pandas", "pyarrow"]

_TIME = pa.timestamp("us", tz="UTC")
_TEXTS = pa.list_(pa.string())
_ABOUT = {b"undersong.version": VERSION.encode()}


def _schema(**fields: Any) -> pa.Schema:
    return pa.schema(list(fields.items()), metadata=_ABOUT)


FINDINGS = _schema(
    finding_id=pa.string(),
    pattern=pa.string(),
    title=pa.string(),
    level=pa.string(),
    rule_hash=pa.string(),
    agent=pa.string(),
    target=pa.string(),
    start=_TIME,
    end=_TIME,
    strength=pa.float64(),
    chance=pa.float64(),
    q=pa.float64(),
    stability=pa.float64(),
    message_ids=_TEXTS,
    message_conversations=_TEXTS,
    stages=_TEXTS,
    gap_ids=_TEXTS,
    unread_ids=_TEXTS,
    conversations=_TEXTS,
    judges=_TEXTS,
    notes=_TEXTS,
    measures=pa.map_(pa.string(), pa.float64()),
)
EVALUATIONS = _schema(
    conversation=pa.string(),
    message_id=pa.string(),
    position=pa.int64(),
    time=_TIME,
    agent=pa.string(),
    target=pa.string(),
    role=pa.string(),
    observed=pa.string(),
    branch=pa.string(),
    tier=pa.string(),
    state=pa.string(),
    reason=pa.string(),
    judge=pa.string(),
    judge_hash=pa.string(),
    scale=pa.string(),
    flags=pa.int64(),
    indicators=pa.list_(pa.struct([("id", pa.string()), ("confidence", pa.float64())])),
    **dict.fromkeys(TRAITS, pa.float64()),
)
MESSAGES = _schema(
    conversation=pa.string(),
    message_id=pa.string(),
    position=pa.int64(),
    time=_TIME,
    author=pa.string(),
    agent=pa.string(),
    target=pa.string(),
    role=pa.string(),
    reply_to=pa.string(),
    model=pa.string(),
    text=pa.string(),
)


def findings_table(findings: Iterable[Finding]) -> pa.Table:
    """One row per finding."""
    return _table(FINDINGS, (_finding(each) for each in findings))


def evaluations_table(rows: Iterable[Row]) -> pa.Table:
    """One row per message and judge."""
    return _table(EVALUATIONS, (_evaluation(each) for each in rows))


def messages_table(messages: Iterable[Message]) -> pa.Table:
    """One row per message, with its text; a lone surrogate of a broken export is written as ``?``."""
    return _table(MESSAGES, (_message(each) for each in messages))


def to_frame(case: Case, library: Library = "polars") -> Any:
    """The findings of a case as a data frame, one row each (docs/store.md): of "polars", "pandas" or "pyarrow".

    Raises UsageError for a library that is not known or not installed; needs the extra ``parquet``.
    """
    table = findings_table(case.findings)
    try:
        if library == "polars":
            import polars

            return polars.from_arrow(table)
        if library == "pandas":
            return table.to_pandas()
    except ModuleNotFoundError as error:
        raise UsageError(f"{library} is not installed", remedy=f"pip install {library}") from error
    if library != "pyarrow":
        raise UsageError(f"unknown library '{library}'", remedy="known are polars, pandas, pyarrow")
    return table


def _table(schema: pa.Schema, rows: Iterable[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=schema)


def _finding(finding: Finding) -> dict[str, Any]:
    values = {name: getattr(finding, name) for name in FINDINGS.names}
    return values | {"stages": [stage for stage, _ in finding.stages], "measures": list(finding.measures.items())}


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
