"""The rows of a live run, packed, in the order of their timelines: what a late row is replayed from.

The order and the times are those of ``partitions.timelines``: a row without a time has its predecessor's within its
conversation, before the first known time that one, and conversations without any time are timelines of their own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from operator import attrgetter
from sys import intern
from typing import Any, NamedTuple, TypeAlias

import msgspec

from undersong.models import TRAITS, Row
from undersong.patterns.partitions import microseconds

Line: TypeAlias = tuple[str, str | None]  # a timeline: its agent, and its conversation where that has no times
Key: TypeAlias = tuple[int, int, str, str]  # time (0: none), position, id, conversation: the order within a timeline

_LEFT_OUT: dict[str, Any] = {
    "time": None, "text": None, "reasons": (), "reason": None, "hits": (), "labels": (), "hard_constraints": (),
    "source_ref": None, "judge_hash": None,
}  # fmt: skip
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Row)} | {"flags": {}, "signals": {}}
_IDENTITY = ("id", "conversation", "position", "agent")
_SAID = [each for each in _DEFAULTS.items() if each[0] not in (*_IDENTITY, *_LEFT_OUT, "traits")]
_said = attrgetter(*(name for name, _ in _SAID))
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[dict[str, Any], list[float | None] | None]).decode


class Kept(msgspec.Struct, gc=False):
    """A row: where it stands in its conversation, the time that it came with and the one that it counts at."""

    agent: str
    position: int
    own: int | None
    time: int | None
    packed: bytes


class Change(NamedTuple):
    """A row that came to a timeline or, as ``gone`` says, left it."""

    line: Line
    key: Key
    gone: bool


class Conversation:
    """The rows of one conversation by id; ``last`` and ``last_time`` are of the furthest one."""

    __slots__ = ("last", "last_time", "rows", "timeless")

    def __init__(self) -> None:
        self.rows: dict[str, Kept] = {}
        self.last: tuple[int, str] = (-1, "")
        self.last_time: int | None = None
        self.timeless = 0


class Archive:
    """Every row given so far that is in a timeline, the last one given for each id of a conversation."""

    def __init__(self) -> None:
        self.conversations: dict[str, Conversation] = {}
        self.lines: dict[Line, list[Key]] = {}
        self._fresh: dict[tuple[str, str], Row] = {}  # given since the last ``settled``, so that they need no unpacking

    def put(self, row: Row) -> list[Change]:
        """Keep a row and say what changed: nothing on an abandoned branch or where it was there."""
        if row.branch is not None:
            return []
        known = self.conversations.setdefault(row.conversation, Conversation())
        own, row = _own_time(row), slim(row)
        kept = Kept(row.agent, row.position, own, None, _pack(row))
        before = known.rows.get(row.id)
        if before is not None and _content(before) == _content(kept):
            return []
        self._fresh[row.conversation, row.id] = row
        changes = [] if before is None else [self._remove(row.conversation, row.id, known, before)]
        return changes + self._insert(row, known, kept, replaces=before is not None)

    def get(self, conversation: str, row_id: str) -> Row | None:
        """The row that is kept under an id."""
        known = self.conversations.get(conversation)
        kept = known.rows.get(row_id) if known else None
        return None if kept is None else _row(conversation, row_id, kept)

    def rows(self, line: Line) -> Iterator[tuple[Row, int | None]]:
        """The rows of a timeline with their times, in order."""
        return (self.row(key) for key in self.lines.get(line, ()))

    def since(self, line: Line, last: Key | None) -> Iterator[tuple[Key, Row, int | None]]:
        """The rows of a timeline after a key (None: all), in order."""
        keys = self.lines[line]
        return ((key, *self.row(key)) for key in keys[0 if last is None else bisect_right(keys, last) :])

    def row(self, key: Key) -> tuple[Row, int | None]:
        """One row with its time."""
        kept = self.conversations[key[3]].rows[key[2]]
        return self._fresh.get((key[3], key[2])) or _row(key[3], key[2], kept), kept.time

    def settled(self) -> None:
        """The rows given so far have been looked at."""
        self._fresh.clear()

    def _insert(self, row: Row, known: Conversation, kept: Kept, *, replaces: bool) -> list[Change]:
        """Add a row; where its time or that of others depends on more than the row before it, all are settled anew."""
        place = (row.position, row.id)
        furthest = place > known.last
        settled = known.last_time is not None or not known.rows
        known.rows[row.id] = kept
        known.timeless += kept.own is None
        if kept.own is not None and not known.timeless:
            kept.time = kept.own
        elif furthest and not replaces and (kept.own is None or settled):
            kept.time = known.last_time if kept.own is None else kept.own
        else:
            return self._settle(row.conversation, known, new=row.id)
        if place >= known.last:
            known.last, known.last_time = place, kept.time
        return [self._add(row.conversation, row.id, kept)]

    def _settle(self, conversation: str, known: Conversation, new: str) -> list[Change]:
        """Give every row of a conversation its time anew, and move those whose time has changed."""
        ordered = sorted(known.rows.items(), key=lambda item: (item[1].position, item[0]))
        time = next((kept.own for _, kept in ordered if kept.own is not None), None)
        changes = []
        for name, kept in ordered:
            time = time if kept.own is None else kept.own
            if name != new and kept.time == time:
                continue
            if name != new:
                changes.append(self._drop(conversation, name, kept))
            kept.time = time
            changes.append(self._add(conversation, name, kept))
        name, kept = ordered[-1]
        known.last, known.last_time = (kept.position, name), kept.time
        return changes

    def _remove(self, conversation: str, name: str, known: Conversation, kept: Kept) -> Change:
        change = self._drop(conversation, name, kept)
        del known.rows[name]
        known.timeless -= kept.own is None
        if (kept.position, name) == known.last:
            rest = max(
                ((each.position, other, each.time) for other, each in known.rows.items()), default=(-1, "", None)
            )
            known.last, known.last_time = rest[:2], rest[2]
        return change

    def _add(self, conversation: str, name: str, kept: Kept) -> Change:
        line, key = _line(conversation, kept), _key(conversation, name, kept)
        keys = self.lines.setdefault(line, [])
        if not keys or keys[-1] < key:
            keys.append(key)
        else:
            insort(keys, key)
        return Change(line, key, gone=False)

    def _drop(self, conversation: str, name: str, kept: Kept) -> Change:
        line, key = _line(conversation, kept), _key(conversation, name, kept)
        keys = self.lines[line]
        del keys[bisect_left(keys, key)]
        return Change(line, key, gone=True)


def slim(row: Row) -> Row:
    """The row without what no rule can ask for; flags alone tell what was flagged, the archive its time."""
    flags = row.flags
    if row.labels or row.hits:
        seen = (*row.labels, *(name for hit in row.hits for name in (hit.label, hit.trait)))
        flags = flags | {name: 1 for name in seen if not flags.get(name)}
    return msgspec.structs.replace(
        row,
        agent=intern(row.agent),
        target=row.target and intern(row.target),
        conversation=intern(row.conversation),
        flags=flags,
        **_LEFT_OUT,
    )


def _pack(row: Row) -> bytes:
    """What a slim row says beyond its identity, without what is at its default; scores without their names."""
    said = zip(_SAID, _said(row), strict=True)
    given = {name: value for (name, default), value in said if value is not default and value != default}
    return _encode((given, None if row.traits is None else [row.traits.get(trait) for trait in TRAITS]))


def _unpack(packed: bytes, **identity: str | int) -> Row:
    given, scores = _decode(packed)
    if scores is not None:
        given["traits"] = {trait: score for trait, score in zip(TRAITS, scores, strict=True) if score is not None}
    return slim(msgspec.convert(given | identity, Row))


def _row(conversation: str, name: str, kept: Kept) -> Row:
    return _unpack(kept.packed, id=name, conversation=conversation, position=kept.position, agent=kept.agent)


def _content(kept: Kept) -> tuple[str, int, int | None, bytes]:
    return kept.agent, kept.position, kept.own, kept.packed


def _own_time(row: Row) -> int | None:
    return None if row.time is None else microseconds(row.time)


def _line(conversation: str, kept: Kept) -> Line:
    return kept.agent, conversation if kept.time is None else None


def _key(conversation: str, name: str, kept: Kept) -> Key:
    return kept.time or 0, kept.position, name, conversation
