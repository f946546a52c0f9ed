"""Changes that a forger makes to a report, sealed again by our own writer: with the inputs at hand each is named."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import Undersong
from undersong.models import Case, Conversation, Finding, Lead, LedgerClaim, Row, SequenceReading, decode
from undersong.report.writer import write
from undersong.verify import verify
from undersong.verify.manifest_check import _with_claims

DEMO = Path(__file__).parent.parent.parent / "demo"
KINDS: dict[str, Any] = {
    "case.json": Case,
    "findings.jsonl": Finding,
    "evaluations.jsonl": Row,
    "conversations.jsonl": Conversation,
    "leads.jsonl": Lead,
    "sequence_readings.jsonl": SequenceReading,
    "claims.jsonl": LedgerClaim,
}
Data = dict[str, list[Any]]


def read(report: Path) -> Data:
    """The records of a report as plain values."""
    return {
        name: [json.loads(line) for line in (report / name).read_text().splitlines() if line]
        for name in KINDS
        if (report / name).exists()
    }


def seal(data: Data, folder: Path) -> None:
    """Write the report of these records, with pages and manifest that agree with them."""
    records = {name: [decode(json.dumps(value), KINDS[name]) for value in values] for name, values in data.items()}
    case: Case = records["case.json"][0]
    case = msgspec.structs.replace(
        case,
        findings=tuple(records["findings.jsonl"]),
        leads=tuple(records.get("leads.jsonl", ())),
        sequences=tuple(records.get("sequence_readings.jsonl", ())),
        sessions=_with_claims(case.sessions, records.get("claims.jsonl", ())),
    )
    transcripts = {each.id: each for each in records["conversations.jsonl"]}
    write(case, records["evaluations.jsonl"], folder, run={"seconds": 1}, conversations=transcripts.get)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The demo's inputs and a report of them, which has findings, readings, claims and deductions."""
    folder = tmp_path_factory.mktemp("forged")
    inputs, report = folder / "conversations", folder / "report"
    shutil.copytree(DEMO / "conversations", inputs)
    judge = f"replay:{DEMO / 'readings.replay'}"
    arguments = ["audit", str(inputs), "--out", str(report), "--no-store", "--read", "sequences", "--judge", judge]
    subprocess.run([sys.executable, "-m", "undersong", *arguments], cwd=folder, check=True, capture_output=True)
    return inputs, report


def at(*steps: str | int) -> Callable[[Any], tuple[Any, str | int]]:
    """The holder of a place in plain values, and its last step."""

    def find(value: Any) -> tuple[Any, str | int]:
        for step in steps[:-1]:
            value = value[step]
        return value, steps[-1]

    return find


CASE, ROWS, TALKS = "case.json", "evaluations.jsonl", "conversations.jsonl"
FINDINGS, READINGS, CLAIMS = "findings.jsonl", "sequence_readings.jsonl", "claims.jsonl"
FORGERIES: tuple[tuple[str, Callable[[Any], tuple[Any, str | int]], Any], ...] = (
    (TALKS, at(0, "messages", 1, "author"), "Somebody"),
    (TALKS, at(0, "messages", 1, "agent"), "choir/Somebody"),
    (TALKS, at(0, "messages", 1, "role"), "agent"),
    (TALKS, at(0, "messages", 1, "text"), "I never wrote that."),
    (TALKS, at(0, "messages", 1, "time"), "2026-01-01T00:00:00Z"),
    (TALKS, at(0, "messages", 1, "target"), None),
    (TALKS, at(0, "messages", 1, "position"), 7),
    (TALKS, at(0, "messages", 1, "model"), "m"),
    (ROWS, at(0, "agent"), "choir/Somebody"),
    (ROWS, at(0, "time"), "2026-01-01T00:00:00Z"),
    (ROWS, at(0, "tier"), "deep"),
    (ROWS, at(0, "state"), "refused"),
    (ROWS, at(0, "total"), 3),
    (FINDINGS, at(0, "agent"), "flat_share/Iven"),
    (FINDINGS, at(0, "target"), "flat_share/Marla"),
    (FINDINGS, at(0, "confidence"), 0.1),
    (FINDINGS, at(0, "strength"), 0.1),
    (FINDINGS, at(0, "level"), "low"),
    (FINDINGS, at(0, "start"), "2026-01-01T00:00:00Z"),
    (FINDINGS, at(0, "title"), "Friendship"),
    (READINGS, at(0, "agent"), "choir/Somebody"),
    (READINGS, at(0, "message_ids", 0), "another"),
    (CLAIMS, at(0, "state"), "disputed"),
    (CLAIMS, at(0, "kind"), "build"),
    (CLAIMS, at(0, "message_id"), "csv-import:1"),
    (CASE, at(0, "messages"), 36),
    (CASE, at(0, "conversations"), 4),
    (CASE, at(0, "states", "unread"), 99),
    (CASE, at(0, "judge_calls"), 9),
    (CASE, at(0, "cost"), 12.0),
    (CASE, at(0, "missed", "left_out"), 1),
    (CASE, at(0, "inputs", 0, "messages"), 1),
    (CASE, at(0, "inputs", 0, "size"), 1),
    (CASE, at(0, "inputs", 0, "skipped"), 1),
    (CASE, at(0, "inputs", 0, "source_format"), "claude"),
    (CASE, at(0, "cited", 0, "source_ref", "line"), 99),
    (CASE, at(0, "sessions", 0, "conversation"), "another"),
    (CASE, at(0, "sessions", 0, "score"), 7),
    (CASE, at(0, "agents", 0, "agent"), "choir/Somebody"),
    (CASE, at(0, "parameters", "audit_sample_rate"), 0.5),
    (CASE, at(0, "highest", "deception"), 0.5),
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "place", "value"), FORGERIES)
def test_a_forgery_is_named(
    made: tuple[Path, Path], tmp_path: Path, name: str, place: Callable[[Any], tuple[Any, str | int]], value: Any
) -> None:
    inputs, report = made
    data = read(report)
    holder, step = place(data[name])
    assert not (isinstance(holder, dict) and holder.get(step) == value)
    holder[step] = value
    seal(data, tmp_path / "forged")
    assert verify(tmp_path / "forged", [inputs])


def test_a_problem_that_is_erased_is_named(undersong: Undersong, tmp_path: Path) -> None:
    rows = [{"conversation": "c", "author": "a", "text": f"hello {n}"} for n in range(3)]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{broken\n")
    assert undersong("audit", str(path), "--out", str(tmp_path / "report"), "--no-store").code == 0
    data = read(tmp_path / "report")
    assert data[CASE][0]["problems"]
    data[CASE][0]["problems"] = []
    seal(data, tmp_path / "forged")
    assert any(
        "a problem of the inputs is not in the report" in each.what for each in verify(tmp_path / "forged", [path])
    )


def test_the_report_that_nobody_changed_agrees_when_it_is_sealed_again(made: tuple[Path, Path], tmp_path: Path) -> None:
    inputs, report = made
    seal(read(report), tmp_path / "same")
    assert verify(tmp_path / "same", [inputs]) == ()
