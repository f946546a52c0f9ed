"""The Neo4j half of the tests of live runs needs a server (`tests/neo4j/serve.py`); the report's header says so."""

from __future__ import annotations

from tests.conftest import NEO4J

collect_ignore = [] if NEO4J else ["test_graph.py"]
