"""A PostgreSQL store as its pages look at it."""

from __future__ import annotations

from undersong.stores.postgres import PostgresStore
from undersong.stores.sql.browsing import BrowsingStore


class PostgresBrowser(BrowsingStore, PostgresStore):
    """A store in PostgreSQL as its pages look at it."""

    def data_version(self) -> int:
        """See BrowsingStore; what is written into other databases of the same server changes it too."""
        with self._translated():
            (snapshot,) = self._db.execute("SELECT pg_current_snapshot()::text").fetchone()
        return hash(snapshot)
