"""The stream of ``claude -p --output-format stream-json``, and the list of ``--output-format json --verbose``.

Shape: "Run Claude Code programmatically" and the Agent SDK reference (``SDKMessage``) in its documentation,
docs.claude.com/en/docs/claude-code/headless: lines of type system, assistant, user and result with a ``session_id``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.agent_log import AgentLog
from undersong.formats.json_stream import problems_of, records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog
from undersong.models import SourceRef

_KEYS = frozenset(
    ("type", "message", "session_id", "parent_tool_use_id", "uuid", "timestamp", "result", "tool_use_result", "cwd",
     "tools", "mcp_servers", "slash_commands")
)  # fmt: skip
_TYPES = frozenset({"assistant", "user", "system", "result"})


def sniff(sample: FormatSample) -> bool:
    """Lines with ``session_id`` and one of the types of the stream; those of a stored session have ``sessionId``."""
    if not sample.has("session_id", "type") or sample.has("sessionId"):
        return False
    return bool(sample.values_at("type") & _TYPES) and sample.any_of("message", "subtype")


def read(source: TextSource) -> Iterator[Item]:
    """One conversation per session, and one per subagent below it."""
    stream = _ClaudeStream(source.stem, SkipLog(source.net))
    yield from problems_of(records(source), stream.add_line)
    for log in stream.logs.values():
        conversation = log.conversation("claude-stream")
        if conversation is not None:
            yield conversation
    yield from stream.notes.problems()


class _ClaudeStream:
    """The sessions of a stream so far."""

    def __init__(self, stem: str, notes: SkipLog) -> None:
        self.stem = stem
        self.logs: dict[str, AgentLog] = {}
        self.last_words: dict[str, str] = {}  # conversation → the agent's last words
        self.notes = notes

    def add_line(self, line: Any, ref: SourceRef) -> None:
        if not isinstance(line, dict):
            raise RecordError("a line that is not an object")
        kind, session = line.get("type"), values.name(line.get("session_id")) or self.stem
        parent = values.name(line.get("parent_tool_use_id"))
        self.notes.marks(line, ref)
        self.notes.unread(line, ref, _KEYS)
        name = f"{session}/agent-{parent}" if parent else session
        log = self.logs.setdefault(name, AgentLog(name))
        if kind == "assistant":
            self._assistant(log, _message(line), line, ref)
        elif kind == "user":
            self._user(log, _message(line), line, ref)
        elif kind == "result":
            self._result(log, line, ref)
        else:
            self.notes.add(f"line of type {str(kind)[:40]!r}, read as no message", ref)

    def _assistant(self, log: AgentLog, message: Mapping[str, Any], line: Mapping[str, Any], ref: SourceRef) -> None:
        blocks = values.blocks(message.get("content"))
        self.notes.odd(message.get("content"), ref)
        self.notes.blocks(blocks, ref, ("text", "tool_use", "thinking", "redacted_thinking"))
        for block in blocks:
            log.think(block.get("thinking"))
        calls = tuple(
            call for each in blocks if each.get("type") == "tool_use" and (call := values.tool_call(each)) is not None
        )
        text = values.text(values.said_blocks(blocks)) or ""
        if not text and not calls:
            return  # a line with nothing but a thought, which belongs to the next
        self.last_words[log.id] = text or self.last_words.get(log.id, "")
        log.say(
            "assistant", text, ref, calls=calls, model=values.string(message.get("model")),
            time=self.notes.time(line.get("timestamp"), ref), message_id=values.name(line.get("uuid")),
        )  # fmt: skip

    def _user(self, log: AgentLog, message: Mapping[str, Any], line: Mapping[str, Any], ref: SourceRef) -> None:
        blocks, time = values.blocks(message.get("content")), self.notes.time(line.get("timestamp"), ref)
        self.notes.odd(message.get("content"), ref)
        self.notes.blocks(blocks, ref, ("text", "tool_result"))
        for block in blocks:
            if block.get("type") == "tool_result" and (result := values.tool_result(block)) is not None:
                log.answer(result, ref, time=time)
        text = values.text(values.said_blocks(blocks))
        if text is not None:
            role = "participant" if line.get("parent_tool_use_id") else "user"
            log.say(role, text, ref, time=time, message_id=values.name(line.get("uuid")))

    def _result(self, log: AgentLog, line: Mapping[str, Any], ref: SourceRef) -> None:
        """The last line: its text is that of the last answer, and a message of its own only where it is not."""
        text = values.string(line.get("result"))
        if text and text.strip() != self.last_words.get(log.id, "").strip():
            log.say("system" if line.get("is_error") else "assistant", text, ref)


def _message(line: Mapping[str, Any]) -> Mapping[str, Any]:
    message = line.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("content"), str | list):
        raise RecordError("a line without a 'message' with content")
    return message
