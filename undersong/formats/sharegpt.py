"""ShareGPT conversations: ``conversations`` of ``from`` and ``value``, or of ``role`` and ``content``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import JsonRecord, elements, read_records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import EMPTY, SkipLog, inside
from undersong.models import Conversation, Message, Problem, SourceRef, ToolCall, ToolResult

_RECORD_KEYS = frozenset(("conversations", "id", "model", "system"))
_TURN_KEYS = frozenset(("from", "role", "value", "content", "id", *values.TIMES))


def sniff(sample: FormatSample) -> bool:
    """A list ``conversations`` of turns."""
    return sample.any_of("conversations.from", "conversations.value") or sample.has(
        "conversations.role", "conversations.content"
    )


def read(source: TextSource) -> Iterator[Item]:
    """One conversation per record."""
    return read_records(source, ("data",), _conversation)


def _conversation(record: JsonRecord, fallback: str, notes: SkipLog) -> Iterator[Item]:
    """The conversation of a record, or one for each list of turns where it holds several."""
    value, ref = record
    turns = value.get("conversations") if isinstance(value, dict) else None
    if not isinstance(turns, list):
        yield Problem(what="a record without a list of 'conversations'", where=str(ref))
        return
    key = values.name(value.get("id")) or fallback
    notes.unread(value, ref, _RECORD_KEYS)
    system = values.string(value.get("system"))
    if system and turns and isinstance(turns[0], dict):
        turns = [{"from": "system", "value": system}, *turns]
    model = values.string(value.get("model"))
    if turns and all(isinstance(each, list) for each in turns):
        for index, turn_list in enumerate(elements(turns, ref, "conversations")):
            yield from _turns_conversation(turn_list, f"{key}-{index}", model, ref, notes)
    else:
        yield from _turns_conversation(JsonRecord(turns, inside(ref, "conversations")), key, model, ref, notes)


def _turns_conversation(
    turns: JsonRecord, key: str, model: str | None, ref: SourceRef, notes: SkipLog
) -> Iterator[Item]:
    messages: list[Message] = []
    for turn, place in elements(*turns):
        try:
            fields = _turn(turn, place, notes)
        except RecordError as error:
            yield Problem(what=error.what, where=str(place))
            continue
        by = model if fields["role"] == "assistant" else None
        messages.append(Message(conversation=key, position=len(messages), source_ref=place, model=by, **fields))
    if not turns.value:
        notes.add(EMPTY, ref)
    if messages:
        yield Conversation(id=key, source_format="sharegpt", messages=tuple(messages), source_ref=ref)


def _turn(turn: Any, ref: SourceRef, notes: SkipLog) -> dict[str, Any]:
    if not isinstance(turn, dict):
        raise RecordError("a turn that is not an object")
    notes.marks(turn, ref)
    notes.unread(turn, ref, _TURN_KEYS)
    speaker = turn.get("from", turn.get("role"))
    content = turn.get("value", turn.get("content"))
    notes.blocks(content, ref)
    text = values.text(content)
    if text is None:
        raise RecordError("a turn without text")
    if speaker == "function_call":
        call = ToolCall(name="function", input=text)
        return {"id": "", "author": "gpt", "role": "assistant", "text": "", "tool_calls": (call,)}
    role = values.role(speaker)
    if role is None:
        raise RecordError("a turn without a known speaker", remedy="'from' is human, gpt, system or a tool")
    results = (ToolResult(text=text),) if role == "tool" else ()
    about = {"id": values.name(turn.get("id")) or "", "time": notes.first_time(turn, ref)}
    return about | {"author": str(speaker).strip(), "role": role, "text": text, "tool_results": results}
