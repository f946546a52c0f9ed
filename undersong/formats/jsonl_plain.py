"""A plain line of our own JSON Lines and the message that it is, without a doubt: at the speed of the text."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from undersong.errors import RecordError
from undersong.formats import values
from undersong.formats.identity import own_author, scoped
from undersong.models import Message, Observed, Role, SourceRef

OBSERVED: dict[str, Observed] = {"yes": "yes", "no": "no", "unknown": "unknown"}
_Name = str | int | None
_Moment = str | int | float | None


class JsonlLine(msgspec.Struct, gc=False):
    """The keys of a message on a line, in the plain types only; any other line is left to the lenient reader.

    ``title``, ``timezone`` and ``messages`` are there to be noticed: they speak of a whole conversation.
    """

    id: _Name = None
    conversation: _Name = None
    conversation_id: _Name = None
    thread: _Name = None
    thread_id: _Name = None
    author: _Name = None
    agent_id: _Name = None
    agent: _Name = None
    sender: _Name = None
    name: _Name = None
    role: str | None = None
    text: str | None = None
    content: str | None = None
    time: _Moment = None
    ts: _Moment = None
    timestamp: _Moment = None
    created_at: _Moment = None
    position: int | None = None
    reply_to: _Name = None
    target: _Name = None
    model: str | None = None
    latency: float | None = None
    latency_ms: float | None = None
    tokens: int | None = None
    observed: str | None = None
    branch: _Name = None
    tool_calls: Any = None
    tool_results: Any = None
    title: Any = None
    timezone: Any = None
    messages: Any = None


_DECODER = msgspec.json.Decoder(JsonlLine)
decode, decode_lines = _DECODER.decode, _DECODER.decode_lines
NOT_PLAIN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, RecordError, ValueError)


def owner_of(line: JsonlLine, stem: str) -> tuple[str | None, datetime | None]:
    """The conversation and the time of a plain line, None for any other."""
    try:
        if line.title or line.timezone or line.messages is not None:
            return None, None
        if line.position is not None and not 0 <= line.position < values.INTEGERS:
            return None, None
        if line.observed is not None and line.observed not in OBSERVED:
            return None, None
        if line.role not in values.ROLES:
            _author(line)
        if line.text is None:
            _text(line)
        own, time = line.conversation, time_of(line)
        if not isinstance(own, str) or not own or own.isspace():
            own = _conversation(line) or stem
        return own, time
    except NOT_PLAIN:
        return None, None


def message_of(line: JsonlLine, conversation: str, ref: SourceRef, time: datetime | None) -> Message:
    """The message of a plain line, as settling would have it where that can be told from the line alone."""
    author, role, agent = _author(line)
    if agent is None:
        agent = author if role == "agent" else scoped(conversation, author)  # as settling would
    elif agent == author:
        author = own_author(conversation, author)
    position, text = line.position, line.text
    message = Message(
        id=_name(line.id) or "",
        conversation=conversation,
        position=-1 if position is None else position,
        author=author,
        role=role,
        text=_text(line) if text is None else text,
        agent=agent,
        time=time,
        source_ref=ref,
    )
    return message if _says_no_more(line) else _completed(message, line)


def _says_no_more(line: JsonlLine) -> bool:
    """Whether a line has nothing of what few lines have."""
    return (
        line.reply_to is None
        and line.target is None
        and line.branch is None
        and line.model is None
        and line.latency is None
        and line.latency_ms is None
        and line.tokens is None
        and line.observed is None
        and line.tool_calls is None
        and line.tool_results is None
    )


def _completed(message: Message, line: JsonlLine) -> Message:
    latency = None if line.latency is None else values.seconds(line.latency)
    if latency is None and line.latency_ms is not None:
        latency = values.seconds(line.latency_ms, 1e3)
    return msgspec.structs.replace(
        message,
        reply_to=_name(line.reply_to),
        target=_name(line.target),
        model=line.model or None,
        latency=latency,
        tokens=values.count(line.tokens),
        observed=OBSERVED.get(line.observed or "", "unknown"),
        branch=_name(line.branch),
        tool_calls=values.convert_list(line.tool_calls, values.tool_call),
        tool_results=values.convert_list(line.tool_results, values.tool_result),
    )


def _author(line: JsonlLine) -> tuple[str, Role, str | None]:
    """Author, role and global identity; raises RecordError where only the lenient reader knows what to do."""
    author, agent = _name(line.author), None
    if author is not None and line.role in values.ROLES and line.agent_id is None and line.agent is None:
        return author, values.ROLES[line.role], None
    if line.agent_id is not None or line.agent is not None:
        agent = _name(line.agent_id) or _name(line.agent)
    author = author or agent or _name(line.sender) or _name(line.name)
    if line.role is None:
        if author is None:
            raise RecordError("a message without an author")
        return author, values.role(author) or ("agent" if agent else "participant"), agent
    role = values.ROLES.get(line.role) or values.role(line.role)
    if role is None:
        raise RecordError("an unknown role")
    return author or role, role, agent


def _text(line: JsonlLine) -> str:
    text = line.content if line.text is None else line.text
    if text is None:
        raise RecordError("a message without text")
    return text


def time_of(line: JsonlLine) -> Any:
    """The time of a line, None where it has none; raises ValueError for one that cannot be read."""
    raw_time = line.time
    if raw_time is None:
        raw_time = line.ts if line.ts is not None else line.timestamp if line.timestamp is not None else line.created_at
    if isinstance(raw_time, str):
        return time_of_text(raw_time)
    return None if raw_time is None else values.time(raw_time)


def time_of_text(text: str) -> datetime | None:
    """The time that a text says; raises ValueError for one that cannot be read."""
    if text[4:5] == "-":
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return values.time(text)
        if moment.tzinfo and moment.year in values.YEARS:
            return moment
    return values.time(text)


def _conversation(line: JsonlLine) -> str | None:
    return _name(line.conversation) or _name(line.conversation_id) or _name(line.thread) or _name(line.thread_id)


def _name(value: _Name) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value if value and not value.isspace() else None
    return str(value)
