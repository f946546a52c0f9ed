"""Logs and experiments of Braintrust: rows of its API, of its UI's download, or of an export (JSON, JSONL, Parquet).

The fields are those of a row of project logs (braintrust.dev/docs, "Logs": ``span_attributes``, ``root_span_id``,
``input``, ``output``, ``metadata``, ``metrics``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.calls import THREADS, TraceSpan, grouped, read_spans
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog
from undersong.models import SourceRef

_KEYS = frozenset(
    ("id", "span_id", "root_span_id", "span_parents", "span_attributes", "is_root", "input", "output", "metadata",
     "metrics", "created", "scores", "context", "project_id", "log_id", "org_id", "origin")
)  # fmt: skip


def sniff(sample: FormatSample) -> bool:
    """Rows with a ``root_span_id``, or ``span_attributes`` beside an input."""
    for prefix in ((), ("events",), ("rows",), ("data",)):
        if sample.under(prefix, ("input", "span_id")) and (
            sample.under(prefix, ("root_span_id",)) or sample.under(prefix, ("span_attributes",))
        ):
            return True
    return False


def read(source: TextSource) -> Iterator[Item]:
    """One conversation for each thread or session that the metadata name or, without one, trace."""
    return read_spans(source, "braintrust", ("events", "rows", "data"), _spans)


def _spans(value: Any, ref: SourceRef, notes: SkipLog) -> Iterator[tuple[TraceSpan, SourceRef]]:
    if not isinstance(value, dict) or not ("span_id" in value or "root_span_id" in value or "id" in value):
        raise RecordError("a row without a span")
    notes.unread(value, ref, _KEYS)
    metadata = value["metadata"] if isinstance(value.get("metadata"), dict) else {}
    metrics = value["metrics"] if isinstance(value.get("metrics"), dict) else {}
    attributes = value["span_attributes"] if isinstance(value.get("span_attributes"), dict) else {}
    root = values.name(value.get("root_span_id"))
    own_id = values.name(value.get("span_id")) or values.name(value.get("id"))
    name = grouped(metadata, THREADS) or root or own_id or str(ref)
    start, end = metrics.get("start") or value.get("created"), metrics.get("end") or value.get("created")
    model = values.string(metadata.get("model"))
    is_root = root in (None, own_id) or not value.get("span_parents")
    is_call = attributes.get("type") == "llm"
    yield TraceSpan(name, is_call, is_root, value.get("input"), value.get("output"), start, end, model), ref
