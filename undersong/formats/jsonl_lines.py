"""Blocks of our own JSON Lines cut into runs of plain lines of one conversation, found first and decoded as needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import count
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.formats import values
from undersong.formats.identity import scoped
from undersong.formats.json_stream import DEPTH
from undersong.formats.jsonl_plain import (
    NOT_PLAIN,
    JsonlLine,
    decode,
    decode_lines,
    message_of,
    owner_of,
    time_of,
    time_of_text,
)
from undersong.formats.normalize import other_party
from undersong.formats.spill import SpillLocation
from undersong.models import Conversation, Message, Role, SourceRef

LINE_FEED, RETURN, OPENING, CLOSING = b"\n\r{}"
SHORTEST = 3  # bytes of a line that is an object, with its end
BRACKET, BRACKETS = ord("["), ord("[") & ord("{")  # they differ in one bit
BLANK = ""  # stands for the conversation of an empty line; no conversation has no name
PART = 1000  # messages of one conversation that are handed on together


class _Named(msgspec.Struct, gc=False):
    """What names the conversation of a line, of whatever type."""

    conversation: Any = None
    conversation_id: Any = None
    thread: Any = None
    thread_id: Any = None


class Done(NamedTuple):
    """What was done with the conversations of a piece while its lines were at hand; ``number``: which of them it is."""

    piece: int
    number: int


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
    data: bytes | SpillLocation
    done: Done = UNDONE


class Stretch(NamedTuple):
    """Lines ``start:end`` (bytes of a block) that belong together; ``conversation`` None: a line that is not plain."""

    conversation: str | None
    start: int
    end: int
    line: int
    messages: int


class JsonlBlock(NamedTuple):
    """A block of whole lines cut into stretches.

    ``columns`` are what all lines say, where they have the usual keys alone; else ``lines`` are all of them with their
    times, where none is empty and the block could be decoded at once.
    """

    stretches: list[Stretch]
    lines: Sequence[JsonlLine] = ()
    times: Sequence[datetime | None] = ()
    columns: JsonlColumns | None = None
    breaks: int = 0  # line feeds of the block

    @property
    def decoded(self) -> bool:
        """Whether all lines are at hand as they were decoded."""
        return bool(self.lines) or self.columns is not None


def split_block(block: bytes, stem: str) -> JsonlBlock:
    """Cut a block of whole lines into runs of plain lines of one conversation, and single lines that are not plain.

    Lines count from 0. Plain lines are those that ``messages`` reads without a problem, a note or a doubt; ``stem``
    names the conversation of a line that names none. Empty lines belong to the run around them, or to nobody.
    """
    ends, breaks = _line_ends(block)
    if _at_ends_of_objects(block, ends):
        usual = columns(block)  # which decodes every byte into flat types: nothing nested or not UTF-8 gets through
        if usual is not None and len(usual.ids) == len(ends):
            return JsonlBlock(
                _stretches(len(block), zip(usual.conversations, ends, strict=True)), (), (), usual, breaks
            )
        lines = _decoded(block, len(ends)) if _all_shallow(block, ends) and _is_utf8(block) else []
        if lines:
            names, times = zip(*[owner_of(line, stem) for line in lines], strict=True)
            return JsonlBlock(_stretches(len(block), zip(names, ends, strict=True)), lines, times, None, breaks)
    owners = [(_owner_of(line, stem), end) for line, end in _with_ends(block)]
    return JsonlBlock(_stretches(len(block), owners), breaks=breaks)


def stretches(block: bytes, stem: str) -> list[Stretch]:
    """The stretches of ``split_block``."""
    return split_block(block, stem).stretches


def _stretches(size: int, owners: Iterable[tuple[str | None, int]]) -> list[Stretch]:
    """Stretches of a block of so many bytes, from the conversation of each line and where the line ends."""
    runs: list[Stretch] = []
    key, start, first, messages, at = "", 0, 0, 0, 0
    for number, (own, end) in enumerate(owners):
        if own is not BLANK:
            if messages and (own != key or messages >= PART):
                runs.append(Stretch(key, start, at, first, messages))
                messages = 0
            if own is None:
                runs.append(Stretch(None, at, end - 1, number, 1))
            elif messages:
                messages += 1
            else:
                key, start, first, messages = own, at, number, 1
        at = end
    if messages:
        runs.append(Stretch(key, start, min(at, size), first, messages))
    return runs


def parts_of(block: JsonlBlock, source: str, number: int) -> list[tuple[str, list[Conversation]]]:
    """The conversations of a block whose lines are all decoded, each with its parts, in order of appearance.

    ``number`` is that of the first line. Lines that are not plain are left to the lenient reader.
    """
    parts: dict[str, list[Conversation]] = {}
    if block.columns is not None:
        return _parts_of_columns(block.stretches, block.columns, source, number)
    for stretch in block.stretches:
        if stretch.conversation is not None:
            name, end = stretch.conversation, stretch.line + stretch.messages
            timed_lines = zip(
                count(number + stretch.line),
                block.lines[stretch.line : end],
                block.times[stretch.line : end],
                strict=False,
            )
            messages = [message_of(line, name, SourceRef(file=source, line=at), time) for at, line, time in timed_lines]
            parts.setdefault(name, []).append(_part(name, messages))
    return list(parts.items())


def _parts_of_columns(
    stretches: Sequence[Stretch], columns: JsonlColumns, source: str, number: int
) -> list[tuple[str, list[Conversation]]]:
    parts: dict[str, list[Conversation]] = {}
    times = Counter(each.conversation for each in stretches)
    for stretch in stretches:
        first, once = number + stretch.line, times[stretch.conversation] == 1
        own = columns.part(stretch.line, stretch.line + stretch.messages, source, first, whole=once)
        parts.setdefault(own.id, []).append(own)
    return list(parts.items())


def first_change(data: bytes) -> int | None:
    """Where the second conversation of some lines begins, None where there is one only; 0 where that is not plain."""
    at, first = 0, None
    while (end := data.find(b"\n", at) + 1) > 0:
        try:
            named = _decode_name(data[at:end])
        except NOT_PLAIN:
            return 0
        if first is None:
            first = named
        elif named != first:
            return at
        at = end
    return None


def messages(run: RawRun, data: bytes) -> list[Message]:
    """The messages of a run of plain lines, from its bytes."""
    file, name = run.source, run.conversation
    return [
        message_of(line, name, SourceRef(file=file, line=number), time_of(line))
        for number, line in _numbered(run, data)
    ]


def _numbered(run: RawRun, data: bytes) -> Iterable[tuple[int, JsonlLine]]:
    if data.count(b"\n") == run.messages - (not data.endswith(b"\n")):  # no empty lines between
        return zip(count(run.line), decode_lines(data), strict=False)
    lines = enumerate(data.split(b"\n"), run.line)
    return ((number, decode(line)) for number, line in lines if line and not line.isspace())


def part(run: RawRun, data: bytes) -> Conversation:
    """The run as a part of its conversation, from its bytes."""
    return _part(run.conversation, messages(run, data))


def _part(name: str, messages: list[Message]) -> Conversation:
    return Conversation(id=name, source_format="jsonl", messages=tuple(messages), source_ref=messages[0].source_ref)


def _is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _brackets(data: bytes) -> npt.NDArray[np.bool_]:
    """Which bytes are opening brackets."""
    opening: npt.NDArray[np.bool_] = (np.frombuffer(data, dtype=np.uint8) & BRACKETS) == BRACKET
    return opening


def _is_shallow(line: bytes) -> bool:
    return int(np.count_nonzero(_brackets(line))) <= DEPTH


def _all_shallow(block: bytes, ends: Sequence[int]) -> bool:
    """Whether no line, given where each ends, has more brackets than levels are allowed."""
    opening = _brackets(block)
    if int(np.count_nonzero(opening)) < DEPTH + len(ends):  # every object has at least one
        return True
    places = np.flatnonzero(opening)
    return int(np.diff(np.searchsorted(places, ends), prepend=0).max()) <= DEPTH


def _line_ends(block: bytes) -> tuple[list[int], int]:
    """The place after each line, and how many line feeds there are."""
    ends, at, find = [], 0, block.find
    while (at := find(b"\n", at) + 1) > 0:  # much faster than to look at every byte, where lines are long
        ends.append(at)
    breaks = len(ends)
    if not block.endswith(b"\n"):
        ends.append(len(block) + 1)
    return ends, breaks


def line_feeds(block: bytes) -> int:
    """How many line feeds there are; bytes.count looks at one byte after the other."""
    return int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == LINE_FEED))


def _decoded(block: bytes, number: int) -> list[JsonlLine]:
    """The lines of a block of so many, none where one is not plain."""
    try:
        lines = decode_lines(block)
    except NOT_PLAIN:
        return []
    return lines if len(lines) == number else []


def _at_ends_of_objects(block: bytes, ends: Sequence[int]) -> bool:
    """Whether all line breaks lie between two objects: the decoder takes one inside an object, and none between two."""
    data, breaks = np.frombuffer(block, dtype=np.uint8), np.array(ends[:-1], dtype=np.int64)
    if not len(breaks):
        return True
    if int(breaks[0]) < SHORTEST or not (data[breaks] == OPENING).all():
        return False
    before = data[breaks - 2]
    before = np.where(before == RETURN, data[breaks - 3], before)
    return bool((before == CLOSING).all())


def _with_ends(block: bytes) -> Iterator[tuple[bytes, int]]:
    end = 0
    for line in block.split(b"\n"):
        end += len(line) + 1
        yield line, end


def _owner_of(data: bytes, stem: str) -> str | None:
    if not data or data.isspace():
        return BLANK
    try:
        return owner_of(decode(data), stem)[0] if _is_shallow(data) and _is_utf8(data) else None
    except NOT_PLAIN:
        return None


_decode_name = msgspec.json.Decoder(_Named).decode


class _CommonJsonlLine(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The keys that most lines have; a block with any other key or type is read by the wider structure."""

    id: str
    conversation: str
    author: str
    role: str
    text: str
    position: int = -1
    time: str | None = None
    ts: str | None = None


class JsonlColumns(NamedTuple):
    """What the lines of a block say, each list as long as the block has lines."""

    ids: list[str]
    conversations: list[str]
    authors: list[str]
    roles: list[Role]
    texts: list[str]
    positions: list[int]
    times: Sequence[datetime | None]

    def part(self, start: int, end: int, file: str, line: int, whole: bool) -> Conversation:
        """The messages of lines ``start:end``, all of one conversation, of which ``line`` is the number of the first.

        ``whole``: nothing else is known of it, so that its messages may have the targets that settling would give.
        """
        own = slice(start, end)
        name, authors, roles = self.conversations[start], self.authors[own], self.roles[own]
        agents = _agents(name, authors, roles)
        messages = tuple([
            Message(
                id=each, conversation=name, position=position, author=author, role=role, text=text, agent=agent,
                time=time, target=target, source_ref=SourceRef(file=file, line=number),
            )
            for each, position, author, role, text, agent, time, target, number in zip(
                self.ids[own], self.positions[own], authors, roles, self.texts[own], agents, self.times[own],
                other_party(agents, roles) if whole else [None] * len(agents), count(line), strict=False,
            )
        ])  # fmt: skip
        return Conversation(id=name, source_format="jsonl", messages=messages, source_ref=messages[0].source_ref)


def columns(block: bytes) -> JsonlColumns | None:
    """The columns of a block of lines, each one an object; None where a line has more to say or is in doubt."""
    try:
        lines = _decode_lines(block)
        roles = [values.ROLES[line.role] for line in lines]
        times = _times(lines)
    except (*NOT_PLAIN, KeyError):
        return None
    result = JsonlColumns(
        [line.id for line in lines],
        [line.conversation for line in lines],
        [line.author for line in lines],
        roles,
        [line.text for line in lines],
        _positions([line.position for line in lines]),
        times,
    )
    named = {*result.conversations, *result.authors}
    if "" in named or any(map(str.isspace, named)) or any(map(str.isspace, result.ids)):
        return None
    return result


def _times(lines: Sequence[_CommonJsonlLine]) -> Sequence[datetime | None]:
    raw_times = [line.ts if line.time is None else line.time for line in lines]
    if not any(raw_times) and "" not in raw_times:
        return [None] * len(raw_times)
    return [None if each is None else time_of_text(each) for each in raw_times]


def _positions(positions: list[int]) -> list[int]:
    if min(positions, default=0) >= 0 and max(positions, default=0) < values.INTEGERS:
        return positions
    return [each if 0 <= each < values.INTEGERS else -1 for each in positions]


def _agents(conversation: str, authors: Sequence[str], roles: Sequence[Role]) -> list[str]:
    """The identity that patterns follow, as settling has it where the source names none."""
    identities: dict[Any, str] = {
        (author, role): author if role == "agent" else scoped(conversation, author)
        for author, role in {*zip(authors, roles, strict=True)}
    }
    return [identities[each] for each in zip(authors, roles, strict=True)]


_decode_lines = msgspec.json.Decoder(_CommonJsonlLine).decode_lines
