"""One writer per store: a lock beside the file that the system lets go of when its process ends, however it ends."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from undersong.errors import StoreError


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

    def hold(self) -> None:
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
