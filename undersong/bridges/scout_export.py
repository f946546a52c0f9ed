"""A store as a transcript database of Inspect Scout: one Parquet file, by the columns that Scout documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from undersong.core.batches import batches
from undersong.models import Conversation, Finding, Message
from undersong.stores.protocol import Store

FILE = "transcripts_undersong.parquet"
CONVERSATIONS = 200  # in a row group, as many as are held at once
_TEXT = pa.large_string()
SCHEMA = pa.schema(
    [("transcript_id", _TEXT), ("source_type", _TEXT), ("source_id", _TEXT), ("source_uri", _TEXT), ("date", _TEXT),
     ("task_set", _TEXT), ("task_id", _TEXT), ("agent", _TEXT), ("model", _TEXT), ("message_count", pa.int64()),
     ("messages", _TEXT), ("undersong_findings", _TEXT), ("undersong_most_confident", pa.float64())]
)  # fmt: skip
ROLES = {"participant": "user", "agent": "assistant"}  # of those that Scout does not have


def export_scout(store: Store, folder: Path) -> int:
    """Write every conversation as a transcript, with its findings as metadata; returns how many.

    A file appears whole or not at all. Raises OSError where the folder cannot be written.
    """
    findings: dict[str, list[Finding]] = {}
    for finding in store.findings():
        for name in finding.conversations:
            findings.setdefault(name, []).append(finding)
    folder.mkdir(parents=True, exist_ok=True)
    partial, written = folder / f".{FILE}.partial", 0
    try:
        with pq.ParquetWriter(partial, SCHEMA, compression="zstd") as writer:
            for group in batches(_transcripts(store, findings), CONVERSATIONS):
                writer.write_table(pa.Table.from_pylist(group, schema=SCHEMA))
                written += len(group)
        partial.replace(folder / FILE)
    finally:
        partial.unlink(missing_ok=True)
    return written


def _transcripts(store: Store, findings: dict[str, list[Finding]]) -> Iterator[dict[str, Any]]:
    for name in store.conversations():
        conversation = store.conversation(name)[0]
        yield _transcript(conversation, findings.get(name, []))


def _transcript(conversation: Conversation, findings: list[Finding]) -> dict[str, Any]:
    times = [message.time for message in conversation.messages if message.time]
    models = dict.fromkeys(message.model for message in conversation.messages if message.model)
    file = conversation.source_ref.file if conversation.source_ref else None
    sure = [finding.confidence for finding in findings if finding.confidence is not None]
    return {
        "transcript_id": _clean(conversation.id),
        "source_type": f"undersong_{conversation.source_format}",
        "source_id": _clean(conversation.id),
        "source_uri": None if file is None else _clean(file),
        "date": min(times).isoformat() if times else None,
        "task_id": _clean(conversation.title or conversation.id),
        "model": next(iter(models), None),
        "message_count": len(conversation.messages),
        "messages": json.dumps([_message(message) for message in conversation.messages]),
        "undersong_findings": json.dumps([_finding(finding, conversation.id) for finding in findings]),
        "undersong_most_confident": max(sure, default=None),
    }


def _message(message: Message) -> dict[str, Any]:
    """A message as Inspect has them; who wrote it stands in its metadata."""
    role = ROLES.get(message.role, message.role)
    text = _clean(message.text)
    thought = [{"type": "reasoning", "reasoning": _clean(message.thinking)}] if message.thinking else []
    own: dict[str, Any] = {
        "id": _clean(message.id),
        "role": role,
        "content": [*thought, {"type": "text", "text": text}] if thought else text,
        "metadata": {"author": _clean(message.author), "agent": _clean(message.agent)}
        | ({"time": message.time.isoformat()} if message.time else {}),
    }
    if role == "assistant":
        own["tool_calls"] = [
            {"id": call.id or f"{message.id}#{number}", "function": call.name, "arguments": _arguments(call.input)}
            for number, call in enumerate(message.tool_calls)
        ]
    if role == "tool" and message.tool_results:
        own |= {"tool_call_id": message.tool_results[0].call_id, "function": _clean(message.author)}
    return own


def _arguments(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"input": value}


def _finding(finding: Finding, conversation: str) -> dict[str, Any]:
    homes = finding.message_conversations or finding.conversations[:1] * len(finding.message_ids)
    ids = [name for name, home in zip(finding.message_ids, homes, strict=True) if home == conversation]
    names = ("finding_id", "pattern", "level", "agent", "target", "confidence", "strength")
    return {name: getattr(finding, name) for name in names} | {"lead": finding.is_lead, "message_ids": ids}


def _clean(text: str) -> str:
    """The text, in which a lone surrogate of a broken export is written as ``?``."""
    return text.encode(errors="replace").decode()
