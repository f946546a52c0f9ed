"""The tables of the SQLite store: opening a file, telling whose it is, and bringing it up to date."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from undersong.errors import StoreError
from undersong.models import Row
from undersong.rows.binary import pack
from undersong.stores.codec import decoded
from undersong.stores.sqlite.lock import LockQueue, WriterLock

BUSY_SECONDS = 30.0
FIRST_TABLES = ("conversations", "messages", "evaluations", "findings")  # a file with these is ours


def _corpus(db: sqlite3.Connection) -> None:
    """Version 1. Times are integer microseconds UTC; ``body`` is the noun's JSON."""
    for statement in (
        "CREATE TABLE conversations (id TEXT PRIMARY KEY, body BLOB NOT NULL, scans BLOB NOT NULL, routes BLOB)",
        "CREATE TABLE messages (conversation TEXT NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL,"
        " agent TEXT NOT NULL, target TEXT, time INTEGER, body BLOB NOT NULL, PRIMARY KEY (conversation, id))",
        "CREATE INDEX messages_id ON messages (id)",
        "CREATE INDEX messages_agent ON messages (agent, time, position, id)",
        "CREATE TABLE evaluations (conversation TEXT NOT NULL, message TEXT NOT NULL, judge_hash TEXT NOT NULL,"
        " state TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (conversation, judge_hash, message))",
        "CREATE TABLE findings (id TEXT PRIMARY KEY, pattern TEXT NOT NULL, agent TEXT NOT NULL, target TEXT,"
        " body BLOB NOT NULL)",
    ):
        db.execute(statement)


def _histories(db: sqlite3.Connection) -> None:
    """Version 2. ``history`` holds one row per message and judge, ``agents`` the number of each agent's last change.

    ``time`` is the event time: where a message has none, its predecessor's. ``cursors`` says up to which change a rule
    has seen the agents, ``graves`` what was forgotten.
    """
    for statement in (
        "CREATE TABLE judges (number INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, name TEXT NOT NULL)",
        "CREATE TABLE history (conversation TEXT NOT NULL, id TEXT NOT NULL, judge INTEGER NOT NULL,"
        " agent TEXT NOT NULL, time INTEGER, position INTEGER NOT NULL, state TEXT NOT NULL, body BLOB NOT NULL,"
        " PRIMARY KEY (conversation, id, judge))",
        "CREATE INDEX history_agent ON history (agent, judge, time, position, id, conversation, state)",
        "CREATE TABLE agents (judge INTEGER NOT NULL, agent TEXT NOT NULL, changed INTEGER NOT NULL,"
        " PRIMARY KEY (judge, agent)) WITHOUT ROWID",
        "CREATE INDEX agents_changed ON agents (judge, changed, agent)",
        "CREATE TABLE cursors (name TEXT PRIMARY KEY, change INTEGER NOT NULL, agent TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE graves (kind TEXT NOT NULL, digest TEXT NOT NULL, body BLOB NOT NULL,"
        " PRIMARY KEY (kind, digest)) WITHOUT ROWID",
        "CREATE INDEX findings_agent ON findings (agent, pattern)",
    ):
        db.execute(statement)


def _ledger(db: sqlite3.Connection) -> None:
    """Version 3: answers of paid judges as they came, batches under way, and agents' histories as of a run's start."""
    for statement in (
        "CREATE TABLE paid (key TEXT NOT NULL, attempt INTEGER NOT NULL, judge TEXT NOT NULL, model TEXT NOT NULL,"
        " prompt_hash TEXT NOT NULL, message_hash TEXT NOT NULL, context_hash TEXT NOT NULL, depth TEXT NOT NULL,"
        " body BLOB NOT NULL, input INTEGER NOT NULL, cached INTEGER NOT NULL, written INTEGER NOT NULL,"
        " output INTEGER NOT NULL, cost REAL, sent INTEGER NOT NULL, fixed INTEGER NOT NULL)",
        "CREATE UNIQUE INDEX paid_key ON paid (key, attempt)",
        "CREATE INDEX paid_judge ON paid (judge, prompt_hash)",
        "CREATE TABLE batches (id TEXT PRIMARY KEY, judge TEXT NOT NULL, body BLOB NOT NULL)",
        "CREATE TABLE snapshots (run TEXT PRIMARY KEY)",
        "CREATE TABLE histories (run TEXT NOT NULL, agent TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (run, agent))",
        "CREATE TABLE calibrations (judge_hash TEXT PRIMARY KEY, body BLOB NOT NULL)",
        "CREATE TABLE shifts (judge_hash TEXT NOT NULL, kind TEXT NOT NULL, width TEXT NOT NULL, body BLOB NOT NULL,"
        " PRIMARY KEY (judge_hash, kind, width))",
    ):
        db.execute(statement)


def _live(db: sqlite3.Connection) -> None:
    """Version 4: conversations that grow by a message at a time.

    ``version`` is another one after every write. Where ``live`` is set, ``messages.live`` has the scan and the route of
    each message, and the columns of the conversation have none.
    """
    for statement in (
        "ALTER TABLE conversations ADD COLUMN version INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE conversations ADD COLUMN live INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE messages ADD COLUMN live BLOB",
    ):
        db.execute(statement)


def _packed(db: sqlite3.Connection) -> None:
    """Version 5: the cells of a row at a fixed width (``packed``), in the index by agent, which a sweep reads alone."""
    db.create_function("cells_of", 1, _cells, deterministic=True)
    for statement in (
        "ALTER TABLE history ADD COLUMN cells BLOB",
        "UPDATE history SET cells = cells_of(body)",
        "DROP INDEX history_agent",
        "CREATE INDEX history_agent ON history (agent, judge, time, position, id, conversation, state, cells)",
    ):
        db.execute(statement)


def _cells(body: object) -> bytes | None:
    try:
        return pack(decoded(body, Row))
    except msgspec.DecodeError:
        return None  # whoever reads the row says so


def _swept(db: sqlite3.Connection) -> None:
    """Version 6: the packed histories that sweeps have read. They hold where ``changed`` is that of the agent."""
    db.execute(
        "CREATE TABLE swept (judge INTEGER NOT NULL, agent TEXT NOT NULL, changed INTEGER NOT NULL,"
        " cells BLOB NOT NULL, PRIMARY KEY (judge, agent))"
    )


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_corpus, _histories, _ledger, _live, _packed, _swept)


def open_database(path: Path) -> tuple[sqlite3.Connection, LockQueue]:
    """The file opened, made where it is missing, its tables up to date; a file of another program is not changed."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    # a judge that is called inside a running event loop works in another thread while this one waits
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        version_of(db, path)
        queue = LockQueue(path)
        with queue.exclusive():
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA wal_autocheckpoint = 0")  # only in turn
            _migrate(db, path)
    except BaseException:
        db.close()
        raise
    return db, queue


def open_to_read(path: Path) -> sqlite3.Connection:
    """The file opened for reading only; raises StoreError where it is missing or of an older version."""
    if not path.is_file():
        raise StoreError("there is no such store", where=str(path), remedy="run `undersong audit` first")
    place = f"{path.absolute().as_uri()}?mode=ro"
    db = sqlite3.connect(place, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        version = version_of(db, path)
        if version < len(MIGRATIONS):
            what = f"version {version} is older than this program's {len(MIGRATIONS)}"
            raise StoreError(what, where=str(path), remedy=f"run `undersong store migrate --store {path}`")
    except BaseException:
        db.close()
        raise
    return db


def version_of(db: sqlite3.Connection, path: Path) -> int:
    """The version of the tables, 0 for an empty file; only reads. Raises StoreError where they are not for us."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    names = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    if not (names >= set(FIRST_TABLES) if version else not names):
        raise StoreError("is a database of another program", where=str(path), remedy="name another file with --store")
    if version > len(MIGRATIONS):
        raise StoreError(f"version {version} is newer than this program", where=str(path), remedy="upgrade undersong")
    return version


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    db.execute("BEGIN IMMEDIATE")
    version = version_of(db, path)
    for number, migrate in enumerate(MIGRATIONS[version:], start=version + 1):
        migrate(db)
        db.execute(f"PRAGMA user_version = {number}")
    db.execute("COMMIT")


CHECKPOINT_TRANSACTIONS = 256  # after so many transactions or changed rows the log is written into the file
CHECKPOINT_ROWS = 16_384


class Database:
    """A file of ours: write-ahead log, mode 0600; any number of processes read and write it, one transaction a time."""

    def __init__(self, path: Path, *, read_only: bool = False, durable: bool = False) -> None:
        """Open or make the file; raises StoreError where it cannot be used.

        A killed process loses nothing that was committed. With ``durable`` a power cut does not either, at some
        milliseconds a transaction.
        """
        self.path, self._read_only = path, read_only
        with self._translated():
            if read_only:
                self._db = open_to_read(path)
            else:
                self._db, self._lock_queue = open_database(path)
                self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._lock = WriterLock(path)
            self._place = path.absolute()
            self._file: os.stat_result | None = os.stat(self._place)
        self._open = True
        self._transactions = self._rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._file = None  # one error at a time
        self.close()

    def close(self) -> None:
        """Make everything durable and release the file; raises StoreError where the file is no longer there."""
        if self._open:
            self._open = False
            with self._translated():
                self._release()
        opened, self._file = self._file, None
        self._refuse_if_gone(opened)

    def _refuse_if_gone(self, opened: os.stat_result | None) -> None:
        if opened is not None and not _is_at(self._place, opened):
            what = "was removed or replaced while it was in use, so nothing of this run is kept"
            raise StoreError(what, where=str(self.path), remedy="run the same command again")

    def _release(self) -> None:
        if self._read_only:
            self._db.close()
            return
        with self._lock_queue.exclusive():  # the last one to close writes the log into the file
            self._db.close()
        self._lock_queue.close()
        self._lock.release()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is kept as a whole or not at all."""
        if self._read_only:
            raise StoreError("is open for reading only", where=str(self.path), remedy="open it for writing")
        with self._translated(), self._lock_queue.exclusive():
            with self._begun("BEGIN IMMEDIATE"):
                yield self._db
            self._checkpoint()
        self._refuse_if_gone(self._file)

    @contextmanager
    def repeatable_read(self) -> Iterator[None]:
        """See Store."""
        with self._reading():
            yield

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction in which every read sees the same version; within ``repeatable_read`` the same one."""
        with self._translated(), nullcontext() if self._db.in_transaction else self._begun("BEGIN"):
            yield self._db

    @contextmanager
    def _begun(self, begin: str) -> Iterator[None]:
        self._db.execute(begin)
        try:
            yield
        except BaseException:
            if self._db.in_transaction:  # a full disk has ended it
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _checkpoint(self) -> None:
        self._transactions += 1
        if self._transactions < CHECKPOINT_TRANSACTIONS and self._db.total_changes - self._rows < CHECKPOINT_ROWS:
            return
        self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self._transactions, self._rows = 0, self._db.total_changes

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            remedy = "see that the disk has room and the file is a store of undersong, or name another with --store"
            raise StoreError(str(error), where=str(self.path), remedy=remedy) from error
        except OSError as error:
            raise StoreError(
                error.strerror or str(error), where=str(self.path), remedy="name another --store"
            ) from error
        except msgspec.DecodeError as error:
            remedy = "audit the files again with another --store; a kept answer that is damaged is asked for again"
            raise StoreError(f"a stored record is damaged: {error}", where=str(self.path), remedy=remedy) from error


def _is_at(path: Path, opened: os.stat_result) -> bool:
    try:
        return os.path.samestat(opened, os.stat(path))
    except FileNotFoundError:
        return False
