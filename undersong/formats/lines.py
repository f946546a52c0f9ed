"""Plain lines of our own JSON Lines, found first and decoded when they are needed: the speed of the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import count
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.errors import RecordError
from undersong.formats import values
from undersong.formats.scope import own_author, scoped
from undersong.formats.splitter import DEPTH
from undersong.models import Conversation, Message, Observed, Role, SourceRef
from undersong.waiting import Place

LINE_FEED = 0x0A
BRACKET, BRACKETS = ord("["), ord("[") & ord("{")  # they differ in one bit
BLANK = ""  # stands for the conversation of an empty line; no conversation has no name
PART = 1000  # messages of one conversation that are handed on together
OBSERVED: dict[str, Observed] = {"yes": "yes", "no": "no", "unknown": "unknown"}
_Name = str | int | None
_Moment = str | int | float | None


class Line(msgspec.Struct, gc=False):
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


class RawRun(NamedTuple):
    """Whole lines of one file, all plain and all of one conversation; ``line`` is the number of the first.

    ``data`` are the bytes themselves, or where they wait.
    """

    conversation: str
    source: str
    line: int
    messages: int
    data: bytes | Place


class Stretch(NamedTuple):
    """Lines ``start:end`` (bytes of a block) that belong together; ``conversation`` None: a line that is not plain."""

    conversation: str | None
    start: int
    end: int
    line: int
    messages: int


_DECODER = msgspec.json.Decoder(Line)
_decode, _decode_lines = _DECODER.decode, _DECODER.decode_lines
_NOT_PLAIN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, RecordError, ValueError)


def stretches(block: bytes, stem: str) -> list[Stretch]:
    """Cut a block of whole lines into runs of plain lines of one conversation, and single lines that are not plain.

    Lines count from 0. Plain lines are those that ``messages`` reads without a problem, a note or a doubt; ``stem``
    names the conversation of a line that names none. Empty lines belong to the run around them, or to nobody.
    """
    owners = _owners(block, stem)
    found: list[Stretch] = []
    key, start, first, size, at = "", 0, 0, 0, 0
    for number, (own, end) in enumerate(owners):
        if own is not BLANK:
            if size and (own != key or size >= PART):
                found.append(Stretch(key, start, at, first, size))
                size = 0
            if own is None:
                found.append(Stretch(None, at, end - 1, number, 1))
            elif size:
                size += 1
            else:
                key, start, first, size = own, at, number, 1
        at = end
    if size:
        found.append(Stretch(key, start, min(at, len(block)), first, size))
    return found


def messages(run: RawRun, data: bytes) -> list[Message]:
    """The messages of a run of plain lines, from its bytes."""
    file, name = run.source, run.conversation
    return [_message(line, name, SourceRef(file=file, line=number)) for number, line in _numbered(run, data)]


def _numbered(run: RawRun, data: bytes) -> Iterable[tuple[int, Line]]:
    if data.count(b"\n") == run.messages - (not data.endswith(b"\n")):  # no empty lines between
        return zip(count(run.line), _decode_lines(data), strict=False)
    lines = enumerate(data.split(b"\n"), run.line)
    return ((number, _decode(line)) for number, line in lines if line and not line.isspace())


def part(run: RawRun, data: bytes) -> Conversation:
    """The run as a part of its conversation, from its bytes."""
    found = messages(run, data)
    return Conversation(
        id=run.conversation, source_format="jsonl", messages=tuple(found), source_ref=found[0].source_ref
    )


def _is_utf8(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _brackets(data: bytes) -> npt.NDArray[np.bool_]:
    """Which bytes are opening brackets."""
    found: npt.NDArray[np.bool_] = (np.frombuffer(data, dtype=np.uint8) & BRACKETS) == BRACKET
    return found


def _is_shallow(line: bytes) -> bool:
    return int(np.count_nonzero(_brackets(line))) <= DEPTH


def _all_shallow(block: bytes, ends: list[int]) -> bool:
    """Whether no line, given where each ends, has more brackets than levels are allowed."""
    brackets = np.flatnonzero(_brackets(block))
    return len(brackets) <= DEPTH or int(np.diff(np.searchsorted(brackets, ends), prepend=0).max()) <= DEPTH


def _owners(block: bytes, stem: str) -> Iterable[tuple[str | None, int]]:
    """For each line its conversation, BLANK for an empty one and None for one that is not plain, and where it ends."""
    if not _is_utf8(block):
        return [(None if line.strip() else BLANK, end) for line, end in _with_ends(block)]
    ends = (np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == LINE_FEED) + 1).tolist()
    if not block.endswith(b"\n"):
        ends.append(len(block) + 1)
    if _all_shallow(block, ends):
        try:
            lines = _decode_lines(block)
        except _NOT_PLAIN:
            lines = []
        if len(lines) == len(ends):  # none is empty
            return [(_owner(line, stem), end) for line, end in zip(lines, ends, strict=True)]
    return [(_owner_of(line, stem), end) for line, end in _with_ends(block)]


def _with_ends(block: bytes) -> Iterator[tuple[bytes, int]]:
    end = 0
    for line in block.split(b"\n"):
        end += len(line) + 1
        yield line, end


def _owner_of(data: bytes, stem: str) -> str | None:
    if not data or data.isspace():
        return BLANK
    try:
        return _owner(_decode(data), stem) if _is_shallow(data) else None
    except _NOT_PLAIN:
        return None


def _owner(line: Line, stem: str) -> str | None:
    """The conversation of a plain line, None for any other."""
    try:
        if line.title or line.timezone or line.messages is not None:
            return None
        if line.role not in values.ROLES:
            _author(line)
        if line.text is None:
            _text(line)
        _time(line)
        own = line.conversation
        return own if isinstance(own, str) and own and not own.isspace() else _conversation(line) or stem
    except _NOT_PLAIN:
        return None


def _message(line: Line, conversation: str, ref: SourceRef) -> Message:
    author, role, agent = _author(line)
    if agent is None:
        agent = author if role == "agent" else scoped(conversation, author)  # as settling would
    elif agent == author:
        author = own_author(conversation, author)
    position, text = line.position, line.text
    message = Message(
        id=_name(line.id) or "",
        conversation=conversation,
        position=position if position is not None and 0 <= position < values.INTEGERS else -1,
        author=author,
        role=role,
        text=_text(line) if text is None else text,
        agent=agent,
        time=_time(line),
        source_ref=ref,
    )
    return message if _says_no_more(line) else _completed(message, line)


def _says_no_more(line: Line) -> bool:
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


def _completed(message: Message, line: Line) -> Message:
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
        tool_calls=values.each(line.tool_calls, values.tool_call),
        tool_results=values.each(line.tool_results, values.tool_result),
    )


def _author(line: Line) -> tuple[str, Role, str | None]:
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


def _text(line: Line) -> str:
    text = line.content if line.text is None else line.text
    if text is None:
        raise RecordError("a message without text")
    return text


def _time(line: Line) -> Any:
    given = line.time
    if given is None:
        given = line.ts if line.ts is not None else line.timestamp if line.timestamp is not None else line.created_at
    if isinstance(given, str) and given[4:5] == "-":
        try:
            moment = datetime.fromisoformat(given)
        except ValueError:
            return values.time(given)
        if moment.tzinfo and moment.year in values.YEARS:
            return moment
    return None if given is None else values.time(given)


def _conversation(line: Line) -> str | None:
    return _name(line.conversation) or _name(line.conversation_id) or _name(line.thread) or _name(line.thread_id)


def _name(given: _Name) -> str | None:
    if given is None:
        return None
    if isinstance(given, str):
        return given if given and not given.isspace() else None
    return str(given)
