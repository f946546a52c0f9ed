"""Evaluations in a store on a server, paid answers in a file beside the report."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.judges.dialogue import KEYS, Served
from undersong.judges.ledger import SQLiteLedger
from undersong.models import TRAITS, Conversation, Evaluation, Finding, Message, Row
from undersong.pipeline.audit import audit
from undersong.pipeline.judge_session import pasts_of
from undersong.pipeline.options import Options
from undersong.scan import load_book, scan_conversation
from undersong.stores.sqlite import SQLiteStore


class OnAServer:
    """A store that is no file of ours to the pipeline: every call goes to a real one."""

    def __init__(self, store: SQLiteStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(("ledger", "asked"), [("answers.db", 2), (None, 4)])
def test_answers_beside_a_store_on_a_server_are_paid_once(
    served: Served, tmp_path: Path, ledger: str | None, asked: int
) -> None:
    rows = [{"id": f"m{n}", "conversation": "c", "author": "kira", "text": f"You owe me, {n}."} for n in range(2)]
    (tmp_path / "talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = Options(
        judge=served.spec(), read_all=True, effort=None, ledger=str(tmp_path / ledger) if ledger else None
    )
    for number in range(2):  # the server is empty again: only the ledger remembers
        with SQLiteStore(tmp_path / f"store{number}.db") as store:
            case, _ = audit(tmp_path / "talk.jsonl", OnAServer(store), options)  # type: ignore[arg-type]
            assert case.states == {"scored": 2}
    assert len(served.server.seen) == asked


def test_a_free_judge_needs_no_such_file(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text('{"id": "m", "conversation": "c", "author": "kira", "text": "Hello."}\n')
    with SQLiteStore(tmp_path / "store.db") as store:
        audit(tmp_path / "talk.jsonl", OnAServer(store), Options(ledger=str(tmp_path / "answers.db")))  # type: ignore[arg-type]
    assert not (tmp_path / "answers.db").exists()


def test_histories_are_those_of_the_store_wherever_it_is(tmp_path: Path) -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    times = {"m0": start, "m1": start + timedelta(hours=1), "m2": None}
    messages = tuple(
        Message(
            id=name,
            conversation="c",
            position=place,
            author="kira",
            agent="kira",
            role="agent",
            text="Well.",
            time=time,
        )
        for place, (name, time) in enumerate(times.items())
    )
    talk = Conversation(id="c", source_format="jsonl", messages=messages)
    scans, thread = scan_conversation(talk, load_book())
    traits = dict.fromkeys(TRAITS, 0.25)
    evaluations = [
        Evaluation(message_id=each.id, state="scored", traits=traits, judge="x", judge_hash="h", message_hash="")
        for each in messages
    ]
    rows = [
        Row(id=each.id, conversation="c", position=each.position, time=each.time, agent="kira", state="scored",
            traits=traits, judge="x", judge_hash="h")
        for each in messages
    ]  # fmt: skip
    finding = Finding(
        finding_id="f", pattern="darvo", title="", level="high", rule_hash="r", agent="kira", target=None,
        conversations=("c",), message_ids=("m0",), message_conversations=("c",), end=start, strength=0.5,
    )  # fmt: skip
    with SQLiteStore(tmp_path / "store.db") as store:
        store.put_conversation(talk, scans, thread)
        store.put_answers([("c", each) for each in evaluations])
        store.append(rows, [finding])
        with SQLiteLedger(tmp_path / "store.db") as own:
            own.snapshot("run", "h")
            history = own.past("run", "kira")
        with SQLiteLedger(tmp_path / "beside.db", pasts=partial(pasts_of, store)) as beside:
            beside.snapshot("run", "h")
            beside.snapshot_agent("one", "h", "kira")
            assert beside.past("run", "kira") == beside.past("one", "kira") == history
    assert (len(history.readings), [pattern for _, pattern in history.findings]) == (2, ["darvo"])
