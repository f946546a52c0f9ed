"""One SQLite file: its connection, its transactions, and its errors in words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from undersong.errors import StoreError
from undersong.stores.lock import WriterLock
from undersong.stores.schema import open_database, open_to_read

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
