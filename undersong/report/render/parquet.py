"""Tables for analysts: messages with their scores and claims, as Parquet; needs pyarrow (``undersong[parquet]``)."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from undersong.errors import UsageError
from undersong.models import TRAITS, Case, Row, decode
from undersong.report.render.claims import claims

MESSAGES, CLAIMS = "messages.parquet", "claims.parquet"
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
    """``messages.parquet``, a row a message with a column a trait, and ``claims.parquet``, a row a claim."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _messages_schema(pa)
    with evaluations.open("rb") as lines, pq.ParquetWriter(folder / MESSAGES, schema) as writer:
        rows = (_message(decode(line, Row)) for line in lines)
        while group := list(islice(rows, GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
    claim_rows = [_flat(each) for each in claims(case)]
    pq.write_table(pa.Table.from_pylist(claim_rows, schema=_claims_schema(pa)), folder / CLAIMS)


def _messages_schema(pa: Any) -> Any:
    names = ("id", "conversation", "agent", "target", "role", "observed", "tier", "state", "reason", "judge")
    columns = [(name, pa.string()) for name in names]
    columns += [("position", pa.int64()), ("time", pa.timestamp("us", tz="UTC")), ("sampled", pa.bool_())]
    columns += [(name, pa.float64()) for name in ("triage", "density", "sentiment_score", "code_change_delta", *TRAITS)]
    columns += [("total", pa.int64()), ("hard_constraints", pa.list_(pa.string()))]
    return pa.schema(columns, metadata={"undersong": VERSION})


def _message(row: Row) -> dict[str, Any]:
    facts = {name: getattr(row, name) for name in (
        "id", "conversation", "agent", "target", "role", "observed", "tier", "state", "reason", "judge", "position",
        "time", "sampled", "triage", "density", "sentiment_score", "code_change_delta", "total",
    )}  # fmt: skip
    traits = row.traits or {}
    return facts | {trait: traits.get(trait) for trait in TRAITS} | {"hard_constraints": list(row.hard_constraints)}


def _claims_schema(pa: Any) -> Any:
    texts = ("type", "id", "name", "title", "group", "level", "session", "agent", "target", "start", "end", "basis",
             "source", "explanation", "quotes")  # fmt: skip
    columns = [(name, pa.string()) for name in texts]
    columns += [(name, pa.float64()) for name in ("strength", "chance", "q", "stability")]
    columns += [("position", pa.int64()), ("points", pa.int64()), ("message_ids", pa.list_(pa.string()))]
    return pa.schema(columns, metadata={"undersong": VERSION})


def _flat(claim: dict[str, Any]) -> dict[str, Any]:
    """The quotes as JSON, so that every engine reads the table."""
    return claim | {"quotes": msgspec.json.encode(claim["quotes"]).decode()}
