"""A monitor on PostgreSQL says and leaves what it does on a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.monitor import worlds
from tests.monitor.test_monitor import CYCLE, WHOLE, ids, make_message
from tests.monitor.worlds import Reader
from tests.postgres.databases import emptied
from undersong.monitor import SyncMonitor
from undersong.patterns.catalog import load_rules
from undersong.stores.postgres import PostgresStore

RULES = load_rules(names=["love_bombing_literal"])


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    with PostgresStore(emptied()) as opened:
        yield opened


@pytest.mark.parametrize("seed", range(2))
def test_a_live_run_on_a_server_leaves_what_a_batch_run_leaves_in_a_file(seed: int, tmp_path: Path) -> None:
    assert worlds.differences(tmp_path, seed, most=16, store=emptied())[0] == ""


def test_monitors_beside_each_other_on_connections_of_their_own(store: PostgresStore) -> None:
    judge, reported = Reader(), []
    with SyncMonitor(store, judge, rules=RULES) as one, SyncMonitor(store, judge, rules=RULES) as other:
        for place, mood in enumerate(CYCLE):
            reported.append(ids(one.observe(make_message(place, mood)).found))
            assert other.observe(make_message(place, mood)).is_new is False
    assert reported == [[]] * 3 + [[WHOLE]]
    assert judge.asked == list(WHOLE)
    assert ids(tuple(store.findings())) == [WHOLE]
