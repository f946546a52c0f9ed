"""Runs of LangSmith: its bulk export (Parquet or JSON), a list of runs of its API, or a run with those below it.

The fields are those of "Run data format" (docs.langchain.com/langsmith/run-data-format); messages are LangChain's own,
serialised or not, or those of a chat API. A thread is one conversation (metadata ``thread_id`` and its like).
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
from undersong.formats.values import SkipLog
from undersong.models import SourceRef

_KEYS = frozenset(
    (
        "id",
        "name",
        "run_type",
        "inputs",
        "outputs",
        "trace_id",
        "session_id",
        "thread_id",
        "start_time",
        "end_time",
        "extra",
        "parent_run_id",
        "dotted_order",
        "child_runs",
        "events",
        "serialized",
        "tags",
        "inputs_preview",
        "outputs_preview",
    )
)  # events and previews repeat inputs and outputs


def sniff(sample: FormatSample) -> bool:
    """Runs with a ``run_type``, inputs and a trace."""
    for prefix in ((), ("runs",)):
        if sample.under(prefix, ("run_type", "inputs")) and any(
            sample.under(prefix, (key,)) for key in ("trace_id", "dotted_order", "child_runs", "session_id")
        ):
            return True
    return sample.has("run_type", "inputs", "outputs")


def read(source: TextSource) -> Iterator[Item]:
    """One conversation for each thread or, without one, trace; calls are the runs of type ``llm``."""
    return read_spans(source, "langsmith", ("runs", "data"), _spans)


def _spans(
    value: Any, ref: SourceRef, notes: SkipLog, thread: str | None = None
) -> Iterator[tuple[TraceSpan, SourceRef]]:
    """A run, and those below it."""
    if not isinstance(value, dict) or "run_type" not in value:
        raise RecordError("a run without a 'run_type'")
    notes.unread(value, ref, _KEYS)
    extra = value["extra"] if isinstance(value.get("extra"), dict) else {}
    metadata = extra["metadata"] if isinstance(extra.get("metadata"), dict) else {}
    parameters = extra["invocation_params"] if isinstance(extra.get("invocation_params"), dict) else {}
    thread = values.name(value.get("thread_id")) or grouped(metadata, THREADS) or thread
    name = thread or values.name(value.get("trace_id")) or values.name(value.get("id")) or str(ref)
    models = (metadata.get("ls_model_name"), parameters.get("model"), parameters.get("model_name"))
    model = next((each for each in models if isinstance(each, str) and each), None)
    start, end = value.get("start_time"), value.get("end_time")
    is_root = not value.get("parent_run_id")
    is_call = value["run_type"] == "llm"
    yield TraceSpan(name, is_call, is_root, value.get("inputs"), value.get("outputs"), start, end, model), ref
    below = value.get("child_runs")
    for item, place in elements(below if isinstance(below, list) else (), ref, "child_runs"):
        if not isinstance(item, dict):
            notes.add("run that is not an object, not read", place)
        else:
            yield from _spans({"parent_run_id": value.get("id")} | item, place, notes, name)
