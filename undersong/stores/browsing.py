"""How an address becomes a store that pages can be made from."""

from __future__ import annotations

from pathlib import Path

from undersong.errors import UsageError
from undersong.stores.addresses import without_password
from undersong.stores.protocol import STORES
from undersong.stores.sql.browsing import BrowsingStore
from undersong.stores.sqlite import SQLiteStore


class SQLiteBrowser(BrowsingStore, SQLiteStore):
    """A file as its pages look at it."""

    def data_version(self) -> int:
        """See BrowsingStore."""
        with self._translated():
            number: int = self._db.execute("PRAGMA data_version").fetchone()[0]
        return number


def check_browsable(address: str) -> None:
    """Raise UsageError where pages cannot be made from the kind of store at an address."""
    if not STORES.get(address.partition("://")[0], "").endswith(".postgres"):
        remedy = "copy it into a file with `undersong store export` and `undersong store import`, and serve that"
        what = "pages are made from a file or from PostgreSQL"
        raise UsageError(what, where=without_password(address), remedy=remedy)


def open_browser(place: Path | str, *, read_only: bool = False, durable: bool = False) -> BrowsingStore:
    """The store at a path or at an address of PostgreSQL. ``durable``: also after a power cut, as a server always is.

    Raises UsageError for any other address and for a missing package, StoreError where it cannot be opened.
    """
    if isinstance(place, Path):
        return SQLiteBrowser(place, read_only=read_only, durable=durable)
    check_browsable(place)
    try:
        from undersong.stores.postgres.browser import PostgresBrowser
    except ModuleNotFoundError as error:
        what = f"{without_password(place)} needs the package {error.name}"
        raise UsageError(what, remedy="pip install 'undersong[postgres]'") from error
    return PostgresBrowser(place, read_only=read_only)
