"""The store in a PostgreSQL database, in the schema ``undersong``: the tables of the one in SQLite."""

from __future__ import annotations

from contextlib import suppress

from undersong.errors import StoreError
from undersong.stores.postgres.lists import PostgresLists
from undersong.stores.postgres.server import columns_of
from undersong.stores.protocol import Redaction
from undersong.stores.sql.store import SQLStore, redact_rows


class PostgresStore(SQLStore, PostgresLists):
    """A Store in a PostgreSQL database; any number of processes read and write it, one transaction a time."""

    def __init__(self, address: str, *, read_only: bool = False) -> None:
        """As PostgresDatabase; also ends an erasure whose process was killed before the bytes were gone."""
        super().__init__(address, read_only=read_only)
        if not read_only and self.unwiped():
            with suppress(StoreError):  # a reader of an older version keeps them, until the next try
                self._wipe()

    def another(self) -> PostgresStore:
        """See Store."""
        return PostgresStore(self._address)

    def redact(self, redaction: Redaction) -> None:
        """See Store. The server's write-ahead log keeps old bytes until it is recycled."""
        with self._writing() as db:
            redact_rows(db, redaction)
        if not redaction.elsewhere:
            self._wipe()

    def _wipe(self) -> None:
        """Leave no byte of what was deleted in the tables' files."""
        with self._translated():
            self._db.execute(f"VACUUM (FULL) {', '.join(columns_of())}")
        self.wiped()

    def facts(self) -> dict[str, str]:
        """See Store."""
        size = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class WHERE relkind = 'r'"
        with self._translated():
            (number,) = self._db.execute(f"{size} AND relnamespace = 'undersong'::regnamespace").fetchone()
        server = self._db.info.parameter_status("server_version") or ""
        return {"store": self.where, "version": str(self.version()), "server": server, "size": f"{number:,} bytes"}


def open_store(address: str, read_only: bool) -> PostgresStore:
    """The store at an address."""
    return PostgresStore(address, read_only=read_only)
