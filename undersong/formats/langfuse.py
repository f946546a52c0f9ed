"""Traces of Langfuse: a trace or session downloaded as JSON, rows of its tables, and its export to blob storage.

The fields are those of "Blob Storage Export Field Reference" and "How do I export a single trace or session?"
(langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields, langfuse.com/faq).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.calls import THREADS, TraceSpan, grouped, read_spans
from undersong.formats.json_stream import elements
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog, inside
from undersong.models import SourceRef

KINDS = frozenset(
    ("GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
)
_KEYS = frozenset(
    ("id", "traceId", "trace_id", "sessionId", "session_id", "type", "name", "input", "output", "model", "metadata",
     "startTime", "start_time", "endTime", "end_time", "timestamp", "createdAt", "created_at", "updatedAt",
     "updated_at", "completionStartTime", "completion_start_time", "event_ts", "observations", "traces", "trace",
     "providedModelName", "provided_model_name", "modelParameters", "model_parameters", "scores")
)  # fmt: skip


def sniff(sample: FormatSample) -> bool:
    """Observations with a ``traceId``, or a trace with its observations."""
    prefixes = ("", "observations.", "trace.", "traces.")
    for prefix in prefixes:
        for trace in ("traceId", "trace_id"):
            if sample.has(f"{prefix}{trace}", f"{prefix}type") and sample.any_of(f"{prefix}input", f"{prefix}output"):
                return bool(set().union(*(sample.values.get(path, set()) for path in _type_paths(sample))) & KINDS)
    return sample.has("sessionId", "timestamp", "input", "output") and sample.any_of("observations", "tags")


def _type_paths(sample: FormatSample) -> list[tuple[str, ...]]:
    return [path for path in sample.keys if path[-1] == "type"]


def read(source: TextSource) -> Iterator[Item]:
    """One conversation for each session or, without one, trace; calls are its generations."""
    return read_spans(source, "langfuse", ("data",), _spans)


def _spans(
    value: Any, ref: SourceRef, notes: SkipLog, session: str | None = None
) -> Iterator[tuple[TraceSpan, SourceRef]]:
    """The observation or trace of a record, and those inside it."""
    if not isinstance(value, dict):
        raise RecordError("an observation that is not an object")
    notes.unread(value, ref, _KEYS)
    metadata = value.get("metadata")
    session = values.name(value.get("sessionId", value.get("session_id"))) or grouped(metadata, THREADS) or session
    kind = str(value.get("type") or "").upper()
    trace = values.name(value.get("traceId", value.get("trace_id")))
    own_id = values.name(value.get("id"))
    if isinstance(value.get("trace"), dict):
        session = values.name(value["trace"].get("sessionId")) or session
        yield from _spans(value["trace"], inside(ref, "trace"), notes, session)
    elif "input" in value or "output" in value:
        start = next((value[key] for key in ("startTime", "start_time", "timestamp") if value.get(key)), None)
        end = next((value[key] for key in ("endTime", "end_time") if value.get(key)), start)
        model = next((values.string(value.get(key)) for key in ("model", "providedModelName", "provided_model_name")
                      if value.get(key)), None)  # fmt: skip
        name = session or trace or own_id or str(ref)
        is_root = kind not in KINDS
        yield (
            TraceSpan(name, kind == "GENERATION", is_root, value.get("input"), value.get("output"), start, end, model),
            ref,
        )
    elif not any(isinstance(value.get(key), list) for key in ("observations", "traces")):
        raise RecordError("an observation without input or output")
    for key in ("observations", "traces"):
        below = value.get(key)
        if not isinstance(below, list):
            notes.unread({key: below}, ref, frozenset())
        for item, place in elements(below if isinstance(below, list) else (), ref, key):
            if not isinstance(item, dict):
                notes.add("observation that is not an object, not read", place)
            else:
                about = {"traceId": own_id} if key == "observations" and "traceId" not in item and own_id else {}
                yield from _spans(item | about, place, notes, session or (own_id if key == "traces" else None))
