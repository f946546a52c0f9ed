"""A rule over what the scan flagged finds the same in every run, whatever the run keeps of the hits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Undersong
from undersong.stores.sqlite import SQLiteStore

REPLIES = (
    "No, I don't agree: actually, that is incorrect. The lease ends in May.",
    "However, the notice has to be written: that's not correct either.",
    "I'm sorry, I apologize for the confusion. We can count it your way.",
    "I apologize, you're absolutely right about the notice.",
    "I'm so sorry. I apologize again, it ends whenever you say.",
    "I apologize. You're right, as always.",
)


@pytest.fixture
def chat() -> str:
    turns = []
    for minute, reply in enumerate(REPLIES):
        for role, text in (("user", f"You have line {minute} wrong."), ("assistant", reply)):
            second = "00" if role == "user" else "30"
            turns.append({"role": role, "text": text, "time": f"2026-02-03T10:{minute:02}:{second}Z"})
    messages = [{"id": f"t{place}", "conversation": "lease"} | turn for place, turn in enumerate(turns)]
    Path("lease.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in messages))
    return "lease.jsonl"


def test_steps_audit_and_sweep_find_the_same_collapse(undersong: Undersong, chat: str) -> None:
    undersong("evaluate", chat, "--out", "rows.jsonl")
    undersong("detect", "rows.jsonl", "--out", "steps.jsonl")
    audit = undersong("audit", chat, "--out", "report", "--store", "lease.db")
    assert audit.code == 0, audit.err
    swept = undersong("sweep", "--store", "lease.db", "--min-evaluations", "1", "--again")
    assert swept.code == 0, swept.err
    with SQLiteStore(Path("lease.db")) as store:
        stored = [(each.pattern, list(each.message_ids)) for each in store.findings()]
    written = [
        [(each["pattern"], each["message_ids"]) for each in map(json.loads, Path(path).read_text().splitlines())]
        for path in ("steps.jsonl", "report/findings.jsonl")
    ]
    assert written == [stored, stored]
    assert [pattern for pattern, _ in stored] == ["deference_collapse"]
    assert undersong("verify", "report", chat).code == 0
