"""Parts of conversations put together on disk, so that interleaved and repeated ones need no memory."""

from __future__ import annotations

import hashlib
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import chain, groupby
from typing import NamedTuple

import msgspec

from undersong.errors import StoreError
from undersong.formats.identity import mark_ambiguous_agents, scoped
from undersong.formats.jsonl_lines import UNDONE, Done, RawRun, part
from undersong.formats.sources import unused_stem
from undersong.formats.spill import SpillFile, SpillLocation
from undersong.models import Conversation

CACHE_KIB = 2 << 10  # of the index; what is beyond lies on disk
BUFFER = 4096  # messages held before they are written
DIGEST = 16  # bytes that stand for the name of a conversation


class _Raw(NamedTuple):
    """A run of plain lines that waits on disk; one of several in a row of the index."""

    source: str
    line: int
    messages: int
    process: int
    offset: int
    size: int
    piece: int
    number: int


RAW_NUMBERS = len(_Raw._fields) - 1
SIZE = _Raw._fields.index("size") - 1


class Clash(NamedTuple):
    """A conversation whose id one of another format has too; ``first`` and ``file`` are the numbers of their inputs."""

    conversation: str
    form: str
    name: str
    first: int
    file: int


class SpooledConversation(NamedTuple):
    """A conversation as it lies in the spool, small enough to be sent to another process.

    Each part is the encoded Conversations of a source, or (with the name of the source) places of plain lines.
    """

    conversation: str
    parts: tuple[tuple[str | None, bytes], ...]
    digests: SpillLocation  # where the digests of all conversations of the run are
    renamed: bool

    @property
    def size(self) -> int:
        """About how many bytes of input it stands for."""
        return sum(
            len(data) if source is None else sum(array("q", data)[SIZE::RAW_NUMBERS]) for source, data in self.parts
        )

    @property
    def done(self) -> Done:
        """What was done with it as a whole when its lines were read; UNDONE where it is more than one such piece."""
        source, data = self.parts[0]
        if source is None or len(self.parts) > 1 or self.renamed:
            return UNDONE
        numbers = array("q", data)
        pieces = set(zip(numbers[SIZE + 1 :: RAW_NUMBERS], numbers[SIZE + 2 :: RAW_NUMBERS], strict=True))
        return Done(*pieces.pop()) if len(pieces) == 1 else UNDONE


class Spool(AbstractContextManager["Spool"]):
    """Temporary files that vanish when it is closed; raises StoreError where the disk is full."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("BEGIN")
        self._database.execute(
            "CREATE TABLE part (number INTEGER PRIMARY KEY, conversation TEXT, format TEXT, file INTEGER, source TEXT,"
            " data BLOB)"
        )
        self._database.execute("CREATE INDEX by_conversation ON part (conversation, format, number)")
        self.spill_file = SpillFile()
        self._unwritten: dict[tuple[str, str, int], list[Conversation | _Raw]] = {}
        self._messages = self._number = 0
        self._file = self._file_start = 0  # the file of the last part, and the number that its first one may have

    def __exit__(self, *exc: object) -> None:
        self._database.close()
        self.spill_file.__exit__(*exc)

    def add(self, part: Conversation | RawRun, file: int) -> int:
        """Keep a part that was read from the input of this number; returns its number of messages."""
        if file != self._file:
            self._file, self._file_start = file, self._number
        if isinstance(part, Conversation):
            key, messages = part.id, len(part.messages)
            self._unwritten.setdefault((key, part.source_format, file), []).append(part)
        else:
            key, messages = part.conversation, part.messages
            self._unwritten.setdefault((key, "jsonl", file), []).append(self._keep(part))
        self._messages += messages
        if self._messages >= BUFFER:
            self._write()
        return messages

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

    def stored(self) -> Iterator[SpooledConversation]:
        """Each conversation with its parts in the order of arrival, conversations in the order of their first part."""
        self._write()
        names = {(each.conversation, each.form): each.name for each in self.clashes()}
        digests = self._write_digests(names.values())
        order = "SELECT conversation, format FROM part GROUP BY conversation, format ORDER BY min(number)"
        query = "SELECT source, data FROM part WHERE conversation = ? AND format = ? ORDER BY number"
        for key in self._database.execute(order):
            yield SpooledConversation(
                names.get(key, key[0]), tuple(self._database.execute(query, key)), digests, key in names
            )

    def parts(self, stored: SpooledConversation) -> list[Conversation]:
        """The parts of a stored conversation, in the order of arrival; works in a forked process too."""
        conversations: list[Conversation] = []
        for source, data in stored.parts:
            if source is None:
                parts = msgspec.json.decode(data, type=list[Conversation])
                conversations += [msgspec.structs.replace(each, id=stored.conversation) for each in parts]
            else:
                conversations += self._from_raw(stored.conversation, source, data)
        return [
            mark_ambiguous_agents(each, lambda escaped: self._has_conversation(escaped, stored.digests))
            for each in conversations
        ]

    def conversations(self) -> Iterator[list[Conversation]]:
        """The parts of each conversation."""
        return map(self.parts, self.stored())

    def _from_raw(self, conversation: str, source: str, data: bytes) -> Iterator[Conversation]:
        numbers = array("q", data)
        for at in range(0, len(numbers), RAW_NUMBERS):
            line, messages, *where = numbers[at : at + SIZE + 1]
            place = SpillLocation(*where)
            yield part(RawRun(conversation, source, line, messages, place), self.spill_file.get(place))

    def _free(self, conversation: str, taken: set[str]) -> str:
        """ID~2, ID~3, …: the first that no conversation of the run has."""
        query = "SELECT 1 FROM part WHERE conversation = ? LIMIT 1"
        while self._database.execute(query, (name := unused_stem(conversation, taken),)).fetchone():
            continue
        return name

    def _write_digests(self, more: Iterable[str]) -> SpillLocation:
        """Write the sorted digests of all conversations, where a process that was copied earlier can look them up."""
        rows = self._database.execute("SELECT DISTINCT conversation FROM part")
        names = chain((conversation for (conversation,) in rows), more)
        return self.spill_file.put(b"".join(sorted(_digest(scoped(name, "")[:-1]) for name in names)))

    def _has_conversation(self, escaped: str, digests: SpillLocation) -> bool:
        wanted, low, high = _digest(escaped), 0, digests.size // DIGEST
        while low < high:
            middle = (low + high) // 2
            digest = self.spill_file.get(SpillLocation(digests.process, digests.offset + middle * DIGEST, DIGEST))
            if digest == wanted:
                return True
            low, high = (middle + 1, high) if digest < wanted else (low, middle)
        return False

    def _keep(self, run: RawRun) -> _Raw:
        place = run.data if isinstance(run.data, SpillLocation) else self.spill_file.put(run.data)
        return _Raw(run.source, run.line, run.messages, *place, *run.done)

    def _write(self) -> None:
        rows = []
        for (conversation, form, file), parts in self._unwritten.items():
            for source, group in groupby(parts, key=lambda item: item.source if isinstance(item, _Raw) else None):
                rows.append((self._number, conversation, form, file, source, _packed(list(group))))
                self._number += 1
        try:
            self._database.executemany("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", rows)
        except sqlite3.Error as error:
            raise _full(error) from error
        self._unwritten, self._messages = {}, 0


def _packed(parts: Sequence[Conversation | _Raw]) -> bytes:
    places = [number for each in parts if isinstance(each, _Raw) for number in each[1:]]
    return array("q", places).tobytes() if places else msgspec.json.encode(parts)


def _digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=DIGEST).digest()


def _full(error: Exception) -> StoreError:
    return StoreError(f"no room to sort the input: {error}", remedy="free space in TMPDIR")
