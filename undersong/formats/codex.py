"""Codex CLI rollouts, old and new, and the event stream of ``codex exec --json``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import problems_of, records
from undersong.formats.repeats import Repeats
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog
from undersong.models import Conversation, Message, SourceRef, ToolCall, ToolResult

_ENVELOPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_CLIENT_TEXT = ("<environment_context>", "<user_instructions>", "# AGENTS.md", "<permissions instructions>")
_KEYS = frozenset(("type", "role", "content", "id", "phase"))
_META_KEYS = frozenset(
    ("id", "timestamp", "cwd", "originator", "cli_version", "source", "git", "model", "sandbox_policy")
)
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


def sniff(sample: FormatSample) -> bool:
    """Envelopes with a payload, a stream of ``thread.started`` and items, or the bare items of old files."""
    types = sample.values_at("type")
    if sample.has("payload") and types & _ENVELOPES:
        return True
    if "thread.started" in types or (sample.has("item.type") and "item.completed" in types):
        return True
    return sample.has("instructions", "timestamp", "id") and not sample.has("uuid")


def read(source: TextSource) -> Iterator[Item]:
    """One conversation per file."""
    rollout = _Rollout(source.stem, SkipLog(source.net))
    yield from problems_of(records(source), rollout.add_line)
    messages = rollout.finished()
    if messages:
        yield Conversation(
            id=rollout.id,
            source_format="codex",
            messages=messages,
            started_at=values.time_or_none(rollout.started),
            source_ref=messages[0].source_ref,
        )
    yield from rollout.notes.problems()


class _Rollout:
    """What was read of one session so far; the same text in event_msg is not read, else every turn counts twice."""

    def __init__(self, stem: str, notes: SkipLog) -> None:
        self.id, self.named = stem, False
        self.model: str | None = None
        self.started: Any = None
        self.messages: list[dict[str, Any]] = []
        self.tools: dict[str, str] = {}
        self.thoughts: list[str] = []  # of the message that comes next
        self.repeats = Repeats()
        self.notes = notes

    def finished(self) -> tuple[Message, ...]:
        """All messages; thoughts that no message follows are one without words."""
        if self.thoughts and self.messages:
            self._add("assistant", "assistant", "", None, self.messages[-1]["source_ref"], model=self.model)
        messages = tuple(
            Message(conversation=self.id, position=position, **fields) for position, fields in enumerate(self.messages)
        )
        self.repeats.note_others(messages, self.notes)
        return messages

    def add_line(self, line: Any, ref: SourceRef) -> None:
        if not isinstance(line, dict):
            raise RecordError("a line that is not an object")
        kind = line.get("type")
        if isinstance(kind, str) and kind in _ENVELOPES:
            payload = line.get("payload")
            if not isinstance(payload, dict):
                raise RecordError("a line without a 'payload' object")
            self._envelope(kind, payload, line.get("timestamp"), ref)
        elif kind == "thread.started":
            self._set_id(line.get("thread_id"))
        elif isinstance(kind, str) and kind.startswith("item."):
            self._stream_item(kind, line.get("item"), ref)
        elif kind is None and "id" in line:
            self._set_id(line.get("id"))
            self.started = self.started or line.get("timestamp")
        else:
            self._item(line, line.get("timestamp"), ref)

    def _envelope(self, kind: str, payload: Mapping[str, Any], time: Any, ref: SourceRef) -> None:
        if kind in ("session_meta", "turn_context"):
            self.notes.unread(payload, ref, _META_KEYS)
        if kind == "session_meta":
            self._set_id(payload.get("id"))
            self.started = self.started or payload.get("timestamp") or time
        elif kind == "turn_context":
            self.model = values.string(payload.get("model")) or self.model
        elif kind == "response_item":
            self._item(payload, time, ref)
        elif kind == "event_msg":
            self.repeats.add(payload.get("message", payload.get("text")), ref)
        elif kind == "compacted":
            self.notes.add("compaction of the history, read as no message", ref)

    def _set_id(self, value: Any) -> None:
        session_id = values.name(value)
        if session_id and not self.named:
            self.id, self.named = session_id, True

    def _item(self, item: Mapping[str, Any], time: Any, ref: SourceRef) -> None:
        kind = str(item.get("type"))[:40]
        if kind == "message":
            self._add_message(item, time, ref)
        elif kind in _CALLS:
            call = values.tool_call(item) or ToolCall(name=kind, input=item.get("action"))
            call = ToolCall(name=call.name, id=values.name(item.get("call_id")) or call.id, input=call.input)
            self.tools[call.id or ""] = call.name
            self._add("assistant", "assistant", "", time, ref, model=self.model, tool_calls=(call,))
        elif kind in _OUTPUTS:
            result = values.tool_result(item) or ToolResult(text="")
            author = self.tools.get(result.call_id or "", "tool")
            self._add(author, "tool", result.text, time, ref, tool_results=(result,))
        elif kind == "reasoning":
            self._think(values.text(item.get("summary")) or values.text(item.get("content")), ref)
        else:
            self.notes.add(f"item of type {kind!r}, read as no message", ref)

    def _think(self, thought: str | None, ref: SourceRef) -> None:
        if thought and thought.strip():
            self.thoughts.append(thought)
        else:
            self.notes.add("reasoning without its text, not read", ref)

    def _add_message(self, item: Mapping[str, Any], time: Any, ref: SourceRef) -> None:
        role, text = values.role(item.get("role")), values.text(item.get("content"))
        self.notes.marks(item, ref)
        self.notes.unread(item, ref, _KEYS)
        self.notes.blocks(item.get("content"), ref)
        if role is None or text is None:
            raise RecordError("a message without a known role" if role is None else "a message without text")
        if role == "user" and text.lstrip().startswith(_CLIENT_TEXT):
            self.notes.add("text that the program wrote in the user's name, not read", ref)
            return
        model = self.model if role == "assistant" else None
        self._add(role, role, text, time, ref, model=model, id=values.name(item.get("id")) or "")

    def _stream_item(self, kind: str, item: Any, ref: SourceRef) -> None:
        """Items of the event stream; it has the agent's side only."""
        if kind != "item.completed":
            return
        if not isinstance(item, dict):
            raise RecordError("an item that is not an object")
        text = item.get("text")
        if item.get("type") == "agent_message" and isinstance(text, str):
            self._add("assistant", "assistant", text, None, ref)
        elif item.get("type") == "command_execution":
            self._command(item, ref)
        elif item.get("type") == "reasoning":
            self._think(values.string(text), ref)
        else:
            self.notes.add(f"item of type {str(item.get('type'))[:40]!r}, read as no message", ref)

    def _command(self, item: Mapping[str, Any], ref: SourceRef) -> None:
        key, code = values.name(item.get("id")), item.get("exit_code")
        call = ToolCall(name="shell", id=key, input=item.get("command"))
        output = values.text(item.get("aggregated_output")) or ""
        failed = code != 0 if isinstance(code, int) else None
        self._add("assistant", "assistant", "", None, ref, tool_calls=(call,))
        self._add("shell", "tool", output, None, ref,
                  tool_results=(ToolResult(text=output, call_id=key, is_error=failed),))  # fmt: skip

    def _add(self, author: str, role: str, text: str, time: Any, ref: SourceRef, **more: Any) -> None:
        moment = self.notes.time(time, ref)
        if role == "assistant" and self.thoughts:
            more["thinking"] = "\n\n".join(self.thoughts)
            self.thoughts = []
        fields = {"id": "", "author": author, "role": role, "text": text, "time": moment, "source_ref": ref}
        self.messages.append(fields | more)
