"""Logs of Inspect AI: a ``.json`` log with its samples, or an ``.eval`` archive with a file for each sample.

The shape is that of ``EvalLog`` and ``EvalSample`` (inspect.aisi.org.uk, "Log File API"). Events are not read: they
repeat the messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import JsonRecord, elements, problems_of, read_records
from undersong.formats.repeats import Repeats
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog, inside
from undersong.models import Conversation, Message, Problem, SourceRef, ToolResult

_KEYS = frozenset(
    ("id", "role", "content", "source", "model", "tool_calls", "tool_call_id", "function", "error", "metadata")
)
_SAMPLE_KEYS = frozenset(
    (
        "id",
        "epoch",
        "uuid",
        "input",
        "target",
        "choices",
        "messages",
        "output",
        "scores",
        "metadata",
        "store",
        "events",
        "model_usage",
        "error",
        "attachments",
        "started_at",
        "completed_at",
        "events_data",
        "timelines",
        "limit",
    )
)  # input and output repeat messages


def sniff(sample: FormatSample) -> bool:
    """A log with its ``eval`` and ``plan``, or samples or their summaries, with an epoch."""
    if sample.has("eval", "plan") or sample.has("eval.task", "status"):
        return True
    return sample.has("epoch", "input", "target")


def read(source: TextSource) -> Iterator[Item]:
    """One conversation for each sample and epoch."""
    return read_records(source, ("samples",), _log)


def _log(record: JsonRecord, fallback: str, notes: SkipLog) -> Iterator[Item]:
    """A sample, or the rest of a log around its samples."""
    value, ref = record
    if isinstance(value, dict) and ("eval" in value or "plan" in value):
        notes.add("header of an Inspect log, which holds no messages", ref)
        return
    if isinstance(value, dict) and "message_count" in value and "messages" not in value:
        notes.add("summary of a sample, whose messages stand in the sample", ref)
        return
    listed = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        yield Problem(what="a sample without a list of 'messages'", where=str(ref))
        return
    notes.unread(value, ref, _SAMPLE_KEYS)
    if value.get("error"):
        notes.add("sample that ended in an error, read as far as it goes", ref)
    output = value["output"] if isinstance(value.get("output"), dict) else {}
    model = values.string(output.get("model"))
    name, epoch = values.name(value.get("id")) or fallback, values.count(value.get("epoch")) or 1
    key = values.string(value.get("uuid")) or f"{name}/{epoch}"
    messages = list[Message]()
    yield from problems_of(
        elements(listed, ref, "messages"), lambda item, place: messages.append(_message(item, key, model, place, notes))
    )
    _note_others(value, output, messages, ref, notes)
    if messages:
        yield Conversation(
            id=key,
            source_format="inspect",
            messages=tuple(messages),
            title=f"{name} (epoch {epoch})",
            started_at=values.time_or_none(value.get("started_at")),
            ended_at=values.time_or_none(value.get("completed_at")),
            source_ref=ref,
        )
    else:
        notes.add(values.EMPTY, ref)


def _note_others(
    value: dict[str, Any], output: dict[str, Any], messages: list[Message], ref: SourceRef, notes: SkipLog
) -> None:
    """Note a question, an answer or an error of a tool that the messages of a sample do not have."""
    repeats, asked = Repeats(), value.get("input")
    for item in value["messages"]:
        error = item.get("error") if isinstance(item, dict) else None
        repeats.add(error.get("message") if isinstance(error, dict) else error, inside(ref, "messages"))
    for item in asked if isinstance(asked, list) else [asked]:
        repeats.add(item.get("content") if isinstance(item, dict) else item, inside(ref, "input"))
    choices = output.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        message = choice.get("message") if isinstance(choice, dict) else None
        repeats.add(message.get("content") if isinstance(message, dict) else None, inside(ref, "output"))
    repeats.note_others(messages, notes)


def _message(item: Any, key: str, model: str | None, ref: SourceRef, notes: SkipLog) -> Message:
    role = values.role(item.get("role")) if isinstance(item, dict) else None
    if role is None:
        raise RecordError("a message without a known 'role'")
    parts = values.blocks(item.get("content"))
    notes.marks(item, ref)
    notes.unread(item, ref, _KEYS)
    notes.odd(item.get("content"), ref)
    notes.blocks(parts, ref, ("text", "reasoning"))
    text = values.text(values.said_blocks(parts)) or ""
    thoughts = [str(part.get("reasoning")) for part in parts if part.get("type") == "reasoning"]
    is_model = role == "assistant"
    failed = isinstance(item.get("error"), dict)
    result = ToolResult(text=text, call_id=values.name(item.get("tool_call_id")), is_error=failed)
    author = values.string(item.get("function")) if role == "tool" else None
    return Message(
        id=values.name(item.get("id")) or "",
        conversation=key,
        position=-1,
        author=author or role,
        role=role,
        text=text,
        model=(values.string(item.get("model")) or model) if is_model else None,
        tool_calls=notes.calls(item.get("tool_calls"), _call, ref) if is_model else (),
        tool_results=(result,) if role == "tool" else (),
        thinking="\n\n".join(thoughts) if is_model else "",
        source_ref=ref,
    )


def _call(value: Any) -> Any:
    """``{"id", "function": "name", "arguments"}``: the function stands by its name alone."""
    if isinstance(value, dict) and isinstance(value.get("function"), str):
        value = {"id": value.get("id"), "name": value["function"], "arguments": value.get("arguments")}
    return values.tool_call(value)
