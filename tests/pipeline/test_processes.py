"""Whatever the number of processes, which start anew as on Windows and macOS, a command gives the same bytes."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from undersong.models import TRAITS, encode
from undersong.patterns.catalog import load_rules
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.estimate import Significance
from undersong.pipeline.audit import audit, detect_rows, rows_in
from undersong.pipeline.history_sweep import sweep
from undersong.pipeline.options import Options
from undersong.stores.sqlite import SQLiteStore
from undersong.stores.transfer import export_records

EFFORT = ResamplingConfig(draws=40, replicas=10)
TALK = (
    "The tide gauge reads low again.", "Nobody else would see it as clearly as you do.", "All tests pass now.",
    "Send me the key tonight, before they come.", "Because I did everything for you and you owe me this.",
    "I am sorry, you are right, I was wrong.", "It still fails with the same error.", "",
)  # fmt: skip
START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("love_bombing", "con_game", "darvo")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Rows of 30 agents whose scores wander, so that some rules match by chance."""
    dice, path = random.Random(3), tmp_path / "rows.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(900):
            agent = number % 30
            row = {"id": f"m{number}", "conversation": f"c{agent}", "agent": f"a{agent}", "target": f"t{agent}"}
            row |= {"time": (START + timedelta(minutes=10 * number)).isoformat(), "state": "scored", "role": "agent"}
            row |= {"judge": "bench", "judge_hash": "b" * 64}
            row |= {"traits": {trait: round(dice.random(), 3) for trait in TRAITS}}
            file.write(json.dumps(row) + "\n")
    return path


@pytest.fixture
def conversations(tmp_path: Path) -> Path:
    """Some 60 conversations of 20 messages: more than one batch."""
    dice, path = random.Random(5), tmp_path / "in.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(1_200):
            author = ("assistant", "user")[number % 2]
            row = {"id": f"m{number}", "conversation": f"c{number // 20}", "author": author, "role": author}
            row["text"] = " ".join(dice.choice(TALK) for _ in range(dice.randint(1, 4)))
            file.write(json.dumps(row) + "\n")
    return path


def written(significance: Significance) -> bytes:
    return b"\n".join(map(encode, significance.findings)) + f"{significance.family}, {significance.tested}".encode()


def test_two_processes_find_what_one_does(rows: Path) -> None:
    one, two = (written(detect_rows(rows, load_rules(names=NAMES), EFFORT, processes=n)[2]) for n in (1, 2))
    assert one.count(b"chance") > 3
    assert two == one


def test_two_processes_sweep_what_one_does(rows: Path, tmp_path: Path) -> None:
    swept = []
    for processes in (1, 2):
        with SQLiteStore(tmp_path / f"{processes}.db") as store:
            store.append(rows_in(rows)[1])
            sweep(store, load_rules(names=NAMES), "b" * 64, effort=EFFORT, processes=processes)
            swept.append(b"\n".join(map(encode, store.findings())))
    assert swept[0].count(b"chance") > 3
    assert swept[1] == swept[0]


def test_two_processes_audit_what_one_does(conversations: Path, tmp_path: Path) -> None:
    results = []
    for processes in (1, 2):
        with SQLiteStore(tmp_path / f"{processes}.db") as store:
            case, rows = audit(conversations, store, Options(processes=processes))
            stored = [encode(record) for record in export_records(store)]
            results.append((encode(case), [encode(row) for row in rows], stored))
            again, _ = audit(conversations, store, Options(processes=processes))
            assert encode(again) == results[-1][0]
    assert len(results[0][1]) == 1_200
    assert results[1] == results[0]
