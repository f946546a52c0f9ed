"""A monitor on Neo4j says and leaves what it does on a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import NEO4J
from tests.monitor import worlds
from tests.monitor.test_monitor import CYCLE, WHOLE, ids, make_message
from tests.monitor.test_standing import harmless_after_audit
from tests.monitor.worlds import Reader
from tests.stores.conftest import empty_graph
from undersong.monitor import SyncMonitor
from undersong.patterns.catalog import load_rules
from undersong.stores.neo4j import GraphStore
from undersong.stores.protocol import Store

assert NEO4J
RULES = load_rules(names=["love_bombing_literal"])


@pytest.fixture
def address() -> Iterator[str]:
    """The server's address, its database empty."""
    for _ in empty_graph():
        yield str(NEO4J)


@pytest.mark.parametrize("seed", range(2))
def test_a_live_run_on_a_graph_leaves_what_a_batch_run_leaves_in_a_file(
    seed: int, address: str, tmp_path: Path
) -> None:
    assert worlds.differences(tmp_path, seed, most=16, store=address)[0] == ""


def test_a_restart_and_another_monitor_beside_change_nothing(address: str) -> None:
    judge, reported = Reader(), []
    for place, mood in enumerate(CYCLE):
        with SyncMonitor(address, judge, rules=RULES) as one, SyncMonitor(address, judge, rules=RULES) as other:
            reported.append(ids(one.observe(make_message(place, mood)).found))
            assert other.observe(make_message(place, mood)).is_new is False
    assert reported == [[]] * 3 + [[WHOLE]]
    assert judge.asked == list(WHOLE)


def test_a_monitor_takes_an_open_graph_and_makes_a_connection_of_its_own(address: str) -> None:
    store: Store
    with GraphStore(address) as store:
        with SyncMonitor(store, Reader(), rules=RULES) as monitor:
            for place, mood in enumerate(CYCLE):
                monitor.observe(make_message(place, mood))
            assert len(monitor.rows("t")) == monitor.session("t").messages == len(CYCLE)
        assert ids(tuple(store.findings())) == [WHOLE]


def test_an_audits_finding_survives_a_hundred_harmless_messages(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harmless_after_audit(tmp_path, address, monkeypatch, 100)
    with GraphStore(address) as store:
        (finding,) = store.findings()
        assert (finding.agent, finding.pattern) == ("kira", "love_bombing")
        (edge,) = store._read("MATCH (a:Agent)-[r:EXHIBITS_PATTERN]->(:Pattern) RETURN a.agent_id, r.finding_id")
        assert [*edge] == ["kira", finding.finding_id]
