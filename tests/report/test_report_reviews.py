"""What people decided is in the next report of the same conversations, under its manifest."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from tests.stores.deeds import NOON
from undersong.cli import cli
from undersong.stores.protocol import open_store
from undersong.stores.review_queue import decide

DEMO = Path(__file__).parents[2] / "demo"


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, words, catch_exceptions=False)


def audited(*more: str) -> Result:
    done = run("audit", str(DEMO / "conversations"), "--read", "sequences", "--judge",
               f"replay:{DEMO / 'readings.replay'}", "--draws", "9", *more)  # fmt: skip
    assert done.exit_code == 0, done.output
    return done


def test_the_work_page_and_the_points_say_what_people_decided_of_a_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    audited()
    claim = json.loads(run("review", "next", "--from", "claim", "--json").output)
    run("review", "set", claim["id"], "rejected", "--reviewer", "Bo", "--reason", "already known")
    second = audited()
    report = tmp_path / "undersong-report"
    assert "Decided: rejected by Bo" in second.output
    assert "decided: `rejected by Bo" in (report / "work.md").read_text(encoding="utf-8")
    points = [json.loads(line) for line in (report / "points.jsonl").read_bytes().splitlines()]
    decided = [each["decided"] for each in points if each["message_id"] == claim["claim"]["message_id"]]
    assert decided
    assert all("rejected by Bo" in each[0] and "already known" in each[0] for each in decided)
    assert run("verify", str(report)).exit_code == 0


def test_a_review_is_in_the_next_report_and_verify_covers_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = tmp_path / "undersong-report"
    audited()
    assert not (report / "reviews.jsonl").exists()
    first = json.loads(run("review", "next", "--json").output)
    run("review", "set", first["id"], "confirmed", "--reviewer", "Ida", "--note", "<b>she</b> `pays` | *now*")
    second = audited()
    (line,) = (report / "reviews.jsonl").read_bytes().splitlines()
    assert (json.loads(line)["id"], json.loads(line)["reviewer"]) == (first["id"], "Ida")
    page = (report / "report.html").read_text(encoding="utf-8")
    assert "confirmed by Ida" in page
    assert "&lt;b&gt;she&lt;/b&gt;" in page
    assert "<b>she</b>" not in page
    assert "Decided: confirmed by Ida" in second.output.replace("\n   ", " ")
    assert "**Decided**: confirmed by Ida" in (report / "forensic_audit_report.md").read_text(encoding="utf-8")
    markdown = (report / "details.md").read_text(encoding="utf-8")
    assert "confirmed by Ida" in markdown
    assert "<b>she</b>" not in markdown
    assert "*now*" not in markdown.replace("\\*now\\*", "")
    assert "reviews.jsonl" in json.loads((report / "manifest.json").read_bytes())["files"]
    assert run("verify", str(report)).exit_code == 0
    (report / "reviews.jsonl").write_bytes(line.replace(b'"confirmed"', b'"rejected"') + b"\n")
    tampered = run("verify", str(report))
    assert tampered.exit_code != 0
    assert "reviews.jsonl" in tampered.output
    audited("--redact")
    assert not (report / "reviews.jsonl").exists()
    assert "by Ida" not in (report / "report.html").read_text(encoding="utf-8")


def test_confidence_is_fitted_to_reviews_where_there_are_enough_and_verify_works_it_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    audited("--confidence", "reviews")
    case = json.loads((tmp_path / "undersong-report" / "case.json").read_bytes())
    assert "confidence_map" not in case["parameters"]
    assert any("at least 30 are needed" in each["what"] for each in case["problems"])
    with open_store("undersong-report.db") as store:
        (finding,) = store.findings()
        others = [
            msgspec.structs.replace(finding, finding_id=f"{n:032}", agent=f"a{n}", message_ids=(f"m{n}",),
                                    message_conversations=("else",), conversations=("else",), stages=(), quotes=())
            for n in range(40)
        ]  # fmt: skip
        store.append((), others)
        for n, other in enumerate((*others, finding)):
            decide(store, other, "confirmed" if n % 4 == 0 else "rejected", NOON + timedelta(minutes=n))
    audited("--confidence", "reviews")
    report = tmp_path / "undersong-report"
    case = json.loads((report / "case.json").read_bytes())
    assert case["parameters"]["confidence_map"]["reviews"] == 41
    (line,) = (report / "findings.jsonl").read_bytes().splitlines()
    assert json.loads(line)["confidence"] < 0.7 < json.loads(line)["measures"]["confidence_shipped"]
    assert run("verify", str(report)).exit_code == 0
    audited()
    (line,) = (report / "findings.jsonl").read_bytes().splitlines()
    assert json.loads(line)["confidence"] == finding.confidence
