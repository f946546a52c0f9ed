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

from undersong.models import TRAITS, Row, TraitScores
from undersong.rows.binary import microseconds

TimelineKey: TypeAlias = tuple[str, str | None]  # a timeline: its agent, and its conversation where that has no times
RowKey: TypeAlias = tuple[int, int, str, str]  # time (0: none), position, id, conversation: the order within a timeline

_LEFT_OUT: dict[str, Any] = {
    "time": None, "text": None, "reasons": (), "reason": None, "hits": (), "labels": (), "hard_constraints": (),
    "source_ref": None, "judge_hash": None,
}  # fmt: skip
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Row)} | {"flags": {}, "signals": {}}
_IDENTITY = ("id", "conversation", "position", "agent")
_STORED_FIELDS = [each for each in _DEFAULTS.items() if each[0] not in (*_IDENTITY, *_LEFT_OUT, "traits")]
_field_values = attrgetter(*(name for name, _ in _STORED_FIELDS))
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[dict[str, Any], list[float | None] | TraitScores | None]).decode


class LoggedRow(msgspec.Struct, gc=False):
    """A row: where it stands in its conversation, the time that it came with and the one that it counts at."""

    agent: str
    position: int
    own: int | None
    time: int | None
    packed: bytes


class TimelineChange(NamedTuple):
    """A row that came to a timeline or, as ``removed`` says, left it."""

    line: TimelineKey
    key: RowKey
    removed: bool


class ConversationLog:
    """The rows of one conversation by id; ``last`` and ``last_time`` are of the furthest one."""

    __slots__ = ("last", "last_time", "rows", "timeless")

    def __init__(self) -> None:
        self.rows: dict[str, LoggedRow] = {}
        self.last: tuple[int, str] = (-1, "")
        self.last_time: int | None = None
        self.timeless = 0


class RowLog:
    """Every row given so far that is in a timeline, the last one given for each id of a conversation."""

    def __init__(self) -> None:
        self.conversations: dict[str, ConversationLog] = {}
        self.timelines: dict[TimelineKey, list[RowKey]] = {}
        self._fresh: dict[tuple[str, str], Row] = {}  # given since the last ``settled``, so that they need no unpacking

    def put(self, row: Row) -> list[TimelineChange]:
        """Keep a row and say what changed: nothing on an abandoned branch or where it was there."""
        if row.branch is not None:
            return []
        log = self.conversations.setdefault(row.conversation, ConversationLog())
        own, row = _own_time(row), slim(row)
        logged = LoggedRow(row.agent, row.position, own, None, _pack(row))
        before = log.rows.get(row.id)
        if before is not None and _content(before) == _content(logged):
            return []
        self._fresh[row.conversation, row.id] = row
        changes = [] if before is None else [self._remove(row.conversation, row.id, log, before)]
        return changes + self._insert(row, log, logged, replaces=before is not None)

    def get(self, conversation: str, row_id: str) -> Row | None:
        """The row stored under an id."""
        log = self.conversations.get(conversation)
        logged = log.rows.get(row_id) if log else None
        return None if logged is None else _row(conversation, row_id, logged)

    def rows(self, line: TimelineKey) -> Iterator[tuple[Row, int | None]]:
        """The rows of a timeline with their times, in order."""
        return (self.row(key) for key in self.timelines.get(line, ()))

    def since(self, line: TimelineKey, last: RowKey | None) -> Iterator[tuple[RowKey, Row, int | None]]:
        """The rows of a timeline after a key (None: all), in order."""
        keys = self.timelines[line]
        return ((key, *self.row(key)) for key in keys[0 if last is None else bisect_right(keys, last) :])

    def row(self, key: RowKey) -> tuple[Row, int | None]:
        """One row with its time."""
        logged = self.conversations[key[3]].rows[key[2]]
        return self._fresh.get((key[3], key[2])) or _row(key[3], key[2], logged), logged.time

    def clear_fresh(self) -> None:
        """The rows given so far have been looked at."""
        self._fresh.clear()

    def _insert(self, row: Row, log: ConversationLog, logged: LoggedRow, *, replaces: bool) -> list[TimelineChange]:
        """Add a row; where its time or that of others depends on more than the row before it, all are settled anew."""
        place = (row.position, row.id)
        furthest = place > log.last
        settled = log.last_time is not None or not log.rows
        log.rows[row.id] = logged
        log.timeless += logged.own is None
        if logged.own is not None and not log.timeless:
            logged.time = logged.own
        elif furthest and not replaces and (logged.own is None or settled):
            logged.time = log.last_time if logged.own is None else logged.own
        else:
            return self._reassign_times(row.conversation, log, new=row.id)
        if place >= log.last:
            log.last, log.last_time = place, logged.time
        return [self._add(row.conversation, row.id, logged)]

    def _reassign_times(self, conversation: str, log: ConversationLog, new: str) -> list[TimelineChange]:
        """Give every row of a conversation its time anew, and move those whose time has changed."""
        ordered = sorted(log.rows.items(), key=lambda item: (item[1].position, item[0]))
        time = next((kept.own for _, kept in ordered if kept.own is not None), None)
        changes = []
        for name, logged in ordered:
            time = time if logged.own is None else logged.own
            if name != new and logged.time == time:
                continue
            if name != new:
                changes.append(self._drop(conversation, name, logged))
            logged.time = time
            changes.append(self._add(conversation, name, logged))
        name, logged = ordered[-1]
        log.last, log.last_time = (logged.position, name), logged.time
        return changes

    def _remove(self, conversation: str, name: str, log: ConversationLog, logged: LoggedRow) -> TimelineChange:
        change = self._drop(conversation, name, logged)
        del log.rows[name]
        log.timeless -= logged.own is None
        if (logged.position, name) == log.last:
            rest = max(((each.position, other, each.time) for other, each in log.rows.items()), default=(-1, "", None))
            log.last, log.last_time = rest[:2], rest[2]
        return change

    def _add(self, conversation: str, name: str, logged: LoggedRow) -> TimelineChange:
        line, key = _timeline_key(conversation, logged), _row_key(conversation, name, logged)
        keys = self.timelines.setdefault(line, [])
        if not keys or keys[-1] < key:
            keys.append(key)
        else:
            insort(keys, key)
        return TimelineChange(line, key, removed=False)

    def _drop(self, conversation: str, name: str, logged: LoggedRow) -> TimelineChange:
        line, key = _timeline_key(conversation, logged), _row_key(conversation, name, logged)
        keys = self.timelines[line]
        del keys[bisect_left(keys, key)]
        return TimelineChange(line, key, removed=True)


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
    """What a slim row says beyond its identity, without what is at its default; all twelve scores without names."""
    pairs = zip(_STORED_FIELDS, _field_values(row), strict=True)
    values = {name: value for (name, default), value in pairs if value is not default and value != default}
    scores = row.traits
    whole = scores is not None and len(scores) == len(TRAITS)
    return _encode((values, [*map(scores.get, TRAITS)] if scores is not None and whole else scores))


def _unpack(packed: bytes, **identity: str | int) -> Row:
    values, scores = _decode(packed)
    if scores is not None:
        values["traits"] = dict(zip(TRAITS, scores, strict=True)) if isinstance(scores, list) else scores
    return slim(msgspec.convert(values | identity, Row))


def _row(conversation: str, name: str, logged: LoggedRow) -> Row:
    return _unpack(logged.packed, id=name, conversation=conversation, position=logged.position, agent=logged.agent)


def _content(logged: LoggedRow) -> tuple[str, int, int | None, bytes]:
    return logged.agent, logged.position, logged.own, logged.packed


def _own_time(row: Row) -> int | None:
    return None if row.time is None else microseconds(row.time)


def _timeline_key(conversation: str, logged: LoggedRow) -> TimelineKey:
    return logged.agent, conversation if logged.time is None else None


def _row_key(conversation: str, name: str, logged: LoggedRow) -> RowKey:
    return logged.time or 0, logged.position, name, conversation
