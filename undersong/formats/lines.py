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


class _Named(msgspec.Struct, gc=False):
    """What names the conversation of a line, of whatever type."""

    conversation: Any = None
    conversation_id: Any = None
    thread: Any = None
    thread_id: Any = None


class Done(NamedTuple):
    """What was done with the conversations of a piece while its lines were at hand; ``index``: which of them it is."""

    piece: int
    index: int


UNDONE = Done(-1, -1)


class RawRun(NamedTuple):
    """Whole lines of one file, all plain and all of one conversation; ``line`` is the number of the first.

    ``data`` are the bytes themselves, or where they wait. ``done`` holds for all of the piece that is of the
    conversation.
    """

    conversation: str
    source: str
    line: int
    messages: int
    data: bytes | Place
    done: Done = UNDONE


class Stretch(NamedTuple):
    """Lines ``start:end`` (bytes of a block) that belong together; ``conversation`` None: a line that is not plain."""

    conversation: str | None
    start: int
    end: int
    line: int
    messages: int


_DECODER = msgspec.json.Decoder(Line)
_decode, _decode_lines = _DECODER.decode, _DECODER.decode_lines
_decode_name = msgspec.json.Decoder(_Named).decode
_NOT_PLAIN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, RecordError, ValueError)


class Cut(NamedTuple):
    """A block of whole lines cut into stretches.

    ``lines`` are all of them with their times, where none is empty and the block could be decoded at once.
    """

    stretches: list[Stretch]
    lines: list[Line]
    times: list[datetime | None]


def cut(block: bytes, stem: str) -> Cut:
    """Cut a block of whole lines into runs of plain lines of one conversation, and single lines that are not plain.

    Lines count from 0. Plain lines are those that ``messages`` reads without a problem, a note or a doubt; ``stem``
    names the conversation of a line that names none. Empty lines belong to the run around them, or to nobody.
    """
    ends = _line_ends(block)
    lines = _decoded(block, ends)
    if not lines:
        return Cut(_stretches(len(block), [(_owner_of(line, stem), end) for line, end in _with_ends(block)]), [], [])
    owners = [_owner(line, stem) for line in lines]
    named = zip([owner and owner.conversation for owner in owners], ends, strict=True)
    return Cut(_stretches(len(block), named), lines, [owner.time if owner else None for owner in owners])


def stretches(block: bytes, stem: str) -> list[Stretch]:
    """The stretches of ``cut``."""
    return cut(block, stem).stretches


def _stretches(size: int, owners: Iterable[tuple[str | None, int]]) -> list[Stretch]:
    """Stretches of a block of so many bytes, from the conversation of each line and where the line ends."""
    found: list[Stretch] = []
    key, start, first, messages, at = "", 0, 0, 0, 0
    for number, (own, end) in enumerate(owners):
        if own is not BLANK:
            if messages and (own != key or messages >= PART):
                found.append(Stretch(key, start, at, first, messages))
                messages = 0
            if own is None:
                found.append(Stretch(None, at, end - 1, number, 1))
            elif messages:
                messages += 1
            else:
                key, start, first, messages = own, at, number, 1
        at = end
    if messages:
        found.append(Stretch(key, start, min(at, size), first, messages))
    return found


def parts_of(cut: Cut, source: str, number: int) -> list[tuple[str, list[Conversation]]]:
    """The conversations of a block whose lines are all decoded, each with its parts, in order of appearance.

    ``number`` is that of the first line. Lines that are not plain are left to the lenient reader.
    """
    found: dict[str, list[Conversation]] = {}
    for each in cut.stretches:
        if each.conversation is not None:
            name, end = each.conversation, each.line + each.messages
            said = zip(count(number + each.line), cut.lines[each.line : end], cut.times[each.line : end], strict=False)
            messages = [_message(line, name, SourceRef(file=source, line=at), time) for at, line, time in said]
            found.setdefault(name, []).append(_part(name, messages))
    return list(found.items())


def first_change(data: bytes) -> int:
    """Where the second conversation of some lines begins; 0 where that cannot be told from whole lines."""
    at, first = 0, None
    while (end := data.find(b"\n", at) + 1) > 0:
        try:
            named = _decode_name(data[at:end])
        except _NOT_PLAIN:
            return 0
        if first is None:
            first = named
        elif named != first:
            return at
        at = end
    return 0


def messages(run: RawRun, data: bytes) -> list[Message]:
    """The messages of a run of plain lines, from its bytes."""
    file, name = run.source, run.conversation
    return [
        _message(line, name, SourceRef(file=file, line=number), _time(line)) for number, line in _numbered(run, data)
    ]


def _numbered(run: RawRun, data: bytes) -> Iterable[tuple[int, Line]]:
    if data.count(b"\n") == run.messages - (not data.endswith(b"\n")):  # no empty lines between
        return zip(count(run.line), _decode_lines(data), strict=False)
    lines = enumerate(data.split(b"\n"), run.line)
    return ((number, _decode(line)) for number, line in lines if line and not line.isspace())


def part(run: RawRun, data: bytes) -> Conversation:
    """The run as a part of its conversation, from its bytes."""
    return _part(run.conversation, messages(run, data))


def _part(name: str, messages: list[Message]) -> Conversation:
    return Conversation(id=name, source_format="jsonl", messages=tuple(messages), source_ref=messages[0].source_ref)


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
    """Whether no line, given where each ends, has more brackets than levels are allowed, or one is no object."""
    opening = _brackets(block)
    if int(np.count_nonzero(opening)) < DEPTH + len(ends):  # every object has at least one
        return True
    places = np.flatnonzero(opening)
    return int(np.diff(np.searchsorted(places, ends), prepend=0).max()) <= DEPTH


def _line_ends(block: bytes) -> list[int]:
    """The place after each line."""
    ends: list[int] = (np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == LINE_FEED) + 1).tolist()
    if not block.endswith(b"\n"):
        ends.append(len(block) + 1)
    return ends


def _decoded(block: bytes, ends: list[int]) -> list[Line]:
    """The lines, given where they end; none where one of them is empty or cannot be decoded."""
    if not _all_shallow(block, ends) or not _is_utf8(block):
        return []
    try:
        lines = _decode_lines(block)
    except _NOT_PLAIN:
        return []
    return lines if len(lines) == len(ends) else []


def _with_ends(block: bytes) -> Iterator[tuple[bytes, int]]:
    end = 0
    for line in block.split(b"\n"):
        end += len(line) + 1
        yield line, end


def _owner_of(data: bytes, stem: str) -> str | None:
    if not data or data.isspace():
        return BLANK
    try:
        owner = _owner(_decode(data), stem) if _is_shallow(data) and _is_utf8(data) else None
    except _NOT_PLAIN:
        return None
    return owner.conversation if owner else None


class _Owner(NamedTuple):
    conversation: str
    time: datetime | None


def _owner(line: Line, stem: str) -> _Owner | None:
    """The conversation and the time of a plain line, None for any other."""
    try:
        if line.title or line.timezone or line.messages is not None:
            return None
        if line.role not in values.ROLES:
            _author(line)
        if line.text is None:
            _text(line)
        own, time = line.conversation, _time(line)
        if not isinstance(own, str) or not own or own.isspace():
            own = _conversation(line) or stem
        return _Owner(own, time)
    except _NOT_PLAIN:
        return None


def _message(line: Line, conversation: str, ref: SourceRef, time: datetime | None) -> Message:
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
        time=time,
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
