"""Cursor: chats exported as Markdown, and the stream of ``cursor-agent -p --output-format stream-json``.

Shapes: an export begins with a title and ``_Exported on DATE from Cursor (VERSION)_``, its messages with ``**User**``
and ``**Cursor**`` between rules, and holds no calls. The stream is that of "Output format" in
docs.cursor.com/cli/reference: lines of type system, user, assistant, tool_call (started, completed) and result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.agent_log import AgentLog, as_object
from undersong.formats.json_stream import problems_of, records
from undersong.formats.repeats import Repeats
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.text import whole_text
from undersong.formats.values import SkipLog
from undersong.models import SourceRef, ToolCall, ToolResult

_EXPORTED = re.compile(r"_Exported on [^\n]{1,120} from Cursor \([^)\n]{1,40}\)_")
_SUFFIX = "ToolCall"
_READ = ("user", "assistant", "thinking", "tool_call")  # a tuple: a type may be anything
_KEYS = frozenset(
    ("type", "subtype", "session_id", "call_id", "model_call_id", "message", "tool_call", "text", "timestamp_ms")
)
_STREAMS = ("stdout", "stderr", "output", "content")
_RESULT_KEYS = frozenset((*_STREAMS, "exitCode", "command", "path", "workingDirectory", "interleavedOutput"))
_CALL_KEYS = frozenset(("name", "args", "arguments", "result"))


def sniff(sample: FormatSample) -> bool:
    """The line that an export is signed with, or a stream with calls of Cursor's tools."""
    if sample.is_json:
        return sample.has("tool_call", "call_id", "session_id") and "tool_call" in sample.values_at("type")
    return any(_EXPORTED.fullmatch(line.strip()) for line in sample.text.splitlines()[:6])


def read(source: TextSource) -> Iterator[Item]:
    """One conversation per export, or per session of a stream."""
    if FormatSample(source).is_json:
        stream = _CursorStream(source.stem, SkipLog(source.net))
        yield from problems_of(records(source), stream.add_line)
        logs, notes, title = list(stream.logs.values()), stream.notes, None
        for log in logs:
            stream.flush(log)
        stream.results.note_others((message for log in logs for message in log.messages), notes)
    else:
        notes = SkipLog()
        log, title = _exported(source, notes)
        logs = [log]
        if not log.messages:
            raise source.error("has no message such as '**User**'", "export the chat from Cursor again")
    for log in logs:
        conversation = log.conversation("cursor", title)
        if conversation is not None:
            yield conversation
    yield from notes.problems()


def _exported(source: TextSource, notes: SkipLog) -> tuple[AgentLog, str | None]:
    """The messages of an export and its title; a name counts only below a rule, which is how an export writes it."""
    log, title = AgentLog(source.stem), None
    lines = whole_text(source).split("\n")
    heads = [
        number
        for number, line in enumerate(lines)
        if line.strip() in ("**User**", "**Cursor**") and _below_a_rule(lines, number)
    ]
    if lines and lines[0].startswith("# "):
        title = lines[0][2:].strip() or None
    others = (line.strip("- ") for line in lines[1 : heads[0] if heads else 1])
    before = sum(bool(line) and not _EXPORTED.fullmatch(line) for line in others)
    if before:
        notes.add("line of text before the first message, not read", SourceRef(file=source.name, line=1), before)
    for start, end in zip(heads, [*heads[1:], len(lines)], strict=False):
        text = "\n".join(lines[start + 1 : end]).strip()
        text = text.removesuffix("---").rstrip() if end < len(lines) else text
        role = "user" if lines[start].strip() == "**User**" else "assistant"
        log.say(role, text, SourceRef(file=source.name, line=start + 1))
    return log, title


def _below_a_rule(lines: list[str], number: int) -> bool:
    above = next((line for line in reversed(lines[max(0, number - 3) : number]) if line.strip()), "")
    return above.strip() == "---"


class _CursorStream:
    """The sessions of a stream so far; the words of one answer may come in pieces."""

    def __init__(self, stem: str, notes: SkipLog) -> None:
        self.stem = stem
        self.logs: dict[str, AgentLog] = {}
        self.pieces: dict[str, list[tuple[str, SourceRef]]] = {}
        self.results = Repeats()  # what the last line of a session repeats
        self.notes = notes

    def add_line(self, line: Any, ref: SourceRef) -> None:
        if not isinstance(line, dict):
            raise RecordError("a line that is not an object")
        session, kind = values.name(line.get("session_id")) or self.stem, line.get("type")
        if kind in _READ:
            self.notes.unread(line, ref, _KEYS)
        log = self.logs.setdefault(session, AgentLog(session))
        if kind in ("user", "assistant"):
            message = line.get("message")
            text = values.text(message.get("content")) if isinstance(message, dict) else None
            self.notes.marks(line, ref)
            self.notes.blocks(as_object(message).get("content"), ref)
            if text is None:
                raise RecordError("a message without text")
            if kind == "assistant":
                self.pieces.setdefault(session, []).append((text, ref))
            else:
                self.flush(log)
                log.say("user", text, ref)
        elif kind == "thinking":
            log.think(line.get("text"))
        elif kind == "tool_call":
            self._call(log, line, ref)
        else:
            self.results.add(line.get("result"), ref)
            self.notes.add(f"line of type {str(kind)[:40]!r}, read as no message", ref)

    def flush(self, log: AgentLog, calls: tuple[ToolCall, ...] = (), ref: SourceRef | None = None) -> None:
        """Say what the agent has written so far, with the calls that come with it."""
        pieces = self.pieces.pop(log.id, [])
        place = pieces[0][1] if pieces else ref
        if place is not None and (pieces or calls):
            log.say("assistant", "".join(text for text, _ in pieces), place, calls=calls)

    def _call(self, log: AgentLog, line: Mapping[str, Any], ref: SourceRef) -> None:
        wrapper = line.get("tool_call")
        key = next(iter(wrapper), "") if isinstance(wrapper, dict) else ""
        inner = wrapper[key] if isinstance(wrapper, dict) and isinstance(wrapper.get(key), dict) else None
        if inner is None:
            raise RecordError("a call without its tool")
        self.notes.unread(inner, ref, _CALL_KEYS)
        self.notes.no_object(inner, ref, "result")
        call_id = values.name(line.get("call_id"))
        if line.get("subtype") != "completed" and "result" not in inner:
            name = values.name(inner.get("name")) if key == "function" else key.removesuffix(_SUFFIX)
            arguments = inner.get("args", inner.get("arguments"))
            self.flush(log, (ToolCall(name=name or "tool", id=call_id, input=arguments),), ref)
            return
        outcome = as_object(inner.get("result"))
        state = next(iter(outcome), "")
        value = outcome.get(state)
        code = value.get("exitCode") if isinstance(value, dict) else None
        if isinstance(value, dict) and any(value.get(key) is not None for key in _STREAMS):
            self.notes.unread(value, ref, _RESULT_KEYS)
        failed = code != 0 if isinstance(code, int) and not isinstance(code, bool) else (state != "success") or None
        log.answer(ToolResult(text=_output(value), call_id=call_id, is_error=failed if state else None), ref)


def _output(value: Any) -> str:
    """What a tool printed: its output or its content, else the object as it is."""
    if isinstance(value, dict):
        streams = [values.printed(value[key]) for key in _STREAMS if value.get(key) is not None]
        if streams:
            return "\n".join(text for text in streams if text)
    return values.printed(value)
