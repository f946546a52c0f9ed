"""A connection to a Neo4j server: reads, write transactions that are tried again, and errors in words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from neo4j import GraphDatabase, ManagedTransaction, Record, RoutingControl
from neo4j.exceptions import DriverError, Neo4jError

from undersong.errors import StoreError
from undersong.stores.codec import listed_statements, named_statements

FOLDER = Path(__file__).parent
cypher = named_statements(FOLDER / "queries.cypher")
VERSION = 4
T = TypeVar("T")
PORTION = 2_000  # rows that one statement takes
RETRY_SECONDS = 60.0  # how long a write waits for a server that restarts


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

    def close(self) -> None:
        """Close the connection; every write is durable when it returns."""
        self._driver.close()

    def _upgrade(self, version: int) -> None:
        """Bring a graph of an older version up to date; nothing to do for a connection alone."""

    def _prepare(self) -> None:
        for statement in listed_statements(FOLDER / "schema.cypher"):
            self._driver.execute_query(statement, database_=self._database)
        records = self._run(cypher.version, version=VERSION)
        if records[0][0] > VERSION:
            what = f"version {records[0][0]} is newer than this program"
            raise StoreError(what, where=self.address, remedy="upgrade undersong")
        if records[0][0] < VERSION:
            self._upgrade(records[0][0])
        self._run(cypher.turn)

    def _run(self, query: str, **parameters: Any) -> list[Record]:
        return self._driver.execute_query(query, parameters, database_=self._database).records

    def _read(self, query: str, **parameters: Any) -> list[Record]:
        """The records of a reading query."""
        with self._translated():
            reading = RoutingControl.READ
            return self._driver.execute_query(query, parameters, routing_=reading, database_=self._database).records

    def _streamed(self, work: Callable[..., T], queries: Sequence[str], **parameters: Any) -> T:
        """What ``work`` makes of the records of some reading queries, which come as it takes them."""
        with self._translated(), self._driver.session(database=self._database) as session:
            return session.execute_read(lambda begun: work(*(begun.run(query, parameters) for query in queries)))

    def _write(self, work: Callable[[Transaction], T]) -> T:
        """Do ``work`` in one transaction, after all others; where the server goes away it is done again."""
        if self._read_only:
            raise StoreError("is open for reading only", where=self.address, remedy="open it for writing")

        def locked(transaction: ManagedTransaction) -> T:
            begun = Transaction(transaction)
            begun.run(cypher.turn)
            return work(begun)

        with self._translated(), self._driver.session(database=self._database) as session:
            return session.execute_write(locked)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (DriverError, Neo4jError) as error:
            settings = "NEO4J_USERNAME and NEO4J_PASSWORD"
            remedy = f"see that the server runs, and {settings} are right; the same command goes on"
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
