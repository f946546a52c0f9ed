"""Our own JSON Lines: one message a line, any number of named agents, conversations may be interleaved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.identity import may_be_ambiguous, own_author
from undersong.formats.json_stream import BOM, LIMIT, JsonRecord, decoded, is_lines, line_pieces, records, too_long
from undersong.formats.jsonl_lines import PART, Done, RawRun, Stretch, first_change, line_feeds, parts_of, split_block
from undersong.formats.jsonl_plain import OBSERVED, JsonlLine
from undersong.formats.skip_log import EMPTY, SkipLog, inside
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import EagerWork, Extent, TextSource
from undersong.formats.spill import SpillFile, SpillLocation
from undersong.models import Conversation, Message, Observed, Problem, Role, SourceRef

_AUTHOR = ("author", "agent_id", "agent", "sender", "name")
_CONVERSATION = ("conversation", "conversation_id", "thread", "thread_id")
_TIME = ("time", "ts", "timestamp", "created_at")
_TEXT = ("text", "content")


def sniff(sample: FormatSample) -> bool:
    """A text with an author or role, on the line itself or in its ``messages``."""
    authors = (*_AUTHOR[:4], "role")
    if sample.any_of("messages.text") or (sample.any_of("messages.author") and sample.any_of("messages.content")):
        return sample.any_of(*(f"messages.{key}" for key in authors))
    if sample.has("text"):
        return sample.any_of(*authors)
    return sample.has("content") and sample.any_of(*_AUTHOR[:4])


def read(source: TextSource) -> Iterator[Item]:
    """Runs of messages of the same conversation, in the order of the file."""
    notes = SkipLog()
    for key, meant in misspelt(FormatSample(source)):
        notes.add(f"key {key[:40]!r}, which is not read; {meant!r} is", SourceRef(file=source.name))
    if is_lines(source):
        yield from _lines(source, notes)
    else:
        for record in records(source, ("messages", "data", "conversations", "threads")):
            yield from _record(record, source.stem, notes)
    yield from notes.problems()


def read_line(line: bytes, number: int, name: str, stem: str, notes: SkipLog) -> Iterator[Item]:
    """The message or messages of one line of an input that is read as it grows; ``number`` counts from 1.

    ``name`` and ``stem`` are those of its Source; what is left out is counted in ``notes``.
    """
    ref = SourceRef(file=name, line=number)
    line = line.removeprefix(BOM) if number == 1 else line
    if len(line) > LIMIT:
        yield too_long(ref)
    elif line.strip():
        for record in decoded(line, ref, "line", 0):
            yield from _record(record, stem, notes)


def _lines(source: TextSource, notes: SkipLog) -> Iterator[Item]:
    """Runs of plain lines as they are, and every other line read leniently."""
    at_once = source.at_once
    work = partial(_cut, source.name, source.stem, source.spill_file, at_once.work if at_once else None)
    number, in_turn = 1, source.share.in_turn

    def numbered() -> Iterator[_NumberedLines]:
        ahead = 1
        for piece in line_pieces(source, first_change):
            yield _NumberedLines(piece, number if in_turn else ahead)
            ahead += 0 if in_turn else _lines_in(piece)

    for piece, cut_lines in source.share(work, numbered()):
        if piece.data is None:
            yield too_long(SourceRef(file=source.name, line=number))
        stored_number = at_once.keep(cut_lines.done) if at_once and cut_lines.done is not None else -1
        index = {name: place for place, name in enumerate(cut_lines.names)}
        for stretch, data in cut_lines.stretches:
            if stretch.conversation is not None:
                done = Done(stored_number, index.get(stretch.conversation, -1))
                yield RawRun(stretch.conversation, source.name, number + stretch.line, stretch.messages, data, done)
            elif isinstance(data, bytes):
                for record in decoded(data, SourceRef(file=source.name, line=number + stretch.line), "line", 0):
                    yield from _record(record, source.stem, notes)
        number += cut_lines.lines


class _NumberedLines(NamedTuple):
    """Whole lines, and the number of the first."""

    data: bytes | Extent | None
    line: int


def _lines_in(piece: bytes | Extent | None) -> int:
    if piece is None:
        return 1
    return line_feeds(piece.read() if isinstance(piece, Extent) else piece)


class _CutLines(NamedTuple):
    """A piece of an input cut into stretches, each with its bytes or where they wait, and how many lines it has.

    ``done`` is what was done at once with the conversations of these ``names``, if anything was.
    """

    stretches: list[tuple[Stretch, bytes | SpillLocation]]
    lines: int
    names: list[str]
    done: Any = None


def _cut(
    name: str, stem: str, waiting: SpillFile | None, at_once: EagerWork | None, piece: _NumberedLines
) -> _CutLines:
    """The work of a process: plain lines wait on disk, where all processes can read them; the others are few."""
    if piece.data is None:
        return _CutLines([], 1, [])
    block = piece.data.read() if isinstance(piece.data, Extent) else piece.data
    jsonl_block = split_block(block, stem)
    lines = jsonl_block.breaks
    if waiting is None:
        return _CutLines([(each, block[each.start : each.end]) for each in jsonl_block.stretches], lines, [])
    plain = [each for each in jsonl_block.stretches if each.conversation is not None]
    place = waiting.put(block) if plain else SpillLocation(0, 0, 0)
    located: list[tuple[Stretch, bytes | SpillLocation]] = []
    for stretch in jsonl_block.stretches:
        own = SpillLocation(place.process, place.offset + stretch.start, stretch.end - stretch.start)
        located.append((stretch, block[stretch.start : stretch.end] if stretch.conversation is None else own))
    if at_once is None or not jsonl_block.decoded or _are_interleaved(plain):
        return _CutLines(located, lines, [])
    parts = [(key, own) for key, own in parts_of(jsonl_block, name, piece.line) if _may_be_whole(own)]
    return _CutLines(located, lines, [key for key, _ in parts], at_once([own for _, own in parts]))


def _are_interleaved(plain: list[Stretch]) -> bool:
    """Whether the conversations of a piece are so mixed that hardly one can be whole."""
    return 4 * len(plain) > 5 * len({each.conversation for each in plain}) + sum(
        each.messages // PART for each in plain
    )


def _may_be_whole(parts: list[Conversation]) -> bool:
    """Whether what a piece has of a conversation looks like all of it, and no other one changes what it is."""
    first = parts[0].messages[0].position
    alone = first < 0 and len(parts[0].messages) == 1  # of lines without positions that come one by one many go on
    return first <= 0 and not alone and not any(map(may_be_ambiguous, parts))


def _record(record: JsonRecord | Problem, stem: str, notes: SkipLog) -> Iterator[Item]:
    if isinstance(record, Problem):
        yield record
        return
    if isinstance(record.value, list) and record.value:
        items = [JsonRecord(each, inside(record.ref, index)) for index, each in enumerate(record.value)]
        yield from _whole({}, items, record.ref, stem, notes)
        return
    try:
        value = _object(record.value)
        if isinstance(value.get("messages"), list):
            items = [JsonRecord(each, inside(record.ref, "messages", i)) for i, each in enumerate(value["messages"])]
            yield from _whole(value, items, record.ref, stem, notes)
        else:
            message = _message(value, record.ref, _conversation(value) or stem, notes)
            yield _part(message.conversation, [message], _about(value))
    except RecordError as error:
        yield Problem(what=error.what, where=str(record.ref), remedy=error.remedy)


def _whole(
    value: Mapping[str, Any], items: list[JsonRecord], ref: SourceRef, stem: str, notes: SkipLog
) -> Iterator[Item]:
    """A record that is a whole conversation: its messages, and what stands beside them."""
    key = _conversation(value) or values.name(value.get("id")) or f"{stem}-{_number(ref)}"
    messages: list[Message] = []
    for index, (item, place) in enumerate(items):
        try:
            messages.append(_message(_object(item), place, key, notes))
        except RecordError as error:
            yield Problem(what=f"message {index}: {error.what}", where=str(place), remedy=error.remedy)
    if messages:
        yield _part(key, messages, _about(value))
    elif not items:
        notes.add(EMPTY, ref)


def _part(key: str, messages: list[Message], about: Mapping[str, Any]) -> Conversation:
    return Conversation(
        id=key, source_format="jsonl", messages=tuple(messages), source_ref=messages[0].source_ref, **about
    )


def message_of(value: Mapping[str, Any]) -> Message:
    """The message of a plain mapping with the keys of a line; its position is -1 where it has none.

    Raises RecordError for what a reader of files would pass over with a note, too: an unknown role, a broken time.
    """
    notes, ref = SkipLog(), SourceRef(file="")
    message = _message(_object(value), ref, _conversation(value) or "", notes)
    for problem in notes.problems():
        what = problem.what.partition("× ")[2]
        for lenient in (", read as participant", ", read as none", ", taken as unknown"):
            what = what.replace(lenient, "")
        raise RecordError(what, remedy="docs/formats.md lists the keys of a message")
    return msgspec.structs.replace(message, source_ref=None)


def _message(value: Mapping[str, Any], ref: SourceRef, conversation: str, notes: SkipLog) -> Message:
    agent = values.name(value.get("agent_id")) or values.name(value.get("agent"))
    author = _first_name(value, _AUTHOR)
    role = _role(value.get("role"), author, agent, ref, notes)
    if author is None:
        if value.get("role") is None:
            raise RecordError("a message without an author", remedy="give it 'author' or 'role'")
        author = role
    latency = values.seconds(value.get("latency"))
    return Message(
        id=values.name(value.get("id")) or "",
        conversation=conversation,
        position=_position(value.get("position"), ref, notes),
        author=own_author(conversation, author) if agent == author else author,
        role=role,
        text=_text(value),
        agent=agent or "",
        time=_time(value, ref, notes),
        reply_to=values.name(value.get("reply_to")),
        target=values.name(value.get("target")),
        model=values.string(value.get("model")),
        latency=latency if latency is not None else values.seconds(value.get("latency_ms"), 1e3),
        tokens=values.count(value.get("tokens")),
        observed=_observed(value.get("observed"), ref, notes),
        branch=values.name(value.get("branch")),
        tool_calls=values.convert_list(value.get("tool_calls"), values.tool_call),
        tool_results=values.convert_list(value.get("tool_results"), values.tool_result),
        source_ref=ref,
    )


def _text(value: Mapping[str, Any]) -> str:
    content = next((value[key] for key in _TEXT if value.get(key) is not None), None)
    text = values.text(content)
    if text is None:
        if content is None and (value.get("tool_calls") or value.get("tool_results")):
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


def _time(value: Mapping[str, Any], ref: SourceRef, notes: SkipLog) -> Any:
    raw_time = next((value[key] for key in _TIME if value.get(key) is not None), None)
    try:
        return values.time(raw_time)
    except ValueError:
        notes.add("time that cannot be read, taken as unknown; write ISO 8601 or epoch seconds", ref)
        return None


def _position(value: Any, ref: SourceRef, notes: SkipLog) -> int:
    position = values.count(value)
    if position is None and value is not None:
        notes.add("position that is no whole number from 0, read as none", ref)
    return -1 if position is None else position


def _observed(value: Any, ref: SourceRef, notes: SkipLog) -> Observed:
    observed = OBSERVED.get(value) if isinstance(value, str) else None
    if observed is None and value is not None:
        notes.add("observed that is neither yes, no nor unknown, taken as unknown", ref)
    return observed or "unknown"


def _about(value: Mapping[str, Any]) -> dict[str, Any]:
    """What a line says of its whole conversation."""
    return {key: value[key] for key in ("title", "timezone") if values.string(value.get(key))}


def _conversation(value: Mapping[str, Any]) -> str | None:
    return _first_name(value, _CONVERSATION)


def _first_name(value: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        name = values.name(value.get(key))
        if name:
            return name
    return None


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RecordError(f"a message that is {_kind(value)}", remedy="write an object with 'author' and 'text'")
    return value


def _number(ref: SourceRef) -> str:
    return str(ref.line) if ref.line is not None else (ref.pointer or "/0").rsplit("/", 1)[-1]


def _kind(value: Any) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list"}
    return "null" if value is None else kinds.get(type(value), "an object")


_OTHER_NAMES = {
    "id": ("message_id", "msg_id", "uuid"),
    "reply_to": ("parent", "parent_id", "in_reply_to"),
    "conversation": (
        "chat",
        "chat_id",
        "session",
        "session_id",
        "channel",
        "channel_id",
        "room",
        "room_id",
        "dialog_id",
    ),
    "time": ("date", "datetime", "date_time", "sent_at", "created"),
}
_SAME = {
    "conversation": ("conversation", "conversation_id", "thread", "thread_id"),
    "time": ("time", "ts", "timestamp", "created_at"),
}
_LISTS = ("data", "conversations", "threads")
_PLACES = ((), ("messages",), *((name,) for name in _LISTS), *((name, "messages") for name in _LISTS))


def misspelt(sample: FormatSample) -> Iterator[tuple[str, str]]:
    """(Key of the messages in a sample, the key that is read in its place), in the order of the keys."""
    for prefix in _PLACES:
        keys = {path[-1] for path in sample.keys if path[:-1] == prefix}
        yield from ((key, meant) for key in sorted(keys) if (meant := _meant(key, keys)))


def _meant(key: str, keys: Iterable[str]) -> str | None:
    """The key that is read and that another one may stand for; None where the messages have that one as well."""
    read_keys = JsonlLine.__struct_fields__
    if key in read_keys:
        return None
    meant = next((name for name in read_keys if _letters(name) == _letters(key)), None)
    meant = meant or next(
        (name for name, others in _OTHER_NAMES.items() if _letters(key) in map(_letters, others)), None
    )
    same = next((names for names in _SAME.values() if meant in names), (meant,))
    return None if meant is None or not set(same).isdisjoint(keys) else meant


def _letters(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()
