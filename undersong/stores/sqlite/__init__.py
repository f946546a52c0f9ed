"""One SQLite file as the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from undersong.core.owned_folder import scratch_folder
from undersong.errors import StoreError
from undersong.stores.protocol import Redaction
from undersong.stores.sql.store import SQLStore, redact_rows
from undersong.stores.sqlite.lists import SQLiteLists, mismatched_totals, unsearchable
from undersong.stores.sqlite.seals import content_digest, seal_errors


class SQLiteStore(SQLStore, SQLiteLists):
    """A Store in one file; several processes may read and write it, one at a time may put conversations."""

    def __init__(self, path: Path, *, read_only: bool = False, durable: bool = False) -> None:
        """As Database; also ends an erasure whose process was killed before the bytes were gone."""
        super().__init__(path, read_only=read_only, durable=durable)
        if not read_only and self.unwiped():
            with suppress(StoreError):  # a reader of an older version keeps them, until the next try
                self._wipe()

    def another(self) -> SQLiteStore:
        """See Store."""
        return SQLiteStore(self.path)

    def redact(self, redaction: Redaction) -> None:
        """See Store."""
        with self._translated():
            self._lock.acquire()
            self._db.execute("PRAGMA secure_delete = ON")
        with self._writing() as db:
            redact_rows(db, redaction)
            if not redaction.elsewhere:
                db.execute("INSERT INTO words (words) VALUES ('optimize')")  # or the index would hold what went
        if not redaction.elsewhere:
            self._wipe()

    def _wipe(self) -> None:
        """Leave no byte of what was deleted in the files."""
        with self._translated(), self._lock_queue.exclusive():
            self._db.execute("VACUUM")
            if self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                what = "another process reads an older version, so what was forgotten is still in the log file"
                remedy = "end that process and run `undersong store migrate`, which empties the log"
                raise StoreError(what, where=str(self.path), remedy=remedy)
        self.wiped()

    def integrity_errors(self) -> Iterator[str]:
        """See Store."""
        with self._reading() as db:  # or what others write between two reads would look like damage
            words = [word for (word,) in db.execute("PRAGMA integrity_check")]
            others = [*super().integrity_errors(), *unsearchable(db), *mismatched_totals(db), *seal_errors(db)]
            return iter([*(words if words != ["ok"] else []), *others])

    def digest(self) -> str | None:
        """See Store."""
        with self._reading() as db:
            return content_digest(db)

    def facts(self) -> dict[str, str]:
        """See Store."""
        with self._translated():
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            size = self._place.stat().st_size
        return {"store": str(self.path), "version": str(version), "size": f"{size:,} bytes"}


def open_store(address: str, read_only: bool) -> SQLiteStore:
    """The store at a path."""
    return SQLiteStore(Path(address), read_only=read_only)


class ScratchStore(SQLiteStore):
    """A store for one run that searches nothing: it neither indexes the words of messages nor seals what it writes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        for (seal,) in self._db.execute("SELECT name FROM sqlite_temp_master WHERE type = 'trigger'").fetchall():
            self._db.execute(f"DROP TRIGGER temp.{seal}")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with super()._writing() as db:
            query = "SELECT sql FROM sqlite_master WHERE name IN ('messages_come', 'messages_go')"
            statements = db.execute(query).fetchall()
            db.execute("DROP TRIGGER messages_come")
            db.execute("DROP TRIGGER messages_go")
            yield db
            for (statement,) in statements:  # whoever opens the file finds the tables of every store
                db.execute(statement)


@contextmanager
def temporary_store(*, searched: bool = True) -> Iterator[SQLiteStore]:
    """A store in a temporary file that is removed afterwards: bounded memory for a run that stores nothing."""
    with scratch_folder() as folder, (SQLiteStore if searched else ScratchStore)(folder / "run.db") as store:
        yield store
