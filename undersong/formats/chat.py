"""Messages of chat APIs, OpenAI's and Anthropic's alike: what is said, called, answered and refused in one of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from undersong.errors import RecordError
from undersong.formats import values
from undersong.formats.values import SkipLog
from undersong.models import Role, SourceRef, ToolCall, ToolResult

_MESSAGE_KEYS = frozenset(
    ("role", "content", "refusal", "tool_calls", "function_call", "tool_call_id", "id", "name", "reasoning",
     "reasoning_content", *values.TIMES)
)  # fmt: skip
_ITEM_KEYS = frozenset(("type", "call_id", "name", "arguments", "output", "id", "status"))
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
_THOUGHT = "thinking block (not said to the user), not read"


def chat_messages(value: Any, ref: SourceRef, tools: dict[str, str], notes: SkipLog) -> list[dict[str, Any]]:
    """The fields of the messages of an item: mostly one, none where nothing in it is said, two where tools answer in
    the user's name and the user speaks as well. ``tools`` remembers the names of calls. Raises RecordError."""
    if not isinstance(value, dict):
        raise RecordError("a message that is not an object")
    if value.get("type") in ("function_call", "function_call_output"):
        notes.unread(value, ref, _ITEM_KEYS)
        return [_responses_tool(value, tools)]
    if value.get("type") == "reasoning" and "role" not in value:
        notes.add("reasoning item (not said to the user), not read", ref)
        return []
    role = values.role(value.get("role"))
    if role is None:
        raise RecordError("a message without a known role")
    notes.marks(value, ref)
    notes.unread(value, ref, _MESSAGE_KEYS)
    content = _content(value, ref, notes, thinks=role == "assistant")
    calls = _calls(value, content, tools, ref, notes)
    if content.text is None and not calls and not content.results and not content.thinking:
        if content.left_out:
            return []
        raise RecordError("a message without text")
    time = notes.first_time(value, ref)
    if role in ("user", "tool") and content.results:
        answers = [_answer(content.results, tools)]
        fields = [*answers, *([_fields(value, role, content, (), tools)] if content.text else [])]
    else:
        fields = [_fields(value, role, content, calls, tools)]
    return [each | {"time": time} for each in fields] if time else fields


class _Content(NamedTuple):
    """What a message holds: words, calls and results of tools as blocks, how many other blocks, and thinking."""

    text: str | None
    calls: list[dict[str, Any]]
    results: tuple[ToolResult, ...]
    left_out: int
    thinking: str = ""


def _content(value: dict[str, Any], ref: SourceRef, notes: SkipLog, *, thinks: bool) -> _Content:
    """Content as a string, as OpenAI's parts or as Anthropic's blocks; a refusal is what the assistant says."""
    texts, calls, results, left_out = list[str](), list[dict[str, Any]](), list[ToolResult](), 0
    thoughts = [words for key in ("reasoning", "reasoning_content") if (words := values.string(value.get(key)))]
    if isinstance(value.get("content"), list):
        notes.odd(value["content"], ref)
    for block in values.blocks(value.get("content")):
        notes.misplaced(block, ref)
        kind = str(block.get("type", "text"))
        words = block.get("refusal") if kind == "refusal" else block.get("text")
        if kind.endswith("tool_use"):
            calls.append(block)
        elif kind.endswith("tool_result"):
            results += [result] if (result := values.tool_result(block)) else []
            notes.blocks(block.get("content"), ref)
        elif thinks and kind in _THOUGHTS and (thought := _thought(block)):
            thoughts.append(thought)
        elif isinstance(words, str):
            texts.append(words)
        else:
            left_out += 1
            notes.add(_THOUGHT if kind in _THOUGHTS else values.block_name(block), ref, part=block)
    if isinstance(value.get("refusal"), str):
        texts.append(value["refusal"])
    if thoughts and not thinks:
        notes.add(_THOUGHT, ref)
        thoughts = []
    thinking = "\n\n".join(dict.fromkeys(thoughts))
    return _Content("\n\n".join(texts) if texts else None, calls, tuple(results), left_out, thinking)


def _thought(block: dict[str, Any]) -> str:
    """The words of a block of thinking; "" where the provider keeps them to itself."""
    return next((words for key in ("thinking", "reasoning", "text") if (words := values.string(block.get(key)))), "")


def _calls(
    value: dict[str, Any], content: _Content, tools: dict[str, str], ref: SourceRef, notes: SkipLog
) -> tuple[ToolCall, ...]:
    tool_calls = value.get("tool_calls")
    listed = [*content.calls, *(tool_calls if isinstance(tool_calls, list) else ())]
    for call in listed:
        notes.misplaced(call, ref)
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
        fields |= {"tool_results": content.results, "thinking": content.thinking}
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
