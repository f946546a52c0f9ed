"""Temporary storage of the parts of conversations, so that interleaved and repeated ones need no memory."""

from __future__ import annotations

import os
import sqlite3
from bisect import bisect
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from tempfile import TemporaryFile
from typing import NamedTuple

import msgspec

from undersong.errors import StoreError
from undersong.formats.normalize import claimed_conversations, known_conversations, mark_ambiguous_agents
from undersong.formats.sources import unused_stem
from undersong.models import Conversation, Message

CACHE_KIB = 2 << 10  # of the index; what is beyond lies on disk
BUFFER = 4096  # messages held before they are written


class SpillFile(AbstractContextManager["SpillFile"]):
    """Bytes in a temporary file; raises StoreError where the disk is full."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 - closed with the spill file

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def put(self, data: bytes) -> tuple[int, int]:
        """Append bytes; returns their offset and size."""
        try:
            offset = self._file.seek(0, os.SEEK_END)
            self._file.write(data)
        except OSError as error:
            raise _disk_full(error) from error
        return offset, len(data)

    def get(self, offset: int, size: int) -> bytes:
        """The bytes at a place that ``put`` returned."""
        try:
            self._file.seek(offset)
            return self._file.read(size)
        except OSError as error:  # what was put may not be written yet
            raise _disk_full(error) from error


class Clash(NamedTuple):
    """A conversation whose id one of another format has too; ``first`` and ``file`` are the numbers of their inputs."""

    conversation: str
    form: str
    name: str
    first: int
    file: int


class SpooledConversation(NamedTuple):
    """The encoded parts of a conversation in the order of arrival, which can be sent to another process.

    ``rivals``: the conversations of the run, escaped, whose authors its agents may be taken for. ``number`` is that of
    its first part in the run. ``read`` are the parts themselves where they are still in memory; they are not sent.
    """

    conversation: str
    parts: tuple[bytes, ...]
    rivals: frozenset[str]
    number: int
    read: tuple[Conversation, ...] = ()

    def __reduce__(self) -> tuple[type[SpooledConversation], tuple[object, ...]]:
        return SpooledConversation, (self.conversation, self.parts, self.rivals, self.number)

    @property
    def size(self) -> int:
        """About how many bytes of input it stands for."""
        return sum(map(len, self.parts))

    def decoded(self) -> list[Conversation]:
        """The parts."""
        if self.read:
            return list(self.read)
        conversations = [
            part if part.id == self.conversation else msgspec.structs.replace(part, id=self.conversation)
            for data in self.parts
            for part in _decode(data)
        ]
        return [mark_ambiguous_agents(part, self.rivals.__contains__) for part in conversations]


class Spool(AbstractContextManager["Spool"]):
    """A temporary database that vanishes when it is closed; raises StoreError where the disk is full.

    ``early``: ``take_whole`` gives conversations that seem whole while the input is read, until one of them goes on.
    """

    def __init__(self, *, early: bool = False) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("BEGIN")
        self._database.execute(
            "CREATE TABLE part"
            " (number INTEGER PRIMARY KEY, conversation TEXT, format TEXT, file INTEGER, offset INTEGER, size INTEGER)"
        )
        self._database.execute("CREATE INDEX by_conversation ON part (conversation, format, number)")
        self._database.execute("CREATE TABLE claim (conversation TEXT, format TEXT, claimed TEXT)")
        self._database.execute("CREATE UNIQUE INDEX claimed_by ON claim (conversation, format, claimed)")
        self._data = SpillFile()
        self._unwritten: dict[tuple[str, str, int], list[Conversation]] = {}
        self._early, self._whole = early, list[SpooledConversation]()
        self._messages = self._number = 0
        self._file = self._file_start = 0  # the file of the last part, and the number that its first one may have

    def __exit__(self, *exc: object) -> None:
        self._database.close()
        self._data.__exit__(*exc)

    def add(self, part: Conversation, file: int) -> int:
        """Store a part that was read from the input of this number; returns its number of messages."""
        if file != self._file:
            self._file, self._file_start = file, self._number
        self._unwritten.setdefault((part.id, part.source_format, file), []).append(part)
        self._messages += len(part.messages)
        if self._messages >= BUFFER:
            self._write_early() if self._early else self._write()
        return len(part.messages)

    def distinct(self, part: Conversation, file: int) -> tuple[Conversation | None, str]:
        """A whole conversation as it is to be stored, None where it stands there already, and what to say of it.

        Another conversation of the input has its id where the two share no message's id and neither begins with the
        messages of the other: then this one is ID~2, ID~3, … One that goes on where the other ends adds the rest.
        """
        name, number = part.id, 2
        while earlier := self._of_file(name, part.source_format, file):
            earlier_contents = {(message.id, _said(message)) for message in earlier if message.id}
            if any((message.id, _said(message)) in earlier_contents for message in part.messages if message.id):
                return msgspec.structs.replace(part, id=name), ""
            shared = _shared(earlier, part.messages)
            if shared == len(part.messages):
                return None, f"conversation {name[:80]!r} repeats an earlier one and is read once"
            if shared == len(earlier):
                rest = part.messages[shared:]
                return msgspec.structs.replace(part, id=name, messages=rest), ""
            name, number = f"{part.id}~{number}", number + 1
        if name == part.id:
            return part, ""
        what = f"conversation {part.id[:80]!r} has the id of another one; kept apart as {name[:90]!r}"
        return msgspec.structs.replace(part, id=name), what

    def _of_file(self, conversation: str, form: str, file: int) -> list[Message]:
        """The messages that an input has given of a conversation so far."""
        query = "SELECT offset, size FROM part WHERE conversation = ? AND format = ? AND file = ? ORDER BY number"
        places = self._database.execute(query, (conversation, form, file))
        parts = [part for place in places for part in _decode(self._data.get(*place))]
        parts += self._unwritten.get((conversation, form, file), [])
        return [message for part in parts for message in part.messages]

    def take_whole(self) -> list[SpooledConversation]:
        """Conversations, in order, that seem whole and were not taken; ``is_whole`` says afterwards if they were."""
        whole, self._whole = self._whole, []
        return whole

    def is_whole(self, numbers: range) -> bool:
        """Whether each of these parts is a conversation of which no other part was read, in any format."""
        other = "SELECT 1 FROM part AS other WHERE other.conversation = part.conversation AND number <> part.number"
        query = f"SELECT 1 FROM part WHERE number >= ? AND number < ? AND EXISTS ({other}) LIMIT 1"
        return self._database.execute(query, (numbers.start, numbers.stop)).fetchone() is None

    def count(self, file: int) -> int:
        """How many conversations the input that is being read has a part of."""
        self._write()
        query = "SELECT count(DISTINCT conversation) FROM part WHERE file = ? AND number >= ?"
        return int(self._database.execute(query, (file, self._file_start)).fetchone()[0])

    def clashes(self) -> list[Clash]:
        """Conversations that have the id of one of another format, which came first; they get a name of their own."""
        self._write()
        several = "SELECT conversation FROM part GROUP BY conversation HAVING min(format) < max(format)"
        formats_query = (
            "SELECT format, min(number), file FROM part WHERE conversation = ? GROUP BY format ORDER BY min(number)"
        )
        clashes: list[Clash] = []
        taken: set[str] = set()
        for (conversation,) in self._database.execute(several).fetchall():
            (_, _, first), *others = self._database.execute(formats_query, (conversation,)).fetchall()
            for form, _, file in others:
                name = self._free(conversation, taken)
                clashes.append(Clash(conversation, form, name, first, file))
        return clashes

    def stored(self, done: Sequence[range] = ()) -> Iterator[SpooledConversation]:
        """Each conversation with its parts in the order of arrival, conversations in the order of their first part.

        ``done`` are numbers of parts, ascending, whose conversations are left out.
        """
        self._write()
        names = {(clash.conversation, clash.form): clash.name for clash in self.clashes()}
        renamed = frozenset(names.values())
        starts = [numbers.start for numbers in done]
        order = "SELECT min(number), conversation, format FROM part GROUP BY conversation, format ORDER BY 1"
        parts_query = "SELECT offset, size FROM part WHERE conversation = ? AND format = ? ORDER BY number"
        claims_query = "SELECT claimed FROM claim WHERE conversation = ? AND format = ?"
        for number, *key in self._database.execute(order):
            if (before := bisect(starts, number)) and number in done[before - 1]:
                continue
            parts = tuple(self._data.get(*place) for place in self._database.execute(parts_query, key))
            claims = [claimed for (claimed,) in self._database.execute(claims_query, key)]
            rivals = known_conversations(claims, lambda name: name in renamed or self._has(name))
            yield SpooledConversation(names.get((key[0], key[1]), key[0]), parts, rivals, number)

    def conversations(self) -> Iterator[list[Conversation]]:
        """The parts of each conversation."""
        return map(SpooledConversation.decoded, self.stored())

    def _free(self, conversation: str, taken: set[str]) -> str:
        """ID~2, ID~3, …: the first that no conversation of the run has."""
        while self._has(name := unused_stem(conversation, taken)):
            continue
        return name

    def _has(self, conversation: str) -> bool:
        query = "SELECT 1 FROM part WHERE conversation = ? LIMIT 1"
        return self._database.execute(query, (conversation,)).fetchone() is not None

    def _write_early(self) -> None:
        """Write all but the conversation that came last, which may go on, and hand out what seems whole.

        No more is handed out once a conversation goes on, or an agent may be taken for another conversation's author.
        """
        if len(self._unwritten) == 1:
            return
        key, last = self._unwritten.popitem()
        names = [conversation for conversation, _, _ in self._unwritten]
        repeated = len({*names, key[0]}) <= len(names) or any(map(self._has, names))
        whole, claimed = self._write()
        self._early = not repeated and not claimed
        self._whole += whole if self._early else []
        self._unwritten[key], self._messages = last, sum(len(part.messages) for part in last)

    def _write(self) -> tuple[list[SpooledConversation], bool]:
        """Write the parts; returns them by conversation, and whether an agent may be taken for another's author."""
        written, rows, claims = [], [], []
        for number, ((conversation, form, file), group) in enumerate(self._unwritten.items(), self._number):
            data = _encode(group)
            rows.append((number, conversation, form, file, *self._data.put(data)))
            claims += [(conversation, form, name) for part in group for name in claimed_conversations(part)]
            written.append(SpooledConversation(conversation, (data,), frozenset(), number, tuple(group)))
        try:
            self._database.executemany("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", rows)
            self._database.executemany("INSERT OR IGNORE INTO claim VALUES (?, ?, ?)", claims)
        except sqlite3.Error as error:
            raise _disk_full(error) from error
        self._number += len(rows)
        self._unwritten, self._messages = {}, 0
        return written, bool(claims)


def _shared(one: Sequence[Message], other: Sequence[Message]) -> int:
    """With how many of the same messages two conversations begin."""
    shared = 0
    for first, second in zip(one, other, strict=False):
        if _said(first) != _said(second):
            break
        shared += 1
    return shared


def _said(message: Message) -> tuple[object, ...]:
    calls = _encode(message.tool_calls) if message.tool_calls else b""
    return message.author, message.role, message.text, message.time, message.branch, calls


def _disk_full(error: Exception) -> StoreError:
    return StoreError(f"no room to sort the input: {error}", remedy="free space in TMPDIR")


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Conversation]).decode
