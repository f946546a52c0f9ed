"""Parts of conversations put together on disk, so that interleaved and repeated ones need no memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager

import msgspec

from undersong.errors import StoreError
from undersong.models import Conversation

CACHE_KIB = 32 << 10  # below it nothing is written to disk
BUFFER = 4096  # messages held before they are written


class Spool(AbstractContextManager["Spool"]):
    """A temporary database that vanishes when it is closed; raises StoreError where the disk is full."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("BEGIN")
        self._database.execute("CREATE TABLE part (conversation TEXT, number INTEGER, file INTEGER, data BLOB)")
        self._database.execute("CREATE INDEX by_conversation ON part (conversation, number)")
        self._waiting: dict[tuple[str, int], list[Conversation]] = {}
        self._messages = self._number = 0

    def __exit__(self, *exc: object) -> None:
        self._database.close()

    def add(self, part: Conversation, file: int) -> None:
        """Keep a part that was read from the input of this number."""
        self._waiting.setdefault((part.id, file), []).append(part)
        self._messages += len(part.messages)
        if self._messages >= BUFFER:
            self._write()

    def count(self, file: int) -> int:
        """How many conversations an input has a part of."""
        self._write()
        query = "SELECT count(DISTINCT conversation) FROM part WHERE file = ?"
        return int(self._database.execute(query, (file,)).fetchone()[0])

    def conversations(self) -> Iterator[list[Conversation]]:
        """The parts of each conversation in the order of arrival, conversations in the order of their first part."""
        self._write()
        order = "SELECT conversation FROM part GROUP BY conversation ORDER BY min(number)"
        query = "SELECT data FROM part WHERE conversation = ? ORDER BY number"
        for (conversation,) in self._database.execute(order):
            found = self._database.execute(query, (conversation,))
            yield [part for (data,) in found for part in msgspec.json.decode(data, type=list[Conversation])]

    def _write(self) -> None:
        rows = []
        for (conversation, file), parts in self._waiting.items():
            rows.append((conversation, self._number, file, msgspec.json.encode(parts)))
            self._number += 1
        try:
            self._database.executemany("INSERT INTO part VALUES (?, ?, ?, ?)", rows)
        except sqlite3.Error as error:
            raise StoreError(f"no room to sort the input: {error}", remedy="free space in TMPDIR") from error
        self._waiting, self._messages = {}, 0
