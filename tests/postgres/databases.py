"""Databases of their own for tests, on the server that UNDERSONG_POSTGRES names."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import psycopg

from tests.conftest import POSTGRES
from undersong.stores.postgres import PostgresStore
from undersong.stores.postgres.server import columns_of


def address_of(database: str) -> str:
    """The address of another database of the server."""
    return f"{str(POSTGRES).rpartition('/')[0]}/{database}"


@cache
def own_database(process: int) -> str:
    """The address of the database of this process, made when it is first asked for."""
    name = f"test_{process}_{uuid.uuid4().hex[:8]}"
    run(str(POSTGRES), f"CREATE DATABASE {name}")
    PostgresStore(address_of(name)).close()
    return address_of(name)


def emptied() -> str:
    """The address of a store that holds nothing; one at a time in a process."""
    address = own_database(os.getpid())
    tables = [f"undersong.{table}" for table in columns_of() if table != "store_version"]
    run(address, f"TRUNCATE {', '.join(tables)} RESTART IDENTITY")
    return address


@contextmanager
def unprepared() -> Iterator[str]:
    """The address of a database that no program has used."""
    name = f"bare_{uuid.uuid4().hex[:8]}"
    run(str(POSTGRES), f"CREATE DATABASE {name}")
    yield address_of(name)
    run(str(POSTGRES), f"DROP DATABASE {name} WITH (FORCE)")


def run(address: str, statement: str) -> None:
    """Run a statement outside of any transaction."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement.encode())
