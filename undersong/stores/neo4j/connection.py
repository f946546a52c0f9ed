"""A connection to a Neo4j server: reads, write transactions that are tried again, and errors in words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
from neo4j import GraphDatabase, ManagedTransaction, Record, RoutingControl
from neo4j.exceptions import DriverError, Neo4jError

from undersong.errors import StoreError

T = TypeVar("T")
PORTION = 2_000  # rows that one statement takes
RETRY_SECONDS = 60.0  # how long a write waits for a server that restarts
_LOCK = "MERGE (c:Cursor {name: 'changes'}) ON CREATE SET c.change = 0, c.agent = '' SET c.held = true"


class Connection:
    """A database of a server at ``bolt://HOST:PORT``, with user and password from the environment.

    ``NEO4J_USERNAME``, ``NEO4J_PASSWORD`` and ``NEO4J_DATABASE`` as the vendor's tools have them; without a user there
    is no authentication.
    """

    def __init__(self, address: str, *, read_only: bool = False) -> None:
        """Connect and make constraints and indexes; raises StoreError where the server does not answer."""
        user, self._database = os.environ.get("NEO4J_USERNAME"), os.environ.get("NEO4J_DATABASE")
        self.address, self._read_only = address, read_only
        with self._translated():
            self._driver = GraphDatabase.driver(
                address,
                auth=(user, os.environ.get("NEO4J_PASSWORD", "")) if user else None,
                max_transaction_retry_time=RETRY_SECONDS,
                notifications_min_severity="OFF",
            )
            try:
                self._driver.verify_connectivity()
                if not read_only:
                    self._prepare()
            except BaseException:
                self._driver.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; every write is durable when it returns."""
        self._driver.close()

    def _upgrade(self, version: int) -> None:
        """Bring a graph of an older version up to date; nothing to do for a connection alone."""

    def _prepare(self) -> None:
        for statement in statements():
            self._driver.execute_query(statement, database_=self._database)
        records = self._run("MERGE (c:Cursor {name: 'version'}) ON CREATE SET c.change = $n RETURN c.change", n=VERSION)
        if records[0][0] > VERSION:
            what = f"version {records[0][0]} is newer than this program"
            raise StoreError(what, where=self.address, remedy="upgrade undersong")
        if records[0][0] < VERSION:
            self._upgrade(records[0][0])
        self._run(f"{_LOCK} RETURN c.name")

    def _run(self, query: str, **parameters: Any) -> list[Record]:
        return self._driver.execute_query(query, parameters, database_=self._database).records

    def _read(self, query: str, **parameters: Any) -> list[Record]:
        """The records of a reading query."""
        with self._translated():
            reading = RoutingControl.READ
            result = self._driver.execute_query(query, parameters, routing_=reading, database_=self._database)
            return result.records

    def _write(self, work: Callable[[Transaction], T]) -> T:
        """Do ``work`` in one transaction, after all others; where the server goes away it is done again."""
        if self._read_only:
            raise StoreError("is open for reading only", where=self.address, remedy="open it for writing")

        def locked(transaction: ManagedTransaction) -> T:
            begun = Transaction(transaction)
            begun.run(_LOCK)
            return work(begun)

        with self._translated(), self._driver.session(database=self._database) as session:
            return session.execute_write(locked)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (DriverError, Neo4jError) as error:
            remedy = (
                "see that the server runs, and NEO4J_USERNAME and NEO4J_PASSWORD are right; the same command goes on"
            )
            raise StoreError(str(error).splitlines()[0], where=self.address, remedy=remedy) from error
        except msgspec.DecodeError as error:
            remedy = "audit the files again into another store"
            raise StoreError(f"a stored record is damaged: {error}", where=self.address, remedy=remedy) from error


class Transaction:
    """A write transaction that holds the store's turn."""

    def __init__(self, transaction: ManagedTransaction) -> None:
        self._transaction = transaction

    def run(self, query: str, **parameters: Any) -> list[Record]:
        """The records of one statement."""
        return list(self._transaction.run(query, parameters))

    def run_batched(self, query: str, items: Sequence[Any], **parameters: Any) -> list[Record]:
        """The records of a statement over ``$items``, a portion at a time."""
        return [
            record
            for start in range(0, len(items), PORTION)
            for record in self.run(query, items=list(items[start : start + PORTION]), **parameters)
        ]


VERSION = 3

_UNIQUE = {
    "Agent": ("agent_id",),
    "Evaluation": ("evaluation_id",),
    "Message": ("thread_id", "message_id"),
    "Thread": ("thread_id",),
    "Indicator": ("indicator_id",),
    "Trait": ("name",),
    "Dimension": ("name",),
    "Pattern": ("name",),
    "Judge": ("judge_hash",),
    "Cursor": ("name",),
    "Grave": ("kind", "digest"),
}
_INDEXED = (
    ("evaluation_thread", "(n:Evaluation)", "n.thread_id, n.judge_hash"),
    ("evaluation_target", "(n:Evaluation)", "n.target"),
    ("message_id", "(n:Message)", "n.message_id"),
    ("message_agent", "(n:Message)", "n.agent_id"),
    ("message_target", "(n:Message)", "n.target"),
    ("judged_by_changed", "()-[n:JUDGED_BY]-()", "n.changed"),
)


def statements() -> tuple[str, ...]:
    """What makes the constraints and indexes; each does nothing where it is there."""
    unique = tuple(
        f"CREATE CONSTRAINT {label.lower()}_unique IF NOT EXISTS FOR (n:{label})"
        f" REQUIRE ({', '.join(f'n.{key}' for key in keys)}) IS UNIQUE"
        for label, keys in _UNIQUE.items()
    )
    finding = (
        "CREATE CONSTRAINT finding_unique IF NOT EXISTS FOR ()-[r:EXHIBITS_PATTERN]-() REQUIRE r.finding_id IS UNIQUE"
    )
    indexes = tuple(f"CREATE INDEX {name} IF NOT EXISTS FOR {what} ON ({keys})" for name, what, keys in _INDEXED)
    return (*unique, finding, *indexes)
