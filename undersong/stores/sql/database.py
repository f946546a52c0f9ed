"""What the tables of a store need of a database: SQLite or PostgreSQL, in the SQL that both of them take.

The statements are written for SQLite. Where PostgreSQL needs other words for the same, its connection has them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

COUNTED = ("conversations", "messages", "evaluations", "findings")
Parameters: TypeAlias = Sequence[Any]


class SQLCursor(Protocol):
    """The rows of a statement."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""

    def fetchone(self) -> Any:
        """The next row, None behind the last one."""

    def fetchall(self) -> list[Any]:
        """The remaining rows."""

    def __iter__(self) -> Iterator[Any]: ...


class SQLConnection(Protocol):
    """A connection that runs statements with ``?`` for their parameters."""

    def execute(self, statement: str, parameters: Parameters = ..., /) -> SQLCursor:
        """Run a statement."""

    def executemany(self, statement: str, rows: Iterable[Parameters], /) -> object:
        """Run a statement once for each row of parameters."""


class DatabaseParts(NamedTuple):
    """A connection, how to write in a transaction, and how to have its errors as StoreError."""

    connection: SQLConnection
    writing: Callable[[], AbstractContextManager[SQLConnection]]
    translated: Callable[[], AbstractContextManager[None]]


class SQLDatabase(ABC):
    """A database with the tables of a store, and a connection to it."""

    _db: SQLConnection

    @property
    @abstractmethod
    def where(self) -> str:
        """The file or the address, for people: without a password."""

    def parts(self) -> DatabaseParts:
        """What is needed to keep something else in the same tables' database."""
        return DatabaseParts(self._db, self._writing, self._translated)

    @abstractmethod
    def another(self) -> SQLDatabase:
        """One more connection to the same database."""

    @abstractmethod
    def _translated(self) -> AbstractContextManager[None]:
        """What the database raises is a StoreError."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[SQLConnection]:
        """A transaction in which every read sees the same version."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[SQLConnection]:
        """An atomic transaction, one at a time over all processes."""

    @abstractmethod
    def _begin_audit(self) -> None:
        """Before conversations are put; raises StoreError where one audit at a time may do that."""

    @contextmanager
    def repeatable_read(self) -> Iterator[None]:
        """See Store."""
        with self._reading():
            yield

    @abstractmethod
    def close(self) -> None:
        """Make everything durable and release the database."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
