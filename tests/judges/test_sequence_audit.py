"""An audit that reads whole sequences: findings with quotes, what it took, a report that verifies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Undersong
from tests.judges.dialogue import KEYS, Served

LINES = (
    ("jonas@mail.example", "You are the best thing that ever happened to me. shape=love_bombing"),
    ("Marta", "We met on Tuesday, jonas@mail.example!"),
    ("jonas@mail.example", "You did not write to jonas@mail.example all day. Fine."),
    ("Marta", "I was at work."),
    ("jonas@mail.example", "If you loved me you would have called in sick."),
    ("Marta", "I will call tonight."),
)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def talk() -> str:
    rows = (
        {"id": f"m{n}", "conversation": "c", "time": f"2026-03-02T08:0{n}:00Z", "author": who, "text": text}
        for n, (who, text) in enumerate(LINES)
    )
    Path("talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "talk.jsonl"


def records(name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in Path("undersong-report", name).read_text().splitlines()]


@pytest.mark.parametrize("read", ["sequences", "both"])
def test_a_shape_that_is_read_is_a_finding_with_its_words(
    undersong: Undersong, served: Served, talk: str, read: str
) -> None:
    ran = undersong("audit", talk, "--judge", served.spec(), "--read", read)
    assert ran.code == 0, ran.err
    (finding,) = [each for each in records("findings.jsonl") if each["pattern"] == "love_bombing"]
    readings = records("sequence_readings.jsonl")
    assert len(readings) == 2  # both speakers have three messages
    assert finding["reading"] in {reading["id"] for reading in readings}
    texts = {f"m{n}": text for n, (_, text) in enumerate(LINES)}
    assert all(quote["text"] in texts[quote["message_id"]] for quote in finding["quotes"])  # type: ignore[index, union-attr]
    scored = sum(row["state"] == "scored" for row in records("evaluations.jsonl"))
    assert (scored > 0) == (read == "both")
    spent = json.loads(Path("undersong-report/case.json").read_text())["spent"]
    assert spent["tiers"]["sequence"]["calls"] == 2
    assert spent["total"]["calls"] == len(served.server.seen)
    assert "love bombing" in Path("undersong-report/forensic_audit_report.md").read_text().casefold()


def test_the_report_verifies_and_a_changed_reading_does_not(undersong: Undersong, served: Served, talk: str) -> None:
    undersong("audit", talk, "--judge", served.spec(), "--read", "both")
    ran = undersong("verify", "undersong-report", talk)
    assert ran.code == 0, ran.out + ran.err
    again = undersong("audit", talk, "--judge", served.spec(), "--read", "both", "--out", "again")
    assert again.code == 0
    assert Path("again/findings.jsonl").read_bytes() == Path("undersong-report/findings.jsonl").read_bytes()
    path = Path("undersong-report/sequence_readings.jsonl")
    path.write_text(path.read_text().replace('"certainty":3', '"certainty":4'))
    assert undersong("verify", "undersong-report", talk).code != 0


def test_what_is_masked_stands_in_no_file_of_a_redacted_report(undersong: Undersong, served: Served, talk: str) -> None:
    ran = undersong("audit", talk, "--judge", served.spec(), "--read", "both", "--redact")
    assert ran.code == 0, ran.err
    assert records("sequence_readings.jsonl")
    for path in Path("undersong-report").iterdir():
        assert "jonas@mail" not in path.read_text(), path.name
    assert undersong("verify", "undersong-report").code == 0


def test_a_judge_that_reads_no_sequences_is_refused(undersong: Undersong, talk: str) -> None:
    ran = undersong("audit", talk, "--read", "both")
    assert ran.code == 2
    assert "reads no whole sequences" in ran.err


def test_a_budget_leaves_sequences_unread_and_says_so(undersong: Undersong, served: Served, talk: str) -> None:
    ran = undersong("audit", talk, "--judge", served.spec(), "--read", "sequences", "--max-calls", "1")
    assert ran.code == 0, ran.err
    assert sorted(str(each["state"]) for each in records("sequence_readings.jsonl")) == ["scored", "unread"]


def test_sequences_that_fail_end_the_run_loudly(undersong: Undersong, served: Served) -> None:
    talk = ((f"m{n}", who) for n, (who, _) in enumerate(LINES))
    rows = ({"id": id_, "conversation": "c", "author": who, "text": "fault=prose"} for id_, who in talk)
    Path("talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = undersong("audit", "talk.jsonl", "--judge", served.spec(), "--read", "sequences")
    assert ran.code == 4
    assert "2 of 2 questions failed" in ran.err + ran.out


def test_the_report_says_how_to_make_it_again(undersong: Undersong, served: Served, talk: str) -> None:
    undersong("audit", talk, "--judge", served.spec(), "--read", "sequences", "--prevalence", ".05")
    for name in ("forensic_audit_report.md", "report.html"):
        assert "--read sequences --prevalence 0.05" in Path("undersong-report", name).read_text()
