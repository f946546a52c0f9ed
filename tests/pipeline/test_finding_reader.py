"""A sweep has the sequence of each new finding read once, and keeps what was read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from tests.conftest import Undersong
from tests.judges.dialogue import KEYS, Served
from undersong.judges.limits import MemoryLedger
from undersong.models import Finding, Row
from undersong.monitor.agents import AgentTracker
from undersong.patterns.catalog import load_rules
from undersong.pipeline.audit import audit
from undersong.pipeline.finding_reader import DOUBTED, FindingReader, stored_texts
from undersong.pipeline.history_sweep import sweep
from undersong.stores.sqlite import SQLiteStore

pytestmark = pytest.mark.servers
START = datetime(2026, 1, 1, tzinfo=UTC)
RULES = load_rules(names=["love_bombing"])
WARM = {"compassion": 0.9, "goodwill": 0.9, "manipulation": 0.05, "fabrication": 0.1}
PLAIN = {"compassion": 0.5, "goodwill": 0.5, "manipulation": 0.1, "fabrication": 0.1}
COLD = {"compassion": 0.1, "goodwill": 0.1, "manipulation": 0.9, "fabrication": 0.1}


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.close()


def talk(folder: Path, name: str, mark: str, turns: int = 1) -> list[Row]:
    """A conversation in the store of ``folder``, and its rows as a judge ``j1`` scored them."""
    kinds = [WARM] * 4 + [COLD] * turns
    lines = [
        {"id": f"{name}{n}", "conversation": name, "author": name, "role": "agent", "target": "bo",
         "time": (START + timedelta(days=n)).isoformat(), "text": f"Message {n} of {name}. {mark}"}
        for n in range(len(kinds))
    ]  # fmt: skip
    file = folder / f"{name}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with SQLiteStore(folder / "undersong.db") as store:
        case, _ = audit(file, store)
        assert case.messages == len(kinds)
        rows = [
            Row(id=line["id"], conversation=name, agent=name, target="bo", state="scored", traits=dict(traits),
                time=START + timedelta(days=n), judge="j1", judge_hash="j1", role="agent")
            for n, (line, traits) in enumerate(zip(lines, kinds, strict=True))
        ]  # fmt: skip
        store.append(rows)
    return rows


def swept(folder: Path, served: Served, ledger: MemoryLedger) -> tuple[tuple[Finding, ...], FindingReader]:
    with SQLiteStore(folder / "undersong.db") as store:
        reader = FindingReader(served.judge(ledger=ledger), stored_texts(store), RULES, 0.2)
        return sweep(store, RULES, "j1", prevalence=0.2, reader=reader).new_findings, reader


def stored(folder: Path) -> dict[str, Finding]:
    with SQLiteStore(folder / "undersong.db") as store:
        return {each.agent: each for each in store.findings() if each.pattern == "love_bombing"}


def test_a_new_finding_is_read_once_confirmed_or_doubted_and_a_grown_one_again(tmp_path: Path, served: Served) -> None:
    ledger = MemoryLedger()
    talk(tmp_path, "kira", "shape=love_bombing")
    talk(tmp_path, "vera", "nothing")
    found, reader = swept(tmp_path, served, ledger)
    assert sorted(each.agent for each in found) == ["kira", "vera"]
    assert (reader.read, reader.windows, len(served.server.seen)) == (2, 2, 2)
    assert reader.spent.input + reader.spent.output > 0
    kira, vera = (stored(tmp_path)[name] for name in ("kira", "vera"))
    assert kira.reading is not None
    assert not kira.is_lead
    assert vera.reading is None
    assert DOUBTED in vera.notes
    with SQLiteStore(tmp_path / "undersong.db") as store:
        sweep(store, RULES, "j1", prevalence=0.2, again=True)
    assert stored(tmp_path) == {"kira": kira, "vera": vera}
    found, reader = swept(tmp_path, served, ledger)
    assert (found, reader.read, len(served.server.seen)) == ((), 0, 2)
    talk(tmp_path, "vera", "shape=love_bombing", turns=2)
    found, reader = swept(tmp_path, served, ledger)
    assert [(each.agent, each.reading is not None) for each in found] == [("vera", True)]
    assert (reader.read, len(served.server.seen)) == (1, 3)


@pytest.mark.parametrize("mark", ["shape=love_bombing", "nothing"])
def test_a_monitor_leaves_what_was_read_as_it_is(tmp_path: Path, served: Served, mark: str) -> None:
    rows = talk(tmp_path, "kira", mark)
    swept(tmp_path, served, MemoryLedger())
    before = stored(tmp_path)["kira"]
    with SQLiteStore(tmp_path / "undersong.db") as store:
        tracker = AgentTracker(store, RULES, "j1", "j1")
        tracker.load({"kira": 1})
        later = msgspec.structs.replace(rows[-1], id="later", time=START + timedelta(days=9), traits=PLAIN)
        changes = tracker.feed([later], ["kira"])
        assert (changes.findings, changes.removed) == ((), set())
        settled = {each.finding_id: each for each in tracker.finish(["kira"], settle=True).findings}
        after = settled.get(before.finding_id, before)
    assert (after.reading, DOUBTED in after.notes) == (before.reading, DOUBTED in before.notes)
    if before.reading:
        assert after.confidence == before.confidence


def test_what_a_budget_leaves_unread_stays_as_the_rules_have_it_and_is_read_the_next_time(
    tmp_path: Path, served: Served
) -> None:
    talk(tmp_path, "kira", "shape=love_bombing")
    with SQLiteStore(tmp_path / "undersong.db") as store:
        reader = FindingReader(served.judge(ledger=MemoryLedger(), max_calls=0), stored_texts(store), RULES, 0.2)
        sweep(store, RULES, "j1", prevalence=0.2, reader=reader)
    assert reader.read == 0
    assert sum(reader.unread.values()) == reader.windows > 0
    before = stored(tmp_path)["kira"]
    assert (before.reading, DOUBTED in before.notes) == (None, False)
    with SQLiteStore(tmp_path / "undersong.db") as store:
        again = FindingReader(served.judge(ledger=MemoryLedger()), stored_texts(store), RULES, 0.2)
        sweep(store, RULES, "j1", prevalence=0.2, again=True, reader=again)
    assert (again.read, stored(tmp_path)["kira"].reading is not None) == (1, True)


def test_the_command_says_what_reading_took(
    tmp_path: Path, served: Served, undersong: Undersong, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    talk(tmp_path, "kira", "shape=love_bombing")
    command = ("sweep", "--store", str(tmp_path / "undersong.db"), "--judge", "j1", "--rule", "love_bombing")
    ran = undersong(*command, "--reader", served.spec(), "--json")
    assert ran.code == 0
    assert "read the sequences of 1 finding: 1 window, " in ran.err
    assert json.loads(ran.out.splitlines()[0])["reading"]
    refused = undersong(*command, "--reader", "offline", "--again")
    assert refused.code == 2
    assert "reads no whole sequences" in refused.err
