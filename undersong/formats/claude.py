"""Claude.ai data exports: flat lists of messages, block times used for latency."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import JsonRecord, elements, problems_of, read_records
from undersong.formats.repeats import Repeats
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.tree import branches
from undersong.formats.values import EMPTY, UNREADABLE_TIME, SkipLog
from undersong.models import Conversation, Message, Problem, SourceRef

_MESSAGE_KEYS = frozenset(
    ("uuid", "text", "content", "sender", "created_at", "updated_at", "attachments", "files", "parent_message_uuid")
)
_ABOUT_KEYS = frozenset(
    ("uuid", "name", "created_at", "updated_at", "account", "chat_messages", "current_leaf_message_uuid")
)
_PLACEHOLDER = re.compile(r"```\s*This block is not supported on your current device yet\.\s*```")
_BLOCKS = ("text", "thinking", "tool_use", "tool_result")


def sniff(sample: FormatSample) -> bool:
    """The key ``chat_messages``."""
    return sample.has("chat_messages")


def read(source: TextSource) -> Iterator[Item]:
    """One conversation per element of the export."""
    return read_records(source, ("conversations", "data"), _conversation)


def _conversation(record: JsonRecord, fallback: str, notes: SkipLog) -> Iterator[Item]:
    value, ref = record
    items = value.get("chat_messages") if isinstance(value, dict) else None
    if not isinstance(items, list):
        yield Problem(what="a conversation without a list of 'chat_messages'", where=str(ref))
        return
    key = values.name(value.get("uuid")) or fallback
    notes.unread(value, ref, _ABOUT_KEYS)
    messages, repeats = list[Message](), Repeats()
    yield from problems_of(
        elements(items, ref, "chat_messages"),
        lambda item, place: messages.append(_message(item, place, key, repeats, notes)),
    )
    repeats.note_others(messages, notes)
    if not items:
        notes.add(EMPTY, ref)
    if messages:
        leaf = values.string(value.get("current_leaf_message_uuid"))
        yield Conversation(
            id=key,
            source_format="claude",
            messages=_with_branches(messages, leaf),
            title=values.string(value.get("name")),
            started_at=values.time_or_none(value.get("created_at")),
            ended_at=values.time_or_none(value.get("updated_at")),
            source_ref=ref,
        )


def _message(value: Any, ref: SourceRef, conversation: str, repeats: Repeats, notes: SkipLog) -> Message:
    if not isinstance(value, dict):
        raise RecordError("a message that is not an object")
    role = values.role(value.get("sender"))
    if role is None:
        raise RecordError("a message without a known sender")
    blocks = [each for each in values.blocks(value.get("content")) if isinstance(each, dict)]
    _note_left_out(value, blocks, ref, notes)
    whole = value["text"] if isinstance(value.get("text"), str) else None
    text = values.text(values.said_blocks(blocks)) or whole
    if whole is not None and text is not whole:
        repeats.add(_PLACEHOLDER.sub("", whole), ref)
    if text is None and not blocks:
        raise RecordError("a message without text")
    calls = (values.tool_call(each) for each in blocks if each.get("type") == "tool_use")
    results = (values.tool_result(each) for each in blocks if each.get("type") == "tool_result")
    return Message(
        id=values.name(value.get("uuid")) or "",
        conversation=conversation,
        position=-1,
        author=values.string(value.get("sender")) or role,
        role=role,
        text=text or "",
        time=values.time_or_none(value.get("created_at")),
        reply_to=values.string(value.get("parent_message_uuid")),
        latency=_latency(blocks) if role == "assistant" else None,
        tool_calls=tuple(call for call in calls if call),
        tool_results=tuple(result for result in results if result),
        source_ref=ref,
    )


def _note_left_out(value: Mapping[str, Any], blocks: list[dict[str, Any]], ref: SourceRef, notes: SkipLog) -> None:
    notes.marks(value, ref)
    notes.unread(value, ref, _MESSAGE_KEYS)
    notes.odd(value.get("content"), ref)
    notes.blocks(blocks, ref, _BLOCKS)
    thinking = sum(each.get("type") == "thinking" for each in blocks)
    if thinking:
        notes.add("thinking block (not said to the user), not read", ref, thinking)
    for key in ("attachments", "files"):
        if isinstance(value.get(key), list) and value[key]:
            notes.add("attached file, not read", ref, len(value[key]))
    if value.get("created_at") is not None and values.time_or_none(value["created_at"]) is None:
        notes.add(UNREADABLE_TIME, ref)


def _latency(blocks: list[dict[str, Any]]) -> float | None:
    """Seconds from the first start to the last stop of the answer's blocks."""
    starts = [moment for each in blocks if (moment := values.time_or_none(each.get("start_timestamp")))]
    stops = [moment for each in blocks if (moment := values.time_or_none(each.get("stop_timestamp")))]
    return values.seconds((max(stops) - min(starts)).total_seconds()) if starts and stops else None


def _with_branches(messages: list[Message], leaf: str | None) -> tuple[Message, ...]:
    """Positions in source order; where the messages form a tree, abandoned branches are marked."""
    ids = {message.id for message in messages}
    forked = "" not in ids and len(ids) == len(messages) and any(message.reply_to in ids for message in messages)
    order = branches({message.id: message.reply_to for message in messages}, leaf or messages[-1].id) if forked else {}
    replace = msgspec.structs.replace
    return tuple(
        replace(
            message,
            position=position,
            branch=order.get(message.id),
            reply_to=message.reply_to if message.reply_to in ids else None,
        )
        for position, message in enumerate(messages)
    )
