"""A store of each kind: SQLite always, Neo4j where UNDERSONG_NEO4J names a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from undersong.stores import Store
from undersong.stores.sqlite import SQLiteStore

SERVER = os.environ.get("UNDERSONG_NEO4J")
BACKENDS = ("sqlite", "neo4j") if SERVER else ("sqlite",)


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    assert request.param == "sqlite"
    with SQLiteStore(tmp_path / "undersong.db") as opened:
        yield opened
