"""OpenAI and Anthropic chat messages: one conversation a line or element, or a bare list of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import JsonRecord, elements, records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import EMPTY, SkipLog, inside
from undersong.models import Conversation, Message, Problem, Role, SourceRef, ToolCall, ToolResult

_LISTS = ("messages", "input", "output")  # Chat Completions, Messages; Responses
# What stands alone beside the list: Messages; Responses.
_ALONE: tuple[tuple[str, Role, type | tuple[type, ...]], ...] = (
    ("system", "system", (str, list)),
    ("instructions", "system", str),
    ("input", "user", str),
)
_THOUGHT = "thinking block (not said to the user), not read"


def sniff(sample: FormatSample) -> bool:
    """Messages with ``role`` and ``content``."""
    if any(sample.has(f"{key}.role", f"{key}.content") for key in _LISTS):
        return True
    return sample.has("role", "content")


def read(source: TextSource) -> Iterator[Item]:
    """Conversations; messages that stand alone in the file are one conversation together."""
    bare: list[JsonRecord] = []
    notes = SkipLog()
    for number, record in enumerate(records(source, ("data", "conversations", "threads"))):
        if isinstance(record, Problem):
            yield record
        elif isinstance(record.value, dict) and any(isinstance(record.value.get(key), list) for key in _LISTS):
            yield from _listed(record, f"{source.stem}-{number}", notes)
        elif isinstance(record.value, list):
            yield from _conversation(f"{source.stem}-{number}", elements(*record), record.ref, None, notes)
        else:
            bare.append(record)
    if bare:
        yield from _conversation(source.stem, bare, bare[0].ref, None, notes)
    yield from notes.problems()


def _listed(record: JsonRecord, fallback: str, notes: SkipLog) -> Iterator[Item]:
    value, ref = record
    items = [
        JsonRecord({"role": role, "content": value[key]}, inside(ref, key))
        for key, role, kinds in _ALONE
        if isinstance(value.get(key), kinds) and value[key]
    ]
    for key in _LISTS:
        if isinstance(value.get(key), list):
            items += elements(value[key], ref, key)
    if not items:
        notes.add(EMPTY, ref)
    own_id = values.name(value.get("conversation_id")) or values.name(value.get("id")) or fallback
    yield from _conversation(own_id, items, ref, values.string(value.get("model")), notes)


def _conversation(
    key: str, items: Iterable[JsonRecord], ref: SourceRef, model: str | None, notes: SkipLog
) -> Iterator[Item]:
    messages: list[Message] = []
    tools: dict[str, str] = {}
    for value, place in items:
        try:
            field_sets = _messages(value, place, tools, notes)
        except RecordError as error:
            yield Problem(what=error.what, where=str(place))
            continue
        for fields in field_sets:
            by = model if fields["role"] == "assistant" else None
            messages.append(Message(conversation=key, position=len(messages), source_ref=place, model=by, **fields))
    if messages:
        yield Conversation(id=key, source_format="openai", messages=tuple(messages), source_ref=ref)


def _messages(value: Any, ref: SourceRef, tools: dict[str, str], notes: SkipLog) -> list[dict[str, Any]]:
    """The fields of the messages of an item: mostly one, none where nothing in it is said, two where tools answer in
    the user's name and the user speaks as well."""
    if not isinstance(value, dict):
        raise RecordError("a message that is not an object")
    if value.get("type") in ("function_call", "function_call_output"):
        return [_responses_tool(value, tools)]
    if value.get("type") == "reasoning" and "role" not in value:
        notes.add("reasoning item (not said to the user), not read", ref)
        return []
    role = values.role(value.get("role"))
    if role is None:
        raise RecordError("a message without a known role")
    content = _content(value, ref, notes)
    calls = _calls(value, content, tools)
    if content.text is None and not calls and not content.results:
        if content.left_out:
            return []
        raise RecordError("a message without text")
    if role in ("user", "tool") and content.results:
        return [_answer(content.results, tools), *([_fields(value, role, content, (), tools)] if content.text else [])]
    return [_fields(value, role, content, calls, tools)]


class _Content(NamedTuple):
    """What a message holds: words, calls and results of tools as blocks, how many other blocks."""

    text: str | None
    calls: list[dict[str, Any]]
    results: tuple[ToolResult, ...]
    left_out: int


def _content(value: dict[str, Any], ref: SourceRef, notes: SkipLog) -> _Content:
    """Content as a string, as OpenAI's parts or as Anthropic's blocks; a refusal is what the assistant says."""
    texts, calls, results, left_out = list[str](), list[dict[str, Any]](), list[ToolResult](), 0
    for block in values.blocks(value.get("content")):
        kind = str(block.get("type", "text"))
        words = block.get("refusal") if kind == "refusal" else block.get("text")
        if kind.endswith("tool_use"):
            calls.append(block)
        elif kind.endswith("tool_result"):
            results += [result] if (result := values.tool_result(block)) else []
        elif isinstance(words, str):
            texts.append(words)
        else:
            left_out += 1
            thought = kind in ("thinking", "redacted_thinking", "reasoning")
            notes.add(_THOUGHT if thought else "image or other block that is not text, not read", ref)
    if isinstance(value.get("refusal"), str):
        texts.append(value["refusal"])
    return _Content("\n\n".join(texts) if texts else None, calls, tuple(results), left_out)


def _calls(value: dict[str, Any], content: _Content, tools: dict[str, str]) -> tuple[ToolCall, ...]:
    tool_calls = value.get("tool_calls")
    listed = [*content.calls, *(tool_calls if isinstance(tool_calls, list) else ())]
    if isinstance(value.get("function_call"), dict):
        listed.append(value["function_call"])
    calls = tuple(call for each in listed if (call := values.tool_call(each)))
    tools.update({call.id: call.name for call in calls if call.id})
    return calls


def _fields(
    value: dict[str, Any], role: Role, content: _Content, calls: tuple[ToolCall, ...], tools: dict[str, str]
) -> dict[str, Any]:
    text = content.text or ""
    fields = {"id": values.name(value.get("id")) or "", "role": role, "text": text, "tool_calls": calls}
    call_id = values.name(value.get("tool_call_id"))
    if role == "tool":
        fields["tool_results"] = (ToolResult(text=text, call_id=call_id),)
    elif role != "user":
        fields["tool_results"] = content.results
    named = values.string(value.get("name")) or (tools.get(call_id or "") if role == "tool" else None)
    return fields | {"author": named or role}


def _answer(results: tuple[ToolResult, ...], tools: dict[str, str]) -> dict[str, Any]:
    """What tools answer in a message of the user."""
    author = tools.get(results[0].call_id or "", "tool")
    text = "\n\n".join(result.text for result in results)
    return {"id": "", "author": author, "role": "tool", "text": text, "tool_results": results}


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
