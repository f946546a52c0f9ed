"""Live rows stand as an audit's do: levels or ranks by the domain check, and the name of the reference ranges."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import undersong
from tests.conftest import SAMPLES
from tests.judges.conftest import served
from tests.judges.dialogue import KEYS, Served
from tests.monitor.worlds import BATCH, RECALL
from undersong.formats.ingest import read
from undersong.models import Case, Conversation, Row
from undersong.monitor import SyncMonitor
from undersong.rows.corpus_scales import table_name

__all__ = ["served"]
FORMATS = Path(__file__).parents[1] / "samples"
FILES = [SAMPLES / "invoice_session.json", SAMPLES / "memory_thread.json", FORMATS / "codex", FORMATS / "moltbook"]


@pytest.fixture(scope="module")
def audited() -> tuple[Case, list[Row]]:
    return undersong.audit(FILES, options=BATCH)


def conversations(*paths: Path) -> list[Conversation]:
    return [item for item in read(paths) if isinstance(item, Conversation)]


def bare(row: Row) -> Row:
    return msgspec.structs.replace(row, text=None, hits=())


def test_rows_of_a_live_run_are_those_of_an_audit(audited: tuple[Case, list[Row]], tmp_path: Path) -> None:
    case, rows = audited
    talks = conversations(*FILES)
    with SyncMonitor(tmp_path / "undersong.db", recall=RECALL) as monitor:
        for talk in talks:
            monitor.begin(msgspec.structs.replace(talk, messages=()))
            for message in reversed(talk.messages):
                monitor.observe(message)
        assert [bare(row) for talk in talks for row in monitor.rows(talk.id)] == rows
        assert monitor.signals() == case.signals
    assert "rank" in {row.scale for row in rows}
    assert {row.bands for row in rows if row.state == "scored"} == {table_name(case.signals)}


def test_bands_and_ranks_follow_what_others_write(tmp_path: Path) -> None:
    first, second = (conversations(path) for path in (FILES[0], FORMATS / "moltbook"))
    with SyncMonitor(tmp_path / "undersong.db") as one, SyncMonitor(tmp_path / "undersong.db") as other:
        one.begin(*first)
        before = one.rows(first[0].id)
        other.begin(*second)
        assert {row.bands for row in before} != {row.bands for row in one.rows(first[0].id)}
        assert one.rows(second[0].id) == other.rows(second[0].id)


def test_a_session_is_confirmed_where_that_is_asked_for(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    turns = [("user", "the export is empty"), ("assistant", "You must have misconfigured something.")]
    with SyncMonitor(tmp_path / "undersong.db", served.spec(), read_all=True) as monitor:
        for place, (role, text) in enumerate(turns):
            monitor.observe({"id": f"s-{place}", "conversation": "s", "role": role, "text": text})
        assert (monitor.session("s").confirmations, monitor.session("s").deductions) == ((), ())
        live = monitor.session("s", confirm=True)
        asked = len(served.server.seen)
        assert monitor.session("s", confirm=True) == live
        assert len(served.server.seen) == asked  # an answer that was paid is kept
    assert [each.yes for each in live.confirmations] == [True]
    assert [taken.kind for taken in live.deductions] == ["confirmed_by_judge"]
