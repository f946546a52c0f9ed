"""One SQLite file as the store."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from undersong.stores.conversations import Conversations
from undersong.stores.histories import Histories
from undersong.stores.schema import FIRST_TABLES


class SQLiteStore(Conversations, Histories):
    """A Store in one file; several processes may read and write it, one at a time may put conversations."""

    def counts(self) -> dict[str, int]:
        """See Store."""
        with self._translated():
            return {table: self._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in FIRST_TABLES}


@contextmanager
def temporary_store() -> Iterator[SQLiteStore]:
    """A store in a temporary file that is removed afterwards: bounded memory for a run that keeps nothing."""
    with tempfile.TemporaryDirectory(prefix="undersong-") as folder, SQLiteStore(Path(folder) / "run.db") as store:
        yield store
