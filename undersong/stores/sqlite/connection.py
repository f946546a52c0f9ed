"""An SQLite file: its tables and their versions, its locks, transactions and errors."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from threading import Lock
from types import TracebackType

import msgspec

from undersong.core.signals import uninterrupted
from undersong.errors import StoreError
from undersong.models import Row
from undersong.rows.binary import pack
from undersong.stores.codec import decoded, listed_statements
from undersong.stores.sql.database import COUNTED, SQLDatabase
from undersong.stores.sqlite.seals import Sealer, seal_everything, sealing_triggers

BUSY_SECONDS = 30.0
VERSIONS = Path(__file__).with_name("versions")
MIGRATIONS = (
    "1_corpus.sql",
    "2_histories.sql",
    "3_ledger.sql",
    "4_live.sql",
    "5_packed.sql",
    "6_swept.sql",
    "7_reviews.sql",
    "8_seals.sql",
    "9_search.sql",
    "10_places.sql",
    "11_totals.sql",
)
PACKED = "5_packed.sql"  # calls cells_of
SEALED = 8  # the first version with seals


def run_migration(db: sqlite3.Connection, name: str) -> None:
    """Bring the tables to the version of a file in ``versions``, within a transaction."""
    if name == PACKED:  # not before every one: beside a statement that is not at its end SQLite takes no function
        db.create_function("cells_of", 1, _cells, deterministic=True)
    for statement in _whole_statements(listed_statements(VERSIONS / name)):
        db.execute(statement)


def _whole_statements(parts: Iterable[str]) -> Iterator[str]:
    """The statements of which these are the parts that end with ``;``: a trigger has several."""
    statement = ""
    for part in parts:
        statement += f"{part};"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _cells(body: object) -> bytes | None:
    try:
        return pack(decoded(body, Row))
    except msgspec.DecodeError:
        return None  # whoever reads the row says so


def open_database(path: Path) -> tuple[sqlite3.Connection, LockQueue]:
    """The file opened, made where it is missing, its tables up to date; a file of another program is not changed."""
    _make(path)
    # a judge that is called inside a running event loop works in another thread while this one waits
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        version_of(db, path)
        queue = LockQueue(path)
        with uninterrupted(), queue.exclusive():
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA wal_autocheckpoint = 0")  # only in turn
            _migrate(db, path)
    except BaseException:
        db.close()
        raise
    return db, queue


def _make(path: Path) -> None:
    """An empty file for its owner alone, where there is none; raises OSError where one that is there cannot be written.

    One that is there is not opened: to close it again would drop all locks that this process holds on it (POSIX), and
    the next program that ends would delete the log that the connections of this one go on to write.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        if not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path)) from None


def open_to_read(path: Path) -> sqlite3.Connection:
    """The file opened for reading only; raises StoreError where it is missing or of an older version."""
    if not path.is_file():
        raise StoreError("there is no such store", where=str(path), remedy="run `undersong audit` first")
    place = f"{path.absolute().as_uri()}?mode=ro"
    # a server closes in one thread what it has read with in others
    db = sqlite3.connect(place, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
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
    with nullcontext() if db.in_transaction else transaction(db, "BEGIN"):  # another run may bring it up to date now
        return _version_of(db, path)


def _version_of(db: sqlite3.Connection, path: Path) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    names = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    if not (names >= set(COUNTED) if version else not names):  # a file with these is ours
        raise StoreError("is a database of another program", where=str(path), remedy="name another file with --store")
    if version > len(MIGRATIONS):
        raise StoreError(f"version {version} is newer than this program", where=str(path), remedy="upgrade undersong")
    if strange := _strange_objects(db, version):
        what = f"{', '.join(strange)} in the file: not made by undersong, and not run"
        raise StoreError(what, where=str(path), remedy="drop them, or audit the files again with another --store")
    return version


@contextmanager
def transaction(db: sqlite3.Connection, begin: str) -> Iterator[None]:
    """A transaction that begins with this statement; an error takes all of it back."""
    try:
        db.execute(begin)
        yield
        db.execute("COMMIT")
    except BaseException:  # an interrupt may come right after the beginning
        if db.in_transaction:  # a full disk has ended it
            db.execute("ROLLBACK")
        raise


def _strange_objects(db: sqlite3.Connection, version: int) -> list[str]:
    """Tables, triggers, views and indexes that are not those of a version: foreign ones, changed ones, lost ones."""
    here, ours = _schema(db), _schema_of(version)
    foreign = [f"a foreign {kind} '{name}'" for kind, name in sorted(here.keys() - ours.keys())]
    lost = [f"no {kind} '{name}'" for kind, name in sorted(ours.keys() - here.keys())]
    changed = [
        f"another {kind} '{name}'"
        for kind, name in sorted(here.keys() & ours.keys())
        if here[kind, name] != ours[kind, name]
    ]
    return [*foreign, *lost, *changed]


@cache
def _schema_of(version: int) -> dict[tuple[str, str], str]:
    if version == len(MIGRATIONS):
        return _newest().schema
    with closing(sqlite3.connect(":memory:")) as db:
        for name in MIGRATIONS[:version]:
            run_migration(db, name)
        return _schema(db)


class _Newest:
    """An empty store of the newest version in memory: new files are copies of it, in a tenth of the time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        _run_migrations(self._db, 0)
        self.schema, self.triggers = _schema(self._db), sealing_triggers(self._db)

    def copy_to(self, db: sqlite3.Connection) -> None:
        """Write it into an empty file, as one transaction."""
        with self._lock:
            self._db.backup(db)


_newest = cache(_Newest)


def _schema(db: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """Kind and name → statement; without the statistics that ANALYZE keeps."""
    objects = db.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_stat_' ESCAPE '\\'")
    return {(kind, name): " ".join((statement or "").split()) for kind, name, statement in objects}


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    if not version_of(db, path):
        _newest().copy_to(db)
        return
    db.execute("BEGIN IMMEDIATE")
    _run_migrations(db, version_of(db, path))
    db.execute("COMMIT")


def _run_migrations(db: sqlite3.Connection, version: int) -> None:
    for number, name in enumerate(MIGRATIONS[version:], start=version + 1):
        run_migration(db, name)
        db.execute(f"PRAGMA user_version = {number}")
    if version < SEALED:  # a later version that changes a sealed table seals that one again
        seal_everything(db)


WAIT_SECONDS = 30.0
_PAUSE_SECONDS = 0.001


class WriterLock:
    """An exclusive SQLite lock on the empty file ``STORE-lock``; nothing is ever written to that file.

    It is never removed either: a file removed while another process waits to lock it would be locked twice.
    """

    def __init__(self, store: Path) -> None:
        """``store`` is the file to lock; links are followed, so that every name of it has the same lock.

        The lock's file is made here, before anything is read: a first run and its rerun see the same folder.
        """
        real = store.resolve()
        self._store, self._path = store, real.with_name(f"{real.name}-lock")
        self._db: sqlite3.Connection | None = None
        _make(self._path)

    def acquire(self) -> None:
        """Take the lock if it is not held yet; raises StoreError where another run has it."""
        if self._db is not None:
            return
        db = sqlite3.connect(self._path, timeout=0, isolation_level=None)
        if not _locked(db, "PRAGMA journal_mode = OFF"):  # or a killed run leaves a journal beside the lock
            db.close()
            remedy = "wait until it has ended, or name another file with --store"
            raise StoreError("another audit is using it", where=str(self._store), remedy=remedy)
        self._db = db

    def release(self) -> None:
        """Let others write; does nothing where the lock is not held."""
        if self._db is not None:
            self._db.close()
            self._db = None


class LockQueue:
    """One transaction or checkpoint at a time, over all processes: an SQLite lock on the empty file ``STORE-turn``.

    SQLite before 3.51.3 may rarely corrupt a file where a write meets another connection's checkpoint; with turns they
    never meet. Readers need none.
    """

    def __init__(self, store: Path) -> None:
        """``store`` is the file that the turns are about; the lock's file is made here."""
        real = store.resolve()
        self._store = store
        place = real.with_name(f"{real.name}-turn")
        _make(place)
        self._db = sqlite3.connect(place, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = OFF")  # nothing is written, so nothing is to be undone
        self._db.execute("PRAGMA busy_timeout = 0")

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock for the block; waits for it, at most WAIT_SECONDS."""
        deadline = time.monotonic() + WAIT_SECONDS
        try:
            while not _locked(self._db):
                if time.monotonic() > deadline:
                    what = f"another process has been writing for {WAIT_SECONDS:.0f} seconds"
                    raise StoreError(what, where=str(self._store), remedy="end that process, or wait and try again")
                time.sleep(_PAUSE_SECONDS)
            yield
        finally:  # an interrupt may come right after the lock was taken
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")  # nothing was written

    def close(self) -> None:
        """Release the lock's file."""
        self._db.close()


def _locked(db: sqlite3.Connection, *first: str) -> bool:
    try:
        for statement in (*first, "BEGIN EXCLUSIVE"):
            db.execute(statement)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


CHECKPOINT_TRANSACTIONS = 256  # after so many transactions or changed rows the log is written into the file
CHECKPOINT_ROWS = 16_384


class Database(SQLDatabase):
    """A file of ours: write-ahead log, mode 0600; any number of processes read and write it, one transaction a time."""

    _db: sqlite3.Connection

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
                self._sealer = Sealer(self._db, _newest().triggers)
                self._lock = WriterLock(path)
            self._place = path.absolute()
            self._file: os.stat_result | None = os.stat(self._place)
        self._open = True
        self._transactions = self._rows = 0

    @property
    def where(self) -> str:
        """See SQLDatabase."""
        return str(self.path)

    def another(self) -> Database:
        """See SQLDatabase."""
        return Database(self.path)

    def _begin_audit(self) -> None:
        self._lock.acquire()

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
        """An atomic transaction."""
        if self._read_only:
            raise StoreError("is open for reading only", where=str(self.path), remedy="open it for writing")
        with self._translated(), self._lock_queue.exclusive():
            with uninterrupted(), transaction(self._db, "BEGIN IMMEDIATE"), self._sealer.renewed():
                yield self._db
            self._checkpoint()
        self._refuse_if_gone(self._file)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction in which every read sees the same version; within ``repeatable_read`` the same one."""
        with self._translated(), nullcontext() if self._db.in_transaction else transaction(self._db, "BEGIN"):
            yield self._db

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
