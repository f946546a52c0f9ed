"""Tests of live runs that need a server (`tests/neo4j/serve.py`, `tests/postgres/serve.py`): the header names those."""

from __future__ import annotations

from tests.conftest import NEO4J, POSTGRES

collect_ignore = [*([] if NEO4J else ["test_graph.py"]), *([] if POSTGRES else ["test_postgres.py"])]
