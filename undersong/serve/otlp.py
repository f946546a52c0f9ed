"""Traces of model calls, as OpenTelemetry sends them, into the messages of a monitor."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from undersong.errors import InputError
from undersong.formats.calls import overlap
from undersong.formats.ingest import read
from undersong.models import Conversation, Message, Problem
from undersong.serve.library import Library
from undersong.serve.problems import ProblemError

MOST = 100_000  # messages of one conversation that are compared with what came before
PROTOBUF = "application/x-protobuf"


def as_json(body: bytes, media_type: str) -> bytes:
    """The traces of a request as OTLP/JSON; raises ProblemError for another media type."""
    if media_type == PROTOBUF:
        return _from_protobuf(body)
    if media_type == "application/json":
        return body
    raise ProblemError(415, f"'{media_type[:60]}' is no form of traces", where="Content-Type", remedy=_JSON)


_JSON = "set OTEL_EXPORTER_OTLP_PROTOCOL=http/json, or send application/json"


def _from_protobuf(body: bytes) -> bytes:
    try:
        from google.protobuf.json_format import MessageToJson
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ModuleNotFoundError as error:
        remedy = f"pip install opentelemetry-proto, or {_JSON}"
        raise ProblemError(415, "protobuf needs a package", where=error.name or "", remedy=remedy) from error
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError as error:
        raise ProblemError(400, f"no OTLP traces: {error}", where="body", remedy=_JSON) from error
    return str(MessageToJson(request, indent=None)).encode()


def conversations_of(traces: bytes) -> tuple[list[Conversation], list[Problem]]:
    """The conversations of OTLP/JSON traces, and what could not be read of them."""
    with tempfile.TemporaryDirectory(prefix="undersong-otlp-") as folder:
        path = Path(folder) / "traces.json"
        path.write_bytes(traces)
        try:
            items = list(read(path, source_format="otel"))
        except InputError as error:
            return [], [Problem(what=error.what, where="body", remedy=error.remedy)]
    problems = [item for item in items if isinstance(item, Problem)]
    return [item for item in items if isinstance(item, Conversation)], problems


def new_messages(library: Library, conversation: Conversation) -> Iterator[Message]:
    """The messages that the store lacks: each call repeats what was said before, or the end of it."""
    stored = library.store.transcript(conversation.id, 0, MOST)
    shared = overlap([_key(each) for each in stored], [_key(each) for each in conversation.messages])
    for number, message in enumerate(conversation.messages[shared:], start=len(stored)):
        name = f"{conversation.id}:{number}"
        yield msgspec.structs.replace(message, id=name, position=number, reply_to=None, source_ref=None)


def _key(message: Message) -> tuple[Any, ...]:
    calls = tuple((call.name, msgspec.json.encode(call.input, order="sorted")) for call in message.tool_calls)
    return message.role, message.text.strip(), calls, tuple(result.text for result in message.tool_results)
