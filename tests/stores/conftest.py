"""A store of each kind: SQLite always, Neo4j and PostgreSQL where UNDERSONG_NEO4J and UNDERSONG_POSTGRES name servers.

`tests/neo4j/serve.py` and `tests/postgres/serve.py` start them.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING

import pytest

from tests.conftest import NEO4J, POSTGRES
from undersong.stores.protocol import Store
from undersong.stores.sqlite import SQLiteStore

if TYPE_CHECKING:  # they are optional
    from undersong.stores.neo4j import GraphStore
    from undersong.stores.postgres import PostgresStore

collect_ignore = [  # the report's header says so
    *([] if NEO4J else ["test_graph.py", "test_graph_queries.py", "test_outage.py"]),
    *([] if POSTGRES else ["test_postgres.py"]),
]
BACKENDS = ("sqlite", *(("neo4j",) if NEO4J else ()), *(("postgres",) if POSTGRES else ()))


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "neo4j":
        yield from empty_graph()
        return
    if request.param == "postgres":
        yield from empty_tables()
        return
    with SQLiteStore(tmp_path / "undersong.db") as opened:
        yield opened


HELD: list[str] = []  # what this process has locked


@contextmanager
def alone() -> Iterator[None]:
    """The server for one test at a time, also where several processes share the tests out."""
    if HELD:
        yield
        return
    name = sha256(str(NEO4J).encode()).hexdigest()[:16]
    with open(Path(gettempdir()) / f"undersong-{name}.lock", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        HELD.append(name)
        try:
            yield
        finally:
            HELD.clear()


def empty_graph() -> Iterator[GraphStore]:
    """The server's database, emptied, as a store."""
    assert NEO4J
    from undersong.stores.neo4j import GraphStore

    with alone(), GraphStore(NEO4J) as opened:
        opened._write(lambda transaction: transaction.run("MATCH (n) WHERE NOT n:Cursor DETACH DELETE n"))
        opened._write(
            lambda transaction: transaction.run(
                "MATCH (n) WHERE NOT n.name IN ['changes', 'version', 'versions'] DELETE n"
            )
        )
        opened._write(lambda transaction: transaction.run("MATCH (n {name: 'changes'}) SET n.change = 0, n.agent = ''"))
        yield opened


def empty_tables() -> Iterator[PostgresStore]:
    """The server's database, emptied, as a store."""
    from tests.postgres.databases import emptied
    from undersong.stores.postgres import PostgresStore

    with PostgresStore(emptied()) as opened:
        yield opened


@pytest.fixture
def graph() -> Iterator[GraphStore]:
    yield from empty_graph()
