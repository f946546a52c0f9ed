"""Rows → timelines (one agent's rows in order) → partitions (what a rule runs over)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from typing import NamedTuple

import msgspec

from undersong.models import Row
from undersong.rows.binary import microseconds


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A row at its place: ``time`` in microseconds since 1970 (inherited where the row has none), None if untimed.

    There are as many as rows, so the collector of cycles does not look at them: nothing of a row leads back to it.
    """

    row: Row
    time: int | None
    place: int

    @property
    def read(self) -> bool:
        """Whether the row has scores; every other state is a hole."""
        return self.row.state == "scored"


class Timeline(NamedTuple):
    """One agent's rows in order: (time, position, id). An untimed conversation is a timeline of its own.

    ``latest`` is the time of its last row, whichever of its rows a rule looks at; 0 without times.
    """

    agent: str
    conversation: str | None
    entries: Sequence[Entry]
    latest: int = 0

    @property
    def timed(self) -> bool:
        """Whether the rows have event times."""
        return bool(self.entries) and self.entries[0].time is not None


class SequenceAddress(NamedTuple):
    """What names a sequence: its timeline, and the target and the conversation where a rule parts rows by them."""

    timeline: Timeline
    target: str | None
    conversation: str | None

    def key(self, partition_by: Sequence[str]) -> dict[str, str | None]:
        """What names this sequence within its rule."""
        key: dict[str, str | None] = {"agent": self.timeline.agent}
        if "target" in partition_by:
            key["target"] = self.target
        if self.conversation is not None or self.timeline.conversation is not None:
            key["conversation"] = self.conversation or self.timeline.conversation
        return key


class Partition(NamedTuple):
    """The rows that a rule runs over: ``holes[i]`` are the unread rows just before read row i."""

    timeline: Timeline
    target: str | None
    conversation: str | None
    rows: tuple[Entry, ...]
    holes: tuple[tuple[str, ...], ...]

    def key(self, partition_by: Sequence[str]) -> dict[str, str | None]:
        """What names this sequence within its rule."""
        return SequenceAddress(self.timeline, self.target, self.conversation).key(partition_by)


class PartitionGroup(NamedTuple):
    """What the partitions of one timeline share: public rows belong to every target's. ``public`` holds all rows
    where a rule does not part them by target.
    """

    timeline: Timeline
    conversation: str | None
    public: tuple[Entry, ...]
    directed: Mapping[str, Sequence[Entry]]

    @property
    def targets(self) -> tuple[str | None, ...]:
        """None for the public rows alone, then each target."""
        return None, *sorted(self.directed)

    def partition(self, target: str | None) -> Partition:
        """The public rows and those directed at the target, in order."""
        own = () if target is None else self.directed[target]
        rows: list[Entry] = []
        holes: list[tuple[str, ...]] = []
        unread: list[str] = []
        for entry in merge(self.public, own, key=lambda entry: entry.place):
            if entry.read:
                rows.append(entry)
                holes.append(tuple(unread))
                unread = []
            else:
                unread.append(entry.row.id)
        return Partition(self.timeline, target, self.conversation, tuple(rows), tuple(holes))


def timelines(rows: Iterable[Row]) -> tuple[Timeline, ...]:
    """One timeline per agent, and one per agent and untimed conversation; the order of ``rows`` does not matter.

    Rows of abandoned branches are left out. Of two rows with the same id in one conversation, the later given stands.
    A row without a time has its predecessor's within its conversation; before the first known time, that one.
    """
    grouped: dict[tuple[str, str | None], list[tuple[int | None, Row]]] = {}
    for conversation, members in _conversations(rows).items():
        for time, row in _with_times(members):
            grouped.setdefault((row.agent, conversation if time is None else None), []).append((time, row))
    return tuple(_timeline(*key, grouped[key]) for key in sorted(grouped, key=_text_key))


def groups(timeline: Timeline, partition_by: Sequence[str]) -> Iterator[PartitionGroup]:
    """The rows of a timeline per conversation, and within it per target beside the public ones, as the rule asks."""
    for conversation, entries in _by_conversation(timeline, partition_by):
        if "target" not in partition_by:
            yield PartitionGroup(timeline, conversation, tuple(entries), {})
            continue
        directed: dict[str, list[Entry]] = {}
        for entry in entries:
            if entry.row.target is not None:
                directed.setdefault(entry.row.target, []).append(entry)
        public = tuple(entry for entry in entries if entry.row.target is None)
        yield PartitionGroup(timeline, conversation, public, directed)


def partitions(timeline: Timeline, partition_by: Sequence[str]) -> Iterator[Partition]:
    """Every partition of a timeline: the public rows alone, and with each target's."""
    for group in groups(timeline, partition_by):
        for target in group.targets:
            yield group.partition(target)


def limits(partition: Partition, within: int | None, max_unread: int | None, closed: Sequence[bool]) -> list[int]:
    """For each read row, one past the furthest that a match from it may take.

    A match ends before more than ``max_unread`` holes in one gap, before and at a ``closed`` row (``until``), and
    within ``within`` microseconds of its first row, inclusive; rows without times have no such bound.
    """
    rows = partition.rows
    ends = [0] * len(rows)
    segment = len(rows)
    for i in range(len(rows) - 1, -1, -1):
        if closed[i]:
            ends[i] = segment = i
            continue
        ends[i] = segment
        if max_unread is not None and len(partition.holes[i]) > max_unread:
            segment = i
    if within is not None and partition.timeline.timed:
        _bound_by_time(rows, ends, within)
    return ends


def _bound_by_time(rows: Sequence[Entry], ends: list[int], within: int) -> None:
    last = 0
    for i, first in enumerate(rows):
        last = max(last, i)
        while last < len(rows) and (rows[last].time or 0) - (first.time or 0) <= within:
            last += 1
        ends[i] = min(ends[i], last)


def _conversations(rows: Iterable[Row]) -> dict[str, list[Row]]:
    unique: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row.branch is None:
            unique[row.conversation, row.id] = row
    grouped: dict[str, list[Row]] = {}
    for row in sorted(unique.values(), key=lambda row: (row.conversation, row.position, row.id)):
        grouped.setdefault(row.conversation, []).append(row)
    return grouped


def _with_times(rows: Sequence[Row]) -> Iterator[tuple[int | None, Row]]:
    last_time = next((row.time for row in rows if row.time is not None), None)
    for row in rows:
        last_time = row.time if row.time is not None else last_time
        yield (None if last_time is None else microseconds(last_time)), row


def _timeline(agent: str, conversation: str | None, rows: list[tuple[int | None, Row]]) -> Timeline:
    ordered = sorted(rows, key=lambda item: (item[0] or 0, item[1].position, item[1].id, item[1].conversation))
    entries = tuple(Entry(row, time, place) for place, (time, row) in enumerate(ordered))
    return Timeline(agent, conversation, entries, (entries[-1].time or 0) if entries else 0)


def _by_conversation(timeline: Timeline, partition_by: Sequence[str]) -> Iterator[tuple[str | None, Sequence[Entry]]]:
    if "conversation" not in partition_by or timeline.conversation is not None:
        yield timeline.conversation, timeline.entries
        return
    grouped: dict[str, list[Entry]] = {}
    for entry in timeline.entries:
        grouped.setdefault(entry.row.conversation, []).append(entry)
    yield from sorted(grouped.items())


def _text_key(key: tuple[str, str | None]) -> tuple[str, str]:
    return key[0], key[1] or ""
