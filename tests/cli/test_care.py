"""What a slip of the hand must not destroy."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.conftest import Undersong

SESSION = "samples/invoice_session.json"
REPORT = Path("undersong-report")


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        (["scan", SESSION, "--out", SESSION], SESSION),
        (["scan", SESSION, "--threads", "./samples/../" + SESSION], SESSION),
        (["scan", "samples", "--out", SESSION], SESSION),
        (["evaluate", SESSION, "--out", SESSION], SESSION),
        (["evaluate", SESSION, "--store", SESSION], SESSION),
        (["detect", "rows.jsonl", "--out", "rows.jsonl"], "rows.jsonl"),
        (["audit", SESSION, "--store", SESSION], SESSION),
    ],
)
def test_an_output_is_never_written_over_an_input(undersong: Undersong, arguments: list[str], target: str) -> None:
    undersong("evaluate", "samples", "--out", "rows.jsonl")
    before = Path(target).read_bytes()
    ran = undersong(*arguments)
    assert ran.code == 2
    assert "is an input" in ran.err
    assert Path(target).read_bytes() == before


def test_two_outputs_are_two_files(undersong: Undersong) -> None:
    ran = undersong("scan", "samples", "--out", "rows.jsonl", "--threads", "./rows.jsonl")
    assert ran.code == 2
    assert not Path("rows.jsonl").exists()


@pytest.mark.parametrize("verb", ["scan", "evaluate"])
def test_a_mistyped_path_leaves_the_older_rows_as_they_are(undersong: Undersong, verb: str) -> None:
    undersong(verb, "samples", "--out", "rows.jsonl")
    before = Path("rows.jsonl").read_bytes()
    ran = undersong(verb, "smaples", "--out", "rows.jsonl")
    assert ran.code == 3
    assert "smaples" in ran.err
    assert Path("rows.jsonl").read_bytes() == before
    assert not list(Path().glob(".*.partial"))


def test_a_mistyped_path_leaves_the_older_report_as_it_is(undersong: Undersong) -> None:
    undersong("audit", "samples")
    before = {path.name: path.read_bytes() for path in REPORT.iterdir()}
    ran = undersong("audit", "smaples.zip")
    assert ran.code == 3
    assert "nothing was written" in ran.err
    assert {path.name: path.read_bytes() for path in REPORT.iterdir()} == before


@pytest.mark.parametrize("arguments", [["--only", "nothing*"], ["--since", "2099-01-01"]])
def test_a_filter_that_matches_nothing_says_so_and_writes_nothing(undersong: Undersong, arguments: list[str]) -> None:
    for verb in (["audit"], ["scan", "--out", "rows.jsonl"]):
        ran = undersong(*verb, "samples", *arguments)
        assert ran.code == 2
        assert "matched none of 2 conversations" in ran.err
    assert not REPORT.exists()
    assert not Path("rows.jsonl").exists()


def test_a_store_in_a_missing_folder_is_named_and_no_folder_is_made(undersong: Undersong) -> None:
    for verb in ("audit", "evaluate"):
        ran = undersong(verb, "samples", "--store", "nowhere/deep/kept.db")
        assert ran.code == 2
        assert "nowhere" in ran.err
    assert not Path("nowhere").exists()
    assert undersong("audit", "samples", "--out", "new/report").code == 0


def test_detect_reads_rows_from_standard_input(undersong: Undersong, monkeypatch: pytest.MonkeyPatch) -> None:
    undersong("evaluate", "samples", "--out", "rows.jsonl")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("rows.jsonl").read_bytes())))
    ran = undersong("detect", "-")
    assert ran.code == 0, ran.err
    assert "2 rules ran" in ran.err


def test_detect_takes_null_wherever_a_score_may_stand_and_names_other_junk(undersong: Undersong) -> None:
    warm, cold = {"compassion": 0.9, "goodwill": 0.8, "manipulation": 0.1}, {"compassion": 0.1, "manipulation": 0.9}
    scores = [warm | {"accuracy": None}, warm, warm, cold | {"goodwill": None}, warm | {"manipulation": "low"}]
    rows = [
        {"id": str(n), "agent": "kira", "target": "bo", "time": f"2026-01-0{n + 1}T00:00:00Z", "traits": each}
        for n, each in enumerate(scores)
    ]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = undersong("detect", "rows.jsonl", "--rule", "love_bombing_literal")
    assert [json.loads(line)["message_ids"] for line in ran.out.splitlines()] == [["0", "1", "2", "3"]]
    assert "rows.jsonl:5: manipulation is 'low'; a score is a number from 0 to 1, or null" in ran.err
    assert "rows.jsonl:1" not in ran.err
