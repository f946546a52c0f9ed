"""Our own JSON Lines: one message a line, any number of named agents, conversations may be interleaved."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import (
    BOM,
    LIMIT,
    JsonRecord,
    around,
    decoded,
    input_lines,
    is_lines,
    records,
    too_deep,
    too_long,
    with_cut,
)
from undersong.formats.normalize import own_author
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.unread_words import settled
from undersong.formats.values import EMPTY, SkipLog, inside
from undersong.models import Conversation, Message, Observed, Problem, Role, SourceRef

PART = 1000  # messages of one conversation that are handed on together
_LISTS = ("messages", "data", "conversations", "threads")
_KEY_PATHS = ((), *((name,) for name in _LISTS), *((name, "messages") for name in _LISTS[1:]))  # of a message
_AUTHORS = ("author", "agent_id", "agent", "sender")
_OBSERVED: dict[str, Observed] = {"yes": "yes", "no": "no", "unknown": "unknown"}


class JsonlLine(msgspec.Struct, gc=False):
    """The keys of a message, of any type; ``title``, ``timezone`` and ``messages`` are of a whole conversation."""

    id: Any = None
    conversation: Any = None
    conversation_id: Any = None
    thread: Any = None
    thread_id: Any = None
    author: Any = None
    agent_id: Any = None
    agent: Any = None
    sender: Any = None
    name: Any = None
    role: Any = None
    text: Any = None
    content: Any = None
    time: Any = None
    ts: Any = None
    timestamp: Any = None
    created_at: Any = None
    position: Any = None
    reply_to: Any = None
    target: Any = None
    model: Any = None
    latency: Any = None
    latency_ms: Any = None
    tokens: Any = None
    observed: Any = None
    branch: Any = None
    tool_calls: Any = None
    tool_results: Any = None
    thinking: Any = None
    title: Any = None
    timezone: Any = None
    messages: Any = None


class _CommonLine(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The keys that most lines have; one with any other key or type is decoded as a JsonlLine."""

    id: str
    conversation: str
    author: str
    role: Role
    text: str
    position: int | None = None
    time: str | None = None


_REPLY_TO = ("in_reply_to", "parent_id")  # other names of reply_to
_READ = frozenset(
    (
        *JsonlLine.__struct_fields__,
        *_REPLY_TO,
        "tier",
        "state",
        "traits",
        "indicators",
        "signals",
        "flags",
        "triage",
        "judge",
        "sampled",
        "reasons",
        "width",
        "reason",
        "hits",
        "labels",
        "hard_constraints",
        "loops",
        "deference",
        "engines",
        "spans",
        "judge_hash",
        "source_ref",
        "reading",
        "bands",
        "domain",
        "scale",
        "answer",
        "quotes",
        "confidence",
    )
)  # the rest are keys of our own rows, which hold none of the conversation's words
_decode = msgspec.json.Decoder().decode
_decode_common = msgspec.json.Decoder(_CommonLine).decode


def sniff(sample: FormatSample) -> bool:
    """A text with an author or role, on the line itself or in its ``messages``."""
    authors = (*_AUTHORS, "role")
    if sample.any_of("messages.text") or (sample.any_of("messages.author") and sample.any_of("messages.content")):
        return sample.any_of(*(f"messages.{key}" for key in authors))
    if sample.has("text"):
        return sample.any_of(*authors)
    return sample.has("content") and sample.any_of(*_AUTHORS)


def read(source: TextSource) -> Iterator[Item]:
    """Runs of messages of the same conversation, in the order of the file."""
    notes = SkipLog(source.net)
    for key, meant in _misspelt_keys(FormatSample(source)):
        notes.add(f"key {key[:40]!r}, which is not read; {meant!r} is", SourceRef(file=source.name))
    yield from _runs(_from_lines(source, notes) if is_lines(source) else _from_document(source, notes))
    yield from notes.problems()


def read_line(line: bytes, number: int, name: str, stem: str, notes: SkipLog) -> Iterator[Item]:
    """The message or messages of one line of an input that is read as it grows; ``number`` counts from 1.

    ``name`` and ``stem`` are those of its Source; what is left out is counted in ``notes``.
    """
    line = line.removeprefix(BOM) if number == 1 else line
    yield from _runs(_line(line, SourceRef(file=name, line=number), stem, notes))


def _runs(items: Iterable[Item | Message]) -> Iterator[Item]:
    """Messages that follow each other in one conversation are put together to a part of it."""
    run: list[Message] = []
    for item in items:
        if isinstance(item, Message):
            if run and (item.conversation != run[0].conversation or len(run) >= PART):
                yield _part(run[0].conversation, run)
                run = []
            run.append(item)
            continue
        if run:
            yield _part(run[0].conversation, run)
            run = []
        yield item
    if run:
        yield _part(run[0].conversation, run)


def _from_document(source: TextSource, notes: SkipLog) -> Iterator[Item | Message]:
    """The messages of a document; what stands around a list of them says which conversation it is."""
    outer = JsonlLine()
    if any(path[:1] == ("messages",) for path in FormatSample(source).keys):
        value = around(source, _LISTS)
        notes.unread(value, SourceRef(file=source.name), _READ)
        outer = _fields(value)
    key, about = _conversation(outer) or values.name(outer.id) or source.stem, _about(outer)
    for record in records(source, _LISTS):
        for item in _record(record, key, notes):
            yield _part(key, [item], about) if about and isinstance(item, Message) else item
            about = {}


def _from_lines(source: TextSource, notes: SkipLog) -> Iterator[Item | Message]:
    for line in input_lines(source):
        ref = SourceRef(file=source.name, line=line.number)
        yield from with_cut(_line(line.data, ref, source.stem, notes), line, source.name)


def _line(line: bytes | None, ref: SourceRef, stem: str, notes: SkipLog) -> Iterable[Item | Message]:
    """The message or messages of one line; None stands for a line that is too long."""
    if line is None or len(line) > LIMIT:
        return (too_long(ref),)
    if not line or line.isspace():
        return ()
    message = _common_message(line, ref)
    if message is not None:
        return (message,)
    try:
        if not line.isascii():
            line.decode()  # of keys that are not read nobody else looks at the bytes
        if not too_deep(line):
            return settled(record := JsonRecord(_decode(line), ref), _record(record, stem, notes), notes)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # no message, or no strict JSON: it is decoded as any other JSON
    return (
        item
        for record in decoded(line, ref, "line", 0)
        for item in settled(record, _record(record, stem, notes), notes)
    )


def _common_message(line: bytes, ref: SourceRef) -> Message | None:
    """The message of a line with the common keys, twice as fast as ``_message``; None for any other line."""
    try:
        value = _decode_common(line)
        time = values.time(value.time)
    except ValueError:  # msgspec's and that of a time
        return None
    name, author, role, position = value.conversation, value.author, value.role, value.position
    if not (value.id.strip() and name.strip() and author.strip()):
        return None
    if position is None:
        position = -1
    elif not 0 <= position < values.INTEGERS:
        return None
    return Message(
        id=value.id,
        conversation=name,
        position=position,
        author=author,
        role=role,
        text=value.text,
        agent=author if role == "agent" else "",
        time=time,
        source_ref=ref,
    )


def _record(record: JsonRecord | Problem, stem: str, notes: SkipLog) -> Iterator[Item | Message]:
    if isinstance(record, Problem):
        yield record
        return
    if isinstance(record.value, list) and record.value:
        yield from _whole(JsonlLine(messages=record.value), record.ref, inside(record.ref), stem, notes)
        return
    try:
        value = _fields(record.value)
        _note(record.value, record.ref, notes)
        if isinstance(value.messages, list):
            yield from _whole(value, record.ref, inside(record.ref, "messages"), stem, notes)
            return
        message = _message(value, record.ref, _conversation(value) or stem, notes)
        about = _about(value)
        yield _part(message.conversation, [message], about) if about else message
    except RecordError as error:
        yield Problem(what=error.what, where=str(record.ref), remedy=error.remedy)


def _note(value: Mapping[str, Any], ref: SourceRef, notes: SkipLog) -> None:
    notes.marks(value, ref)
    notes.unread(value, ref, _READ)


def _whole(value: JsonlLine, ref: SourceRef, list_ref: SourceRef, stem: str, notes: SkipLog) -> Iterator[Item]:
    """A record that is a whole conversation: its messages, and what it says beside them."""
    key = _conversation(value) or values.name(value.id) or f"{stem}-{_number(ref)}"
    messages: list[Message] = []
    for index, item in enumerate(value.messages):
        place = inside(list_ref, index)
        try:
            line = _fields(item)
            _note(item, place, notes)
            messages.append(_message(line, place, key, notes))
        except RecordError as error:
            yield Problem(what=f"message {index}: {error.what}", where=str(place), remedy=error.remedy)
    if messages:
        yield _part(key, messages, _about(value))
    elif not value.messages:
        notes.add(EMPTY, ref)


def _part(key: str, messages: list[Message], about: Mapping[str, Any] = MappingProxyType({})) -> Conversation:
    return Conversation(
        id=key, source_format="jsonl", messages=tuple(messages), source_ref=messages[0].source_ref, **about
    )


def message_of(value: Mapping[str, Any]) -> Message:
    """The message of a plain mapping with the keys of a line; its position is -1 where it has none.

    Raises RecordError for what a reader of files would pass over, too: an unknown role, a broken time, a key that no
    message has.
    """
    notes, ref, line = SkipLog(), SourceRef(file=""), _fields(value)
    unknown = sorted(str(key) for key in value.keys() - _READ)
    if unknown:
        what = f"a message has no key {unknown[0]!r}"
        raise RecordError(what, remedy="docs/formats.md lists its keys: whom it is for is its 'target'")
    message = _message(line, ref, _conversation(line) or "", notes)
    for problem in notes.problems():
        what = problem.what.partition("× ")[2]
        for lenient in (", read as participant", ", read as none", ", taken as unknown"):
            what = what.replace(lenient, "")
        raise RecordError(what, remedy="docs/formats.md lists the keys of a message")
    return msgspec.structs.replace(message, source_ref=None)


def _message(value: JsonlLine, ref: SourceRef, conversation: str, notes: SkipLog) -> Message:
    agent = _first_name(value.agent_id, value.agent)
    author = _first_name(value.author, agent, value.sender, value.name)
    role = _role(value.role, author, agent, ref, notes)
    if author is None:
        if value.role is None:
            raise RecordError("a message without an author", remedy="give it 'author' or 'role'")
        author = role
    return Message(
        id=values.name(value.id) or "",
        conversation=conversation,
        position=_position(value.position, ref, notes),
        author=own_author(conversation, author) if agent == author else author,
        role=role,
        text=_text(value, ref, notes),
        agent=agent or (author if role == "agent" else ""),
        time=_time(value, ref, notes),
        source_ref=ref,
        **_details(value, ref, notes),
    )


def _details(value: JsonlLine, ref: SourceRef, notes: SkipLog) -> dict[str, Any]:
    """What few messages have."""
    given_values = (
        value.reply_to, value.target, value.branch, value.model, value.latency, value.latency_ms, value.tokens,
        value.observed, value.tool_calls, value.tool_results, value.thinking,
    )  # fmt: skip
    if given_values.count(None) == len(given_values):
        return {}
    calls = values.convert_list(value.tool_calls, values.tool_call)
    results = values.convert_list(value.tool_results, values.tool_result)
    listed = (each for each in (value.tool_calls, value.tool_results) if isinstance(each, list))
    unlisted = sum(bool(each) and not isinstance(each, list) for each in (value.tool_calls, value.tool_results))
    if missed := unlisted + sum(map(len, listed)) - len(calls) - len(results):
        notes.add("call or result of a tool in an unknown form, not read", ref, missed)
    for call in value.tool_calls if isinstance(value.tool_calls, list) else ():
        notes.misplaced(call, ref)
    latency = values.seconds(value.latency)
    return {
        "reply_to": values.name(value.reply_to),
        "target": values.name(value.target),
        "branch": values.name(value.branch),
        "model": values.string(value.model),
        "latency": latency if latency is not None else values.seconds(value.latency_ms, 1e3),
        "tokens": values.count(value.tokens),
        "observed": _observed(value.observed, ref, notes),
        "tool_calls": calls,
        "tool_results": results,
        "thinking": values.string(value.thinking) or "",
    }


def _text(value: JsonlLine, ref: SourceRef, notes: SkipLog) -> str:
    content = value.content if value.text is None else value.text
    text = values.text(content)
    if not isinstance(content, str):
        notes.blocks(content, ref)
    if text is None:
        if content is None and (value.tool_calls or value.tool_results):
            return ""
        what = "a message without text" if content is None else f"a text that is {_kind(content)}"
        raise RecordError(what, remedy="give it 'text' as a string")
    return text


def _role(value: Any, author: str | None, agent: str | None, ref: SourceRef, notes: SkipLog) -> Role:
    """Without a role: ``agent`` where a global identity is given, that of a name like ``user``, else participant."""
    role = values.role(value)
    if role:
        return role
    if value is not None:
        notes.add(f"unknown role {str(value)[:40]!r}, read as participant", ref)
        return "participant"
    return values.role(author) or ("agent" if agent else "participant")


def _time(value: JsonlLine, ref: SourceRef, notes: SkipLog) -> Any:
    try:
        for time in (value.time, value.ts, value.timestamp, value.created_at):
            if time is not None:
                return values.time(time)
    except ValueError:
        notes.add("time that cannot be read, taken as unknown; write ISO 8601 or epoch seconds", ref)
    return None


def _position(value: Any, ref: SourceRef, notes: SkipLog) -> int:
    if value is None:
        return -1
    position = values.count(value)
    if position is None:
        notes.add("position that is no whole number from 0, read as none", ref)
        return -1
    return position


def _observed(value: Any, ref: SourceRef, notes: SkipLog) -> Observed:
    if value is None:
        return "unknown"
    observed = _OBSERVED.get(value) if isinstance(value, str) else None
    if observed is None:
        notes.add("observed that is neither yes, no nor unknown, taken as unknown", ref)
    return observed or "unknown"


def _about(value: JsonlLine) -> dict[str, Any]:
    """What a line says of its whole conversation."""
    if value.title is None is value.timezone:
        return {}
    about = {"title": values.string(value.title), "timezone": values.string(value.timezone)}
    return about if any(about.values()) else {}


def _conversation(value: JsonlLine) -> str | None:
    return _first_name(value.conversation, value.conversation_id, value.thread, value.thread_id)


def _first_name(*candidates: Any) -> str | None:
    for value in candidates:
        if value is not None and (name := values.name(value)):
            return name
    return None


def _fields(value: Any) -> JsonlLine:
    if isinstance(value, JsonlLine):
        return value
    if not isinstance(value, Mapping):
        raise RecordError(f"a message that is {_kind(value)}", remedy="write an object with 'author' and 'text'")
    line = JsonlLine(**{key: value[key] for key in JsonlLine.__struct_fields__ if key in value})
    if line.reply_to is None:
        line.reply_to = next((value[key] for key in _REPLY_TO if value.get(key) is not None), None)
    return line


def _number(ref: SourceRef) -> str:
    return str(ref.line) if ref.line is not None else (ref.pointer or "/0").rsplit("/", 1)[-1]


def _kind(value: Any) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list"}
    return "null" if value is None else kinds.get(type(value), "an object")


_ROOMS = ("room", "room_id", "dialog_id")
_OTHER_NAMES = {
    "id": ("message_id", "msg_id", "uuid"),
    "reply_to": ("parent",),
    "conversation": ("chat", "chat_id", "session", "session_id", "channel", "channel_id", *_ROOMS),
    "time": ("date", "datetime", "date_time", "sent_at", "created"),
}
# letters of keys that may tell apart who has one name
_IDENTITY = re.compile(r"(?:user|account|from|sender|author|speaker)id|uid|username|handle|speaker")
_SAME = {
    "conversation": ("conversation", "conversation_id", "thread", "thread_id"),
    "time": ("time", "ts", "timestamp", "created_at"),
}


def _misspelt_keys(sample: FormatSample) -> Iterator[tuple[str, str]]:
    """(Key of the messages in a sample, the key that is read in its place), in the order of the keys."""
    for prefix in _KEY_PATHS:
        keys = {path[-1] for path in sample.keys if path[:-1] == prefix}
        yield from ((key, meant) for key in sorted(keys) if (meant := _meant(key, keys)))


def _meant(key: str, keys: Iterable[str]) -> str | None:
    """The key that is read and that another one may stand for; None where the messages have that one as well.

    Of keys that say who somebody is, the one that is read is named in any case: two people may have one name.
    """
    read_keys = JsonlLine.__struct_fields__
    if key in read_keys:
        return None
    if _IDENTITY.fullmatch(_letters(key)):
        return next((name for name in (*_AUTHORS, "name") if name in keys), None)
    meant = next((name for name in read_keys if _letters(name) == _letters(key)), None)
    meant = meant or next(
        (name for name, others in _OTHER_NAMES.items() if _letters(key) in map(_letters, others)), None
    )
    same = next((names for names in _SAME.values() if meant in names), (meant,))
    return None if meant is None or not set(same).isdisjoint(keys) else meant


def _letters(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()
