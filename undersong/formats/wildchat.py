"""Rows of WildChat and LMSYS-Chat-1M as JSON: a ``conversation`` of roles and contents, and the model that answered.

The shapes are those of the data sets' cards (allenai/WildChat-1M, lmsys/lmsys-chat-1m). WildChat names a person by the
hash of an address, which makes the person one agent across conversations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import JsonRecord, elements, problems_of, read_records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog
from undersong.models import Conversation, Message, Problem, SourceRef

_KEYS = frozenset(
    ("role", "content", "timestamp", "hashed_ip", "header", "language", "country", "state", "turn_identifier")
)
_ROW_KEYS = frozenset(
    ("conversation", "conversation_id", "conversation_hash", "model", "timestamp", "hashed_ip", "header", "language",
     "country", "state", "openai_moderation", "detoxify_moderation")
)  # fmt: skip
IDS = ("conversation_hash", "conversation_id")


def sniff(sample: FormatSample) -> bool:
    """A ``conversation`` of turns beside its id and model."""
    return sample.has("conversation.role", "conversation.content", "model") and sample.any_of(*IDS)


def read(source: TextSource) -> Iterator[Item]:
    """One conversation for each row."""
    return read_records(source, ("rows", "data"), _conversation)


def _conversation(record: JsonRecord, fallback: str, notes: SkipLog) -> Iterator[Item]:
    value, ref = record
    row = value["row"] if isinstance(value, dict) and isinstance(value.get("row"), dict) else value
    turns = row.get("conversation") if isinstance(row, dict) else None
    if not isinstance(turns, list):
        yield Problem(what="a row without a list 'conversation'", where=str(ref))
        return
    notes.unread(row, ref, _ROW_KEYS)
    key = next((own_id for name in IDS if (own_id := values.name(row.get(name)))), fallback)
    messages = list[Message]()
    yield from problems_of(
        elements(turns, ref, "conversation"),
        lambda turn, place: messages.append(_message(turn, row, key, len(messages), place, notes)),
    )
    if messages:
        yield Conversation(id=key, source_format="wildchat", messages=tuple(messages), source_ref=ref)
    else:
        notes.add(values.EMPTY, ref)


def _message(turn: Any, row: dict[str, Any], key: str, position: int, ref: SourceRef, notes: SkipLog) -> Message:
    if not isinstance(turn, dict):
        raise RecordError("a turn that is not an object")
    notes.marks(turn, ref)
    notes.unread(turn, ref, _KEYS)
    notes.blocks(turn.get("content"), ref)
    role, text = values.role(turn.get("role")), values.text(turn.get("content"))
    if role is None or not isinstance(text, str):
        raise RecordError("a turn without a known 'role' and a 'content'")
    model = values.string(row.get("model"))
    person = values.string(turn.get("hashed_ip")) or values.string(row.get("hashed_ip")) if role == "user" else None
    return Message(
        id="",
        conversation=key,
        position=position,
        author=f"user {person[:8]}" if person else (model if role == "assistant" else None) or role,
        agent=person or "",
        role=role,
        text=text,
        time=notes.time(turn.get("timestamp"), ref),
        model=model if role == "assistant" else None,
        source_ref=ref,
    )
