"""Claude Code sessions: JSON Lines in which one answer takes several lines and tools answer in the user's name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import problems_of, records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog
from undersong.models import Conversation, Message, Role, SourceRef

CLIENT = "claude-code"  # the author of what the program itself writes
_WRAPPERS = (
    "<command-",
    "<local-command-",
    "<bash-",
    "<system-reminder>",
    "<task-notification>",
    "[SYSTEM NOTIFICATION",
    "Caveat: The messages below were generated",
)
_KEYS = frozenset(
    (
        "type",
        "message",
        "content",
        "timestamp",
        "uuid",
        "parentUuid",
        "sessionId",
        "cwd",
        "version",
        "gitBranch",
        "toolUseResult",
        "slug",
        "agentId",
        "isSidechain",
        "subtype",
    )
)  # toolUseResult repeats what a block of the message says
_SUMMARY_KEYS = frozenset(("type", "summary", "leafUuid"))
_MESSAGE_KEYS = frozenset(("id", "type", "role", "model", "content", "usage", "stop_reason", "stop_sequence"))
_BLOCKS = ("text", "tool_use", "thinking", "redacted_thinking")
_ATTACHMENT_KEYS = frozenset(("type", "prompt", "commandMode", "origin", "timestamp", "source_uuid", "imagePasteIds"))
_TYPES = frozenset({"user", "assistant", "system"})
_QUEUE = "queue-operation"  # what is typed while the agent works: enqueue, dequeue, remove, popAll
_BOOKKEEPING = frozenset({"file-history-snapshot", _QUEUE})  # copies of files, and when words were queued
_QUEUE_KEYS = frozenset(("type", "operation", "content", "timestamp", "sessionId", "reason"))


def sniff(sample: FormatSample) -> bool:
    """Lines with ``sessionId`` and ``uuid``, or the program's own bookkeeping."""
    if sample.has("sessionId") and sample.any_of("uuid", "parentUuid"):
        return True
    return sample.any_of("leafUuid") or bool(sample.values_at("type") & _BOOKKEEPING)


def read(source: TextSource) -> Iterator[Item]:
    """One conversation per session, and one per subagent."""
    notes, sessions = SkipLog(source.net), _Sessions(source.stem)
    yield from problems_of(records(source), lambda line, ref: _line(line, ref, sessions, notes))
    sessions.note_unsent(notes)
    yield from sessions.conversations()
    if untitled := len(sessions.summaries) - len(sessions.titles()):
        notes.add(
            "title of a conversation that is not here, or an earlier title, not read",
            SourceRef(file=source.name),
            untitled,
        )
    yield from notes.problems()


class _Sessions:
    """The messages of each conversation of a file, so far."""

    def __init__(self, stem: str) -> None:
        self.stem = stem
        self.messages: dict[str, list[Message]] = {}
        self.summaries: dict[str, str] = {}  # uuid of the last line → what the program calls the conversation
        self.places: dict[str, tuple[str, int]] = {}  # uuid → conversation and index of its message
        self.answers: dict[tuple[str, str], int] = {}  # (conversation, message.id) → index
        self.tools: dict[str, str] = {}  # id of a call → name of the tool
        self.roots: dict[str, str] = {}  # uuid of a line without agentId in a sidechain → its conversation
        self.queued: dict[str, SourceRef] = {}  # words that waited for the agent → where they first stand

    def conversation_of(self, line: Mapping[str, Any]) -> str:
        """The session, or the subagent's own conversation below it."""
        session = values.name(line.get("sessionId")) or self.stem
        if not line.get("isSidechain"):
            return session
        agent = values.name(line.get("agentId"))
        if agent:
            return f"{session}/agent-{agent}"
        uuid = values.string(line.get("uuid")) or ""
        parent = values.string(line.get("parentUuid")) or ""
        conversation = self.roots.get(parent) or f"{session}/sidechain-{uuid}"
        self.roots[uuid] = conversation
        return conversation

    def add(self, uuid: str, message: Message) -> None:
        """Append a message; ``uuid`` is the line that later ones reply to."""
        messages = self.messages.setdefault(message.conversation, [])
        self.places[uuid] = (message.conversation, len(messages))
        messages.append(msgspec.structs.replace(message, position=len(messages)))

    def parent(self, line: Mapping[str, Any], conversation: str) -> Message | None:
        """The message that a line answers, where it is in the same conversation."""
        place = self.places.get(values.string(line.get("parentUuid")) or "")
        return self.messages[place[0]][place[1]] if place and place[0] == conversation else None

    def titles(self) -> dict[str, str]:
        """What the program calls each conversation, as far as its messages are here."""
        return {self.places[leaf][0]: title for leaf, title in self.summaries.items() if leaf in self.places}

    def note_unsent(self, notes: SkipLog) -> None:
        """Note queued words that no message repeats: taken back, or not yet sent when the file ended.

        Queued words that are sent together are one message of several lines, so lines are compared.
        """
        if self.queued:
            messages = (message for listed in self.messages.values() for message in listed)
            sent = {line for message in messages if message.role != "assistant" for line in _lines(message.text)}
            for text, ref in self.queued.items():
                if not sent.issuperset(_lines(text)):
                    notes.add("words that waited in the queue and that no message repeats, not read", ref)

    def conversations(self) -> Iterator[Conversation]:
        titles = self.titles()
        for key, messages in self.messages.items():
            yield Conversation(
                id=key,
                source_format="claude-code",
                messages=tuple(messages),
                title=titles.get(key),
                source_ref=messages[0].source_ref,
            )


def _line(line: Any, ref: SourceRef, sessions: _Sessions, notes: SkipLog) -> None:
    if not isinstance(line, dict):
        raise RecordError("a line that is not an object")
    kind = line.get("type")
    if kind == "summary" and isinstance(line.get("summary"), str):
        notes.unread(line, ref, _SUMMARY_KEYS)
        sessions.summaries[values.string(line.get("leafUuid")) or ""] = line["summary"]
        return
    if isinstance(kind, str) and kind in _BOOKKEEPING and "message" not in line:
        if kind == _QUEUE:
            _queued(line, ref, sessions, notes)
        return
    if (queued := line.get("attachment")) and kind == "attachment" and _is_queued_words(queued):
        line, kind = _as_user(line, queued), "user"
    if not isinstance(kind, str) or kind not in _TYPES:
        notes.add(f"line of type {str(kind)[:40]!r}, read as no message", ref)
        return
    notes.marks(line, ref)
    notes.unread(line, ref, _KEYS)
    if isinstance(line.get("message"), dict):
        notes.unread(line["message"], ref, _MESSAGE_KEYS)
        notes.odd(line["message"].get("content"), ref)
    conversation = sessions.conversation_of(line)
    fields = {
        "conversation": conversation,
        "position": -1,
        "time": notes.time(line.get("timestamp"), ref),
        "source_ref": ref,
        "reply_to": getattr(sessions.parent(line, conversation), "id", None),
    }
    if kind == "system":
        _system(line, fields, sessions, notes)
    elif kind == "user":
        _user(line, fields, sessions, notes)
    else:
        _assistant(line, fields, sessions, notes)


def _queued(line: Mapping[str, Any], ref: SourceRef, sessions: _Sessions, notes: SkipLog) -> None:
    """Words that wait until the agent has time; most of them follow as a message."""
    notes.unread(line, ref, _QUEUE_KEYS)
    blocks = values.blocks(line.get("content"))
    notes.odd(line.get("content"), ref)
    notes.blocks(blocks, ref)
    text = values.text(values.said_blocks(blocks))
    if text and text.strip():
        sessions.queued.setdefault(text, ref)


def _is_queued_words(attachment: Any) -> bool:
    """Whether a line attaches words that the agent took from the queue within its turn; no other line has them."""
    return (
        isinstance(attachment, dict)
        and attachment.get("type") == "queued_command"
        and isinstance(attachment.get("prompt"), str | list)
    )


def _as_user(line: Mapping[str, Any], attachment: Mapping[str, Any]) -> dict[str, Any]:
    """The line in the form of a user's; what the program queued for itself is marked as its own."""
    origin = attachment.get("origin")
    is_own = isinstance(origin, dict) and origin.get("kind") not in (None, "human")
    rest = {key: value for key, value in attachment.items() if key not in _ATTACHMENT_KEYS}
    marks = {"isMeta": True} if is_own or attachment.get("commandMode") not in (None, "prompt") else {}
    plain = {key: value for key, value in line.items() if key != "attachment"}
    return plain | {"message": rest | {"content": attachment["prompt"]}} | marks


def _lines(text: str) -> set[str]:
    return {stripped for line in text.splitlines() if (stripped := line.strip())}


def _system(line: Mapping[str, Any], fields: dict[str, Any], sessions: _Sessions, notes: SkipLog) -> None:
    text = values.string(line.get("content"))
    if text is None:
        notes.add("line of type 'system' without text, read as no message", fields["source_ref"])
        return
    uuid = values.string(line.get("uuid")) or ""
    sessions.add(uuid, Message(id=uuid, author=CLIENT, role="system", text=text, **fields))


def _user(line: Mapping[str, Any], fields: dict[str, Any], sessions: _Sessions, notes: SkipLog) -> None:
    """The human's words, or what tools and the program itself say under the same type."""
    blocks = values.blocks(_content(line))
    uuid = values.string(line.get("uuid")) or ""
    results = [each for each in blocks if each.get("type") == "tool_result"]
    if results:
        tool_results = tuple(result for each in results if (result := values.tool_result(each)))
        author = sessions.tools.get(tool_results[0].call_id or "", "tool") if tool_results else "tool"
        text = "\n\n".join(result.text for result in tool_results)
        sessions.add(uuid, Message(id=uuid, author=author, role="tool", text=text, tool_results=tool_results, **fields))
    text_blocks = values.said_blocks(blocks)
    notes.blocks(blocks, fields["source_ref"], ("text", "tool_result"))
    user_text = values.text(text_blocks)
    if user_text is not None:
        author, role = _speaker(line, user_text)
        uuid = f"{uuid}#text" if results else uuid
        sessions.add(uuid, Message(id=uuid, author=author, role=role, text=user_text, **fields))


def _speaker(line: Mapping[str, Any], text: str) -> tuple[str, Role]:
    """Who speaks in a line of type ``user``: the program, the agent that runs a subagent, or the human."""
    if line.get("isMeta") or line.get("isCompactSummary") or text.lstrip().startswith(_WRAPPERS):
        return CLIENT, "system"
    return ("main-agent", "participant") if line.get("isSidechain") else ("user", "user")


def _assistant(line: Mapping[str, Any], fields: dict[str, Any], sessions: _Sessions, notes: SkipLog) -> None:
    blocks = values.blocks(_content(line))
    message: Mapping[str, Any] = line["message"]
    uuid = values.string(line.get("uuid")) or ""
    calls = tuple(call for each in blocks if each.get("type") == "tool_use" and (call := values.tool_call(each)))
    sessions.tools.update({call.id: call.name for call in calls if call.id})
    thoughts = [each.get("thinking") for each in blocks if each.get("type") in ("thinking", "redacted_thinking")]
    thinking = [thought for thought in thoughts if isinstance(thought, str) and thought.strip()]
    if len(thoughts) > len(thinking):
        notes.add("thinking block without its text, not read", fields["source_ref"], len(thoughts) - len(thinking))
    notes.blocks(blocks, fields["source_ref"], _BLOCKS)
    text = values.text(values.said_blocks(blocks))
    if message.get("model") == "<synthetic>":
        sessions.add(uuid, Message(id=uuid, author=CLIENT, role="system", text=text or "", **fields))
        return
    usage = message["usage"] if isinstance(message.get("usage"), dict) else {}
    answer = Message(
        id=uuid,
        author=values.name(line.get("agentId")) or "assistant",
        role="assistant",
        text=text or "",
        model=values.string(message.get("model")),
        tokens=values.count(usage.get("output_tokens")),
        latency=_latency(sessions.parent(line, fields["conversation"]), fields["time"]),
        tool_calls=calls,
        thinking="\n\n".join(thinking),
        **fields,
    )
    key = (answer.conversation, values.name(message.get("id")) or uuid)
    if key in sessions.answers:
        index = sessions.answers[key]
        sessions.places[uuid] = (answer.conversation, index)
        messages = sessions.messages[answer.conversation]
        messages[index] = _merged(messages[index], answer)
    else:
        sessions.answers[key] = len(sessions.messages.get(answer.conversation, ()))
        sessions.add(uuid, answer)


def _merged(first: Message, more: Message) -> Message:
    """One answer from two of its lines: texts and calls joined, usage counted once."""
    tokens = [each.tokens for each in (first, more) if each.tokens is not None]
    return msgspec.structs.replace(
        first,
        text="\n\n".join(text for text in (first.text, more.text) if text),
        tool_calls=first.tool_calls + more.tool_calls,
        thinking="\n\n".join(text for text in (first.thinking, more.thinking) if text),
        tokens=max(tokens, default=None),
    )


def _latency(parent: Message | None, time: datetime | None) -> float | None:
    """Seconds since the words or the tool result that the answer follows."""
    if parent is None or parent.time is None or time is None or parent.role == "assistant":
        return None
    return values.seconds((time - parent.time).total_seconds())


def _content(line: Mapping[str, Any]) -> Any:
    message = line.get("message")
    if not isinstance(message, dict):
        raise RecordError("a line without a 'message' object")
    content = message.get("content")
    if not isinstance(content, str | list):
        raise RecordError("a message without content")
    return content
