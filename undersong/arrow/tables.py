"""The published schemas: messages, scans, rows and findings as Arrow tables that lose nothing.

Version 1. Times are microseconds UTC. The last column of all but MESSAGES is ``summary``: null in every row but the
last one of a part, which has nothing else. Columns may be added under the same version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from undersong.arrow.codec import ArrowColumn, column_of, record_columns
from undersong.errors import InputError
from undersong.models import (
    Break,
    Conversation,
    Finding,
    LedgerClaim,
    Message,
    Record,
    Row,
    Scan,
    SourceRef,
    ThreadScan,
)

VERSION = "1"
SUMMARY = "summary"
NOT_SEARCHED = ("text", "hits", "source_ref", "reasons", "engines", "spans", "bands", "claims", "thread")


class ConversationHeader(Record, frozen=True, kw_only=True):
    """What a conversation says of itself beside its messages."""

    source_format: str = "arrow"
    title: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    timezone: str | None = None
    breaks: tuple[Break, ...] = ()
    context: tuple[str, ...] = ()
    source_ref: SourceRef | None = None

    @classmethod
    def of(cls, conversation: Conversation) -> ConversationHeader:
        """The header of a conversation."""
        return cls(**{name: getattr(conversation, name) for name in cls.__struct_fields__})

    def conversation(self, name: str, messages: Sequence[Message]) -> Conversation:
        """The conversation of this header."""
        values = {field: getattr(self, field) for field in self.__struct_fields__}
        return Conversation(id=name, messages=tuple(messages), **values)


class ReadBatch(NamedTuple):
    """The records of a batch, and by name the values of the columns beside their fields, aligned with them."""

    records: list[Any]
    extras: dict[str, list[Any]]


class TableFormat:
    """A published table: the fields of a record and some columns beside them."""

    def __init__(self, kind: type, extras: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> None:
        self._record, self._defaults = record_columns(kind), dict(defaults or {})
        self._extras: dict[str, ArrowColumn] = {name: column_of(each) for name, each in extras.items()}
        fields = [*self._record.fields, *(pa.field(name, each.type) for name, each in self._extras.items())]
        self.schema = pa.schema(fields, metadata={b"undersong.version": VERSION.encode()})

    def batch(self, records: Sequence[Any], **extras: Sequence[Any]) -> pa.RecordBatch:
        """A batch of records; an extra column that is not given is null."""
        arrays = self._record.array(records).flatten()
        for name, column in self._extras.items():
            arrays.append(column.array(extras.get(name, [None] * len(records))))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def summary(self, data: bytes) -> pa.RecordBatch:
        """The last batch of a part."""
        columns = [pa.array([data] if field.name == SUMMARY else [None], field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def read(self, batch: pa.RecordBatch, skip: Sequence[str] = ()) -> ReadBatch:
        """The records of a batch, without its summary.

        Columns that are not there, and those to ``skip``, leave fields as they are by default. Raises InputError where
        a column is of another kind, or a field without a default is missing.
        """
        if SUMMARY in batch.schema.names and batch[SUMMARY].null_count < len(batch):
            batch = batch.filter(pc.is_null(batch[SUMMARY]))
        columns = {name: batch[name] for name in batch.schema.names if name not in skip}
        try:
            records = self._record.records(self._filled(columns, len(batch)), len(batch))
            extras = {
                name: column.values(columns[name]) if name in columns else [None] * len(batch)
                for name, column in self._extras.items()
            }
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError, AttributeError, ValueError) as error:
            remedy = "undersong.arrow has the schemas; a field that is not optional needs a value in every row"
            raise InputError(f"a batch cannot be read: {error}", remedy=remedy) from error
        return ReadBatch(records, extras)

    def _filled(self, columns: dict[str, pa.Array], size: int) -> dict[str, pa.Array]:
        """The columns of the record, with defaults where one of its own is missing or null."""
        own = {name: each for name, each in columns.items() if name in self._record.columns}
        for name, value in self._defaults.items():
            if name not in own:
                own[name] = pa.array([value] * size, self._record.columns[name].type)
            elif own[name].null_count:
                own[name] = pc.fill_null(own[name], value)
        return own


MESSAGE_DEFAULTS = {"id": "", "position": -1, "role": "participant", "text": "", "agent": "", "observed": "unknown",
                    "thinking": ""}  # fmt: skip
_ABOUT = {"about": ConversationHeader | None}
_MESSAGES = TableFormat(Message, _ABOUT, MESSAGE_DEFAULTS)
_SCANS = TableFormat(Message, _ABOUT | {"scan": Scan | None, "thread": ThreadScan | None, SUMMARY: bytes | None})
_ROWS = TableFormat(
    Row,
    {
        "event_time": datetime | None,
        "profile": str | None,
        "claims": tuple[LedgerClaim, ...] | None,
        "beside": str | None,
        SUMMARY: bytes | None,
    },
)
_FINDINGS = TableFormat(Finding, {SUMMARY: bytes | None})


ADDRESSED = pa.schema([pa.field("beside", pa.string()), pa.field("addressed", pa.string())])


def summaries(batches: Any) -> Iterator[bytes]:
    """The summaries in some batches."""
    for batch in batches:
        yield from (each for each in batch[SUMMARY].to_pylist() if each is not None)
