"""OpenAI chat messages: one conversation a line or element, or a bare list of messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.notes import EMPTY, Notes, inside
from undersong.formats.records import Record, records
from undersong.formats.sample import Sample
from undersong.formats.sources import Source
from undersong.models import Conversation, Message, Problem, SourceRef, ToolCall, ToolResult

_LISTS = ("messages", "input", "output")  # Chat Completions; Responses


def sniff(sample: Sample) -> bool:
    """Messages with ``role`` and ``content``."""
    if any(sample.has(f"{key}.role", f"{key}.content") for key in _LISTS):
        return True
    return sample.has("role", "content")


def read(source: Source) -> Iterator[Item]:
    """Conversations; messages that stand alone in the file are one conversation together."""
    bare: list[Record] = []
    notes = Notes()
    for number, record in enumerate(records(source, ("data",))):
        if isinstance(record, Problem):
            yield record
        elif isinstance(record.value, dict) and any(isinstance(record.value.get(key), list) for key in _LISTS):
            yield from _listed(record, f"{source.stem}-{number}", notes)
        elif isinstance(record.value, list):
            items = [Record(each, inside(record.ref, index)) for index, each in enumerate(record.value)]
            yield from _conversation(f"{source.stem}-{number}", items, record.ref, None)
        else:
            bare.append(record)
    if bare:
        yield from _conversation(source.stem, bare, bare[0].ref, None)
    yield from notes.problems()


def _listed(record: Record, fallback: str, notes: Notes) -> Iterator[Item]:
    value, ref = record
    items = [
        Record(each, inside(ref, key, index))
        for key in _LISTS
        if isinstance(value.get(key), list)
        for index, each in enumerate(value[key])
    ]
    if not items:
        notes.add(EMPTY, ref)
    key = next((found for name in ("conversation_id", "id") if (found := values.name(value.get(name)))), fallback)
    yield from _conversation(key, items, ref, values.string(value.get("model")))


def _conversation(key: str, items: Sequence[Record], ref: SourceRef, model: str | None) -> Iterator[Item]:
    messages: list[Message] = []
    tools: dict[str, str] = {}
    for value, place in items:
        try:
            fields = _message(value, tools)
        except RecordError as error:
            yield Problem(what=error.what, where=str(place))
            continue
        spoken_by = model if fields["role"] == "assistant" else None
        messages.append(Message(conversation=key, position=len(messages), source_ref=place, model=spoken_by, **fields))
    if messages:
        yield Conversation(id=key, source_format="openai", messages=tuple(messages), source_ref=ref)


def _message(value: Any, tools: dict[str, str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RecordError("a message that is not an object")
    if value.get("type") in ("function_call", "function_call_output"):
        return _responses_tool(value, tools)
    role = values.role(value.get("role"))
    if role is None:
        raise RecordError("a message without a known role")
    given = value.get("tool_calls")
    listed = [*given] if isinstance(given, list) else []
    if isinstance(value.get("function_call"), dict):
        listed.append(value["function_call"])
    calls = tuple(call for each in listed if (call := values.tool_call(each)))
    tools.update({call.id: call.name for call in calls if call.id})
    text = values.text(value.get("content"))
    if text is None and not calls:
        raise RecordError("a message without text")
    fields = {"id": values.name(value.get("id")) or "", "role": role, "text": text or "", "tool_calls": calls}
    call_id = values.name(value.get("tool_call_id"))
    if role == "tool":
        fields["tool_results"] = (ToolResult(text=text or "", call_id=call_id),)
    named = values.string(value.get("name")) or (tools.get(call_id or "") if role == "tool" else None)
    return fields | {"author": named or role}


def _responses_tool(value: dict[str, Any], tools: dict[str, str]) -> dict[str, Any]:
    """Calls and outputs as items of their own, as the Responses API has them."""
    call_id = values.name(value.get("call_id"))
    if value["type"] == "function_call":
        name = values.name(value.get("name")) or "function"
        tools[call_id or ""] = name
        call = ToolCall(name=name, id=call_id, input=value.get("arguments"))
        return {"id": "", "author": "assistant", "role": "assistant", "text": "", "tool_calls": (call,)}
    result = values.tool_result(value) or ToolResult(text="")
    author = tools.get(call_id or "", "tool")
    return {"id": "", "author": author, "role": "tool", "text": result.text, "tool_results": (result,)}
