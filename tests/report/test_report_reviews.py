"""What people decided is in the next report of the same conversations, under its manifest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from undersong.cli import cli

DEMO = Path(__file__).parents[2] / "demo"


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, words, catch_exceptions=False)


def audited(*more: str) -> None:
    done = run("audit", str(DEMO / "conversations"), "--read", "sequences", "--judge",
               f"replay:{DEMO / 'readings.replay'}", "--draws", "9", *more)  # fmt: skip
    assert done.exit_code == 0, done.output


def test_a_review_is_in_the_next_report_and_verify_covers_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = tmp_path / "undersong-report"
    audited()
    assert not (report / "reviews.jsonl").exists()
    first = json.loads(run("review", "next", "--json").output)
    run("review", "set", first["id"], "confirmed", "--reviewer", "Ida", "--note", "she pays")
    audited()
    (line,) = (report / "reviews.jsonl").read_bytes().splitlines()
    assert (json.loads(line)["id"], json.loads(line)["reviewer"]) == (first["id"], "Ida")
    assert "reviews.jsonl" in json.loads((report / "manifest.json").read_bytes())["files"]
    assert run("verify", str(report)).exit_code == 0
    (report / "reviews.jsonl").write_bytes(line.replace(b'"confirmed"', b'"rejected"') + b"\n")
    tampered = run("verify", str(report))
    assert tampered.exit_code != 0
    assert "reviews.jsonl" in tampered.output
    audited("--redact")
    assert not (report / "reviews.jsonl").exists()
