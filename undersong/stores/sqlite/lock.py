"""Who may write to a store: one audit and one transaction at a time; the system lets go of a dead process."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from undersong.errors import StoreError

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
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))

    def acquire(self) -> None:
        """Take the lock, or keep it; raises StoreError where another run has it."""
        if self._db is not None:
            return
        db = sqlite3.connect(self._path, timeout=0, isolation_level=None)
        try:
            db.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            db.close()
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            remedy = "wait until it has ended, or name another file with --store"
            raise StoreError("another audit is using it", where=str(self._store), remedy=remedy) from error
        self._db = db

    def release(self) -> None:
        """Let others write; does nothing where the lock is not held."""
        if self._db is not None:
            self._db.close()
            self._db = None


class LockQueue:
    """One transaction or checkpoint at a time, over all processes: a lock on the empty file ``STORE-turn``.

    SQLite before 3.51.3 may rarely corrupt a file where a write meets another connection's checkpoint; with turns they
    never meet. Readers need none.
    """

    def __init__(self, store: Path) -> None:
        """``store`` is the file that the turns are about; the lock's file is made here."""
        real = store.resolve()
        self._store = store
        self._file: int | None = os.open(real.with_name(f"{real.name}-turn"), os.O_RDWR | os.O_CREAT, 0o600)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Wait for the turn, at most WAIT_SECONDS, and keep it for the block."""
        assert self._file is not None
        deadline = time.monotonic() + WAIT_SECONDS
        while not _locked(self._file):
            if time.monotonic() > deadline:
                what = f"another process has been writing for {WAIT_SECONDS:.0f} seconds"
                raise StoreError(what, where=str(self._store), remedy="end that process, or wait and try again")
            time.sleep(_PAUSE_SECONDS)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release the lock's file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
