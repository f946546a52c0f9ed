"""Evaluations in a store on a server, paid answers in a file beside the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.judges.dialogue import KEYS, Served
from undersong.passes import Options
from undersong.pipeline import audit
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
        with SQLiteStore(tmp_path / f"store{number}.db") as kept:
            case, _ = audit(tmp_path / "talk.jsonl", OnAServer(kept), options)  # type: ignore[arg-type]
            assert case.states == {"scored": 2}
    assert len(served.server.seen) == asked


def test_a_free_judge_needs_no_such_file(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text('{"id": "m", "conversation": "c", "author": "kira", "text": "Hello."}\n')
    with SQLiteStore(tmp_path / "store.db") as kept:
        audit(tmp_path / "talk.jsonl", OnAServer(kept), Options(ledger=str(tmp_path / "answers.db")))  # type: ignore[arg-type]
    assert not (tmp_path / "answers.db").exists()
