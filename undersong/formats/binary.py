"""Binary inputs as JSON Lines: a row of a Parquet file, or a span or log record of OTLP protobuf, is a line."""

from __future__ import annotations

import base64
import io
from collections.abc import Generator, Iterable, Iterator
from typing import IO, Any, cast

import msgspec

PARQUET = b"PAR1"  # how a Parquet file begins and ends
ROWS = 64  # that are decoded at once: a row may be a long conversation
# Columns in which writers keep JSON as text: LangSmith's bulk export, Scout's transcripts, data sets with ragged rows.
JSON_COLUMNS = frozenset(
    ("messages", "inputs", "outputs", "input", "output", "conversation", "conversations", "metadata", "extra",
     "chosen", "rejected", "response", "span_attributes", "metrics")
)  # fmt: skip
MOST_FIELDS = 1_000_000  # of an OTLP file that are looked at before it counts as one
_ID_KEYS = ("traceId", "spanId", "parentSpanId")


def parquet_lines(file: IO[bytes]) -> Iterator[bytes]:
    """The rows of a Parquet file as JSON, row group after row group; raises ImportError without pyarrow, ValueError
    for a damaged file."""
    import pyarrow
    import pyarrow.parquet

    try:
        for batch in pyarrow.parquet.ParquetFile(file).iter_batches(batch_size=ROWS):
            for row in batch.to_pylist():
                yield _encode({name: _decoded(name, value) for name, value in row.items()}) + b"\n"
    except pyarrow.ArrowException as error:
        raise ValueError(str(error).partition("\n")[0][:200]) from error


def _decoded(name: str, value: Any) -> Any:
    if name in JSON_COLUMNS and isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return value
    return value


def otlp_messages(file: IO[bytes], size: int) -> list[tuple[int, int]]:
    """Offset and size of each ``resource_spans`` or ``resource_logs`` of an OTLP protobuf file; () for another file.

    The file is one message, or messages with their length before each, as the collector's file exporter writes them.
    """
    single = _fields(file, 0, size)
    if single:
        return single
    offset, several = 0, list[tuple[int, int]]()
    while offset < size:
        file.seek(offset)
        length = int.from_bytes(file.read(4), "big")
        part = _fields(file, offset + 4, length) if 0 < length <= size - offset - 4 else []
        if not part or len(several) > MOST_FIELDS:
            return []
        several += part
        offset += 4 + length
    return several


def _fields(file: IO[bytes], start: int, size: int) -> list[tuple[int, int]]:
    """The fields of a message that has no other than field 1 with messages in it; empty for any other bytes."""
    places, at = list[tuple[int, int]](), start
    while at < start + size:
        file.seek(at)
        head = file.read(12)
        length, width = _varint(head[1:])
        begins = at + 1 + width
        fits = head[:1] == b"\x0a" and width and length <= start + size - begins
        if not fits or not _is_resource(file, begins, length):
            return []
        places.append((at + 1 + width, length))
        at += 1 + width + length
        if len(places) > MOST_FIELDS:
            return []
    return places


def _is_resource(file: IO[bytes], start: int, size: int) -> bool:
    """Whether bytes are filled by the fields of ResourceSpans or ResourceLogs: resource, scopes, a schema."""
    at, number = start, 0
    while at < start + size:
        file.seek(at)
        head = file.read(12)
        length, width = _varint(head[1:])
        if head[:1] not in (b"\x0a", b"\x12", b"\x1a") or not width or number > MOST_FIELDS:
            return False
        at += 1 + width + length
        number += 1
    return at == start + size and size > 0


def _varint(data: bytes) -> tuple[int, int]:
    """A number of protobuf and how many bytes it takes; 0 bytes for none."""
    value = 0
    for width, byte in enumerate(data[:10], 1):
        value |= (byte & 127) << (7 * (width - 1))
        if byte < 128:
            return value, width
    return 0, 0


def otlp_lines(file: IO[bytes], places: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    """The spans or log records of OTLP protobuf in the shape of OTLP/JSON; raises ImportError without
    opentelemetry-proto, ValueError for a damaged file."""
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

    for offset, size in places:
        file.seek(offset)
        data = file.read(size)
        try:
            spans = ResourceSpans.FromString(data)
            items: list[Any] = [span for scope in spans.scope_spans for span in scope.spans]
            keys = ("resourceSpans", "scopeSpans", "spans")
            if not any(span.trace_id for span in items):
                logs = ResourceLogs.FromString(data)
                items = [each for scope in logs.scope_logs for each in scope.log_records]
                keys = ("resourceLogs", "scopeLogs", "logRecords")
        except DecodeError as error:
            raise ValueError(str(error)[:200]) from error
        for item in items:
            value = MessageToDict(item)
            value |= {key: base64.b64decode(value[key]).hex() for key in _ID_KEYS if key in value}
            yield _encode({keys[0]: [{keys[1]: [{keys[2]: [value]}]}]}) + b"\n"


class LineStream(io.RawIOBase):
    """Lines that are made while they are read."""

    def __init__(self, lines: Generator[bytes]) -> None:
        self._lines, self._rest = lines, memoryview(b"")

    def close(self) -> None:
        self._lines.close()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = memoryview(next(self._lines, b""))
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def stream(lines: Generator[bytes]) -> IO[bytes]:
    """The lines as a file to read."""
    return cast(IO[bytes], io.BufferedReader(cast(io.RawIOBase, LineStream(lines))))


_encode = msgspec.json.Encoder(enc_hook=str).encode
