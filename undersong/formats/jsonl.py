"""Our own JSON Lines: one message a line, any number of named agents, conversations may be interleaved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.lines import PART, Done, RawRun, Stretch, cut, first_change, line_feeds, parts_of
from undersong.formats.misspelt import misspelt
from undersong.formats.notes import EMPTY, Notes, inside
from undersong.formats.plain import OBSERVED
from undersong.formats.records import BOM, Record, decoded, is_lines, line_pieces, records, too_long
from undersong.formats.sample import Sample
from undersong.formats.scope import may_be_apart, own_author
from undersong.formats.sources import Extent, Source, Work
from undersong.formats.splitter import LIMIT
from undersong.models import Conversation, Message, Observed, Problem, Role, SourceRef
from undersong.waiting import Place, Waiting

_AUTHOR = ("author", "agent_id", "agent", "sender", "name")
_CONVERSATION = ("conversation", "conversation_id", "thread", "thread_id")
_TIME = ("time", "ts", "timestamp", "created_at")
_TEXT = ("text", "content")


def sniff(sample: Sample) -> bool:
    """A text with an author or role, on the line itself or in its ``messages``."""
    authors = (*_AUTHOR[:4], "role")
    if sample.any_of("messages.text") or (sample.any_of("messages.author") and sample.any_of("messages.content")):
        return sample.any_of(*(f"messages.{key}" for key in authors))
    if sample.has("text"):
        return sample.any_of(*authors)
    return sample.has("content") and sample.any_of(*_AUTHOR[:4])


def read(source: Source) -> Iterator[Item]:
    """Runs of messages of the same conversation, in the order of the file."""
    notes = Notes()
    for key, meant in misspelt(Sample(source)):
        notes.add(f"key {key[:40]!r}, which is not read; {meant!r} is", SourceRef(file=source.name))
    if is_lines(source):
        yield from _lines(source, notes)
    else:
        for record in records(source, ("messages", "data", "conversations", "threads")):
            yield from _record(record, source.stem, notes)
    yield from notes.problems()


def read_line(line: bytes, number: int, name: str, stem: str, notes: Notes) -> Iterator[Item]:
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


def _lines(source: Source, notes: Notes) -> Iterator[Item]:
    """Runs of plain lines as they are, and every other line read leniently."""
    at_once = source.at_once
    work = partial(_cut, source.name, source.stem, source.waiting, at_once.work if at_once else None)
    number, in_turn = 1, source.share.in_turn

    def numbered() -> Iterator[_Piece]:
        ahead = 1
        for piece in line_pieces(source, first_change):
            yield _Piece(piece, number if in_turn else ahead)
            ahead += 0 if in_turn else _lines_in(piece)

    for piece, found in source.share(work, numbered()):
        if piece.data is None:
            yield too_long(SourceRef(file=source.name, line=number))
        kept = at_once.keep(found.done) if at_once and found.done is not None else -1
        index = {name: place for place, name in enumerate(found.names)}
        for each, data in found.stretches:
            if each.conversation is not None:
                done = Done(kept, index.get(each.conversation, -1))
                yield RawRun(each.conversation, source.name, number + each.line, each.messages, data, done)
            elif isinstance(data, bytes):
                for record in decoded(data, SourceRef(file=source.name, line=number + each.line), "line", 0):
                    yield from _record(record, source.stem, notes)
        number += found.lines


class _Piece(NamedTuple):
    """Whole lines, and the number of the first."""

    data: bytes | Extent | None
    line: int


def _lines_in(piece: bytes | Extent | None) -> int:
    if piece is None:
        return 1
    return line_feeds(piece.read() if isinstance(piece, Extent) else piece)


class _Found(NamedTuple):
    """A piece of an input cut into stretches, each with its bytes or where they wait, and how many lines it has.

    ``done`` is what was done at once with the conversations of these ``names``, if anything was.
    """

    stretches: list[tuple[Stretch, bytes | Place]]
    lines: int
    names: list[str]
    done: Any = None


def _cut(name: str, stem: str, waiting: Waiting | None, at_once: Work | None, piece: _Piece) -> _Found:
    """The work of a process: plain lines wait on disk, where all processes can read them; the others are few."""
    if piece.data is None:
        return _Found([], 1, [])
    block = piece.data.read() if isinstance(piece.data, Extent) else piece.data
    found = cut(block, stem)
    lines = found.breaks
    if waiting is None:
        return _Found([(each, block[each.start : each.end]) for each in found.stretches], lines, [])
    plain = [each for each in found.stretches if each.conversation is not None]
    place = waiting.put(block) if plain else Place(0, 0, 0)
    kept: list[tuple[Stretch, bytes | Place]] = []
    for each in found.stretches:
        own = Place(place.process, place.offset + each.start, each.end - each.start)
        kept.append((each, block[each.start : each.end] if each.conversation is None else own))
    if at_once is None or not found.decoded or _take_turns(plain):
        return _Found(kept, lines, [])
    parts = [(key, own) for key, own in parts_of(found, name, piece.line) if _may_be_whole(own)]
    return _Found(kept, lines, [key for key, _ in parts], at_once([own for _, own in parts]))


def _take_turns(plain: list[Stretch]) -> bool:
    """Whether the conversations of a piece are so mixed that hardly one can be whole."""
    return 4 * len(plain) > 5 * len({each.conversation for each in plain}) + sum(
        each.messages // PART for each in plain
    )


def _may_be_whole(parts: list[Conversation]) -> bool:
    """Whether what a piece has of a conversation looks like all of it, and no other one changes what it is."""
    first = parts[0].messages[0].position
    alone = first < 0 and len(parts[0].messages) == 1  # of lines without positions that come one by one many go on
    return first <= 0 and not alone and not any(map(may_be_apart, parts))


def _record(record: Record | Problem, stem: str, notes: Notes) -> Iterator[Item]:
    if isinstance(record, Problem):
        yield record
        return
    if isinstance(record.value, list) and record.value:
        items = [Record(each, inside(record.ref, index)) for index, each in enumerate(record.value)]
        yield from _whole({}, items, record.ref, stem, notes)
        return
    try:
        value = _object(record.value)
        if isinstance(value.get("messages"), list):
            items = [Record(each, inside(record.ref, "messages", i)) for i, each in enumerate(value["messages"])]
            yield from _whole(value, items, record.ref, stem, notes)
        else:
            message = _message(value, record.ref, _conversation(value) or stem, notes)
            yield _part(message.conversation, [message], _about(value))
    except RecordError as error:
        yield Problem(what=error.what, where=str(record.ref), remedy=error.remedy)


def _whole(value: Mapping[str, Any], items: list[Record], ref: SourceRef, stem: str, notes: Notes) -> Iterator[Item]:
    """A record that is a whole conversation: its messages, and what stands beside them."""
    key = _conversation(value) or values.name(value.get("id")) or f"{stem}-{_number(ref)}"
    found: list[Message] = []
    for index, (each, place) in enumerate(items):
        try:
            found.append(_message(_object(each), place, key, notes))
        except RecordError as error:
            yield Problem(what=f"message {index}: {error.what}", where=str(place), remedy=error.remedy)
    if found:
        yield _part(key, found, _about(value))
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
    notes, ref = Notes(), SourceRef(file="")
    message = _message(_object(value), ref, _conversation(value) or "", notes)
    for problem in notes.problems():
        what = problem.what.partition("× ")[2]
        for lenient in (", read as participant", ", read as none", ", taken as unknown"):
            what = what.replace(lenient, "")
        raise RecordError(what, remedy="docs/formats.md lists the keys of a message")
    return msgspec.structs.replace(message, source_ref=None)


def _message(value: Mapping[str, Any], ref: SourceRef, conversation: str, notes: Notes) -> Message:
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
        tool_calls=values.each(value.get("tool_calls"), values.tool_call),
        tool_results=values.each(value.get("tool_results"), values.tool_result),
        source_ref=ref,
    )


def _text(value: Mapping[str, Any]) -> str:
    given = next((value[key] for key in _TEXT if value.get(key) is not None), None)
    text = values.text(given)
    if text is None:
        if given is None and (value.get("tool_calls") or value.get("tool_results")):
            return ""
        what = "a message without text" if given is None else f"a text that is {_kind(given)}"
        raise RecordError(what, remedy="give it 'text' as a string")
    return text


def _role(given: Any, author: str | None, agent: str | None, ref: SourceRef, notes: Notes) -> Role:
    """Without a role: ``agent`` where a global identity is given, that of a name like ``user``, else participant."""
    found = values.role(given)
    if found:
        return found
    if given is not None:
        notes.add(f"unknown role {str(given)[:40]!r}, read as participant", ref)
        return "participant"
    return values.role(author) or ("agent" if agent else "participant")


def _time(value: Mapping[str, Any], ref: SourceRef, notes: Notes) -> Any:
    given = next((value[key] for key in _TIME if value.get(key) is not None), None)
    try:
        return values.time(given)
    except ValueError:
        notes.add("time that cannot be read, taken as unknown; write ISO 8601 or epoch seconds", ref)
        return None


def _position(given: Any, ref: SourceRef, notes: Notes) -> int:
    found = values.count(given)
    if found is None and given is not None:
        notes.add("position that is no whole number from 0, read as none", ref)
    return -1 if found is None else found


def _observed(given: Any, ref: SourceRef, notes: Notes) -> Observed:
    found = OBSERVED.get(given) if isinstance(given, str) else None
    if found is None and given is not None:
        notes.add("observed that is neither yes, no nor unknown, taken as unknown", ref)
    return found or "unknown"


def _about(value: Mapping[str, Any]) -> dict[str, Any]:
    """What a line says of its whole conversation."""
    return {key: value[key] for key in ("title", "timezone") if values.string(value.get(key))}


def _conversation(value: Mapping[str, Any]) -> str | None:
    return _first_name(value, _CONVERSATION)


def _first_name(value: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        found = values.name(value.get(key))
        if found:
            return found
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
