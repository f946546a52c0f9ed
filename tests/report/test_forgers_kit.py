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
FINDINGS, READINGS, CLAIMS, LEADS = "findings.jsonl", "sequence_readings.jsonl", "claims.jsonl", "leads.jsonl"
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


def put(name: str, *steps: str | int, value: Any) -> Callable[[Data], None]:
    """A change of one place."""

    def change(data: Data) -> None:
        holder, step = at(*steps)(data[name])
        assert not (isinstance(holder, dict) and holder.get(step) == value)
        holder[step] = value

    return change


def everywhere(*pairs: tuple[str, str]) -> Callable[[Data], None]:
    """Other values in every record, all at once: what is told of one person is told of another."""
    others = dict(pairs)

    def other(value: Any) -> Any:
        if isinstance(value, dict):
            return {others.get(name, name): other(part) for name, part in value.items()}
        if isinstance(value, list):
            return [other(part) for part in value]
        return others.get(value, value) if isinstance(value, str) else value

    def change(data: Data) -> None:
        data.update({name: other(values) for name, values in data.items()})

    return change


def later(data: Data) -> None:
    """All of February's times two months later."""
    text = json.dumps(data).replace('"2026-02-', '"2026-04-')
    data.update(json.loads(text))


def without_reading(data: Data) -> None:
    """A finding and the reading that it rests on are gone."""
    data[FINDINGS].clear()
    data[READINGS].pop(0)


def session(data: Data) -> dict[str, Any]:
    """The session that has points."""
    return next(each for each in data[CASE][0]["sessions"] if each["deductions"])


MARLA_AS_IVEN = (("flat_share/Marla", "flat_share/Iven"), ("Marla", "Iven"))
# what is changed, how, and whether it is named without the inputs, too: where the report no longer agrees with itself
LARGER: tuple[tuple[str, Callable[[Data], object], bool], ...] = (
    ("culprit and victim change places", everywhere(*MARLA_AS_IVEN, *((two, one) for one, two in MARLA_AS_IVEN)), True),
    ("a person is renamed", everywhere(("flat_share/Marla", "flat_share/Bodo"), ("Marla", "Bodo")), True),
    ("all times", later, False),
    ("a finding with its reading", without_reading, True),
    ("a finding", lambda data: data[FINDINGS].pop(0), True),
    ("a reading", lambda data: data[READINGS].pop(1), True),
    ("how sure a reading is", put(READINGS, 0, "shapes", 0, "certainty", value=1), True),
    ("who read", put(READINGS, 0, "judge", value="gpt"), True),
    ("the innocent reading", put(READINGS, 0, "shapes", 0, "innocent", value="They joke."), True),
    ("a surer confidence", put(FINDINGS, 0, "confidence", value=0.99), True),
    ("a status", put(FINDINGS, 0, "status", value="open"), True),
    ("a cited message", put(FINDINGS, 0, "message_ids", 0, value="flat_share:0"), True),
    ("the place of a quote", put(FINDINGS, 0, "quotes", 0, "start", value=0), True),
    ("a measure", put(FINDINGS, 0, "measures", "certainty", value=1.0), True),
    ("a rule", put(FINDINGS, 0, "rule_hash", value="0" * 64), True),
    ("a lead", lambda data: data[LEADS].pop(0), True),
    ("the order of leads", lambda data: data[LEADS].reverse(), True),
    ("a lead's score", put(LEADS, 0, "score", value=0.1), True),
    ("a lead's reason", put(LEADS, 0, "reason", value="Nothing."), True),
    ("a lead's agent", put(LEADS, 0, "agent", value="flat_share/Iven"), True),
    ("a lead's messages", put(LEADS, 1, "message_ids", value=[]), True),
    ("a claim", lambda data: data[CLAIMS].pop(1), True),
    ("a claim's reason", put(CLAIMS, 0, "reason", value="none"), True),
    ("a claim's state", put(CLAIMS, 1, "state", value="backed"), True),
    ("a claim's agent", put(CLAIMS, 0, "agent", value="csv-import/user"), True),
    ("a claim's time", put(CLAIMS, 0, "time", value="2026-01-01T00:00:00Z"), True),
    ("points", lambda data: session(data)["deductions"].clear(), True),
    ("fewer points", lambda data: session(data)["deductions"][0].update(points=1), True),
    ("what came of a rule", lambda data: data[CASE][0]["outcomes"].pop(0), True),
    ("what was read", put(CASE, 0, "parameters", "read", value="messages"), True),
    ("the judge", put(CASE, 0, "parameters", "judge", value="offline"), True),
    ("the judge's hash", put(CASE, 0, "parameters", "judge_hash", value="0" * 64), True),
    ("the prevalence", put(CASE, 0, "parameters", "prevalence", value=0.9), True),
    ("what nobody read", put(CASE, 0, "parameters", "unread_sequences", value={"short": 0, "not_nominated": 0}), True),
    ("up to where", put(CASE, 0, "parameters", "read_up_to", value="all"), False),
    ("since when", put(CASE, 0, "parameters", "since", value="2026-03-01T00:00:00+00:00"), False),
    ("which conversations", put(CASE, 0, "parameters", "only", value=["x"]), False),
    ("a problem more",
     lambda data: data[CASE][0]["problems"].append({"kind": "file", "where": "x", "what": "cannot be read"}), False),
    ("who was raised", put(CASE, 0, "upgrades", value={"flat_share/Marla": 3}), False),
    ("a tier", lambda data: data[CASE][0]["tiers"].update(deep=9), True),
    ("the number of ranks", put(CASE, 0, "ranked", value=5), True),
    ("an input's name", put(CASE, 0, "inputs", 0, "name", value="other.txt"), False),
    ("an input's hash", put(CASE, 0, "inputs", 0, "sha256", value="0" * 64), False),
    ("an input's conversations", put(CASE, 0, "inputs", 0, "conversations", value=2), False),
    ("the program", put(CASE, 0, "version", value="9.9"), True),
)  # fmt: skip
# options that changed no result of this report, as docs/report.md says: nobody can tell what they were
UNTOLD = (("budget_usd", 9.0), ("max_failed", 0.9), ("seed", 7), ("chance_draws", 9), ("router_repeat_before", 9))


@pytest.mark.slow
@pytest.mark.parametrize(("change", "alone"), [each[1:] for each in LARGER], ids=[each[0] for each in LARGER])
def test_a_larger_forgery_is_named_and_without_inputs_where_the_report_contradicts_itself(
    made: tuple[Path, Path], tmp_path: Path, change: Callable[[Data], object], alone: bool
) -> None:
    inputs, report = made
    data = read(report)
    change(data)
    seal(data, tmp_path / "forged")
    assert verify(tmp_path / "forged", [inputs])
    assert bool(verify(tmp_path / "forged")) == alone


def test_of_options_that_changed_nothing_the_documents_promise_nothing(made: tuple[Path, Path], tmp_path: Path) -> None:
    inputs, report = made
    data = read(report)
    for name, value in UNTOLD:
        put(CASE, 0, "parameters", name, value=value)(data)
    seal(data, tmp_path / "forged")
    assert verify(tmp_path / "forged", [inputs]) == ()
    assert "options that change no result" in " ".join((DEMO.parent / "docs" / "report.md").read_text().split())


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


def test_what_is_in_the_messages_of_a_lead_agrees_where_the_report_does_not_hold_its_conversation_whole(
    undersong: Undersong, tmp_path: Path
) -> None:
    lines = (Path(__file__).parents[2] / "bench/chats/messages.jsonl").read_text(encoding="utf-8").splitlines()
    lead = [line for line in lines if '"conversation": "m10"' in line]
    others = [
        json.dumps({"conversation": f"day{number}", "author": author, "text": text})
        for number in range(20)
        for author, text in (("Ann", f"Shall we meet at {number} by the gate?"), ("Bo", "Yes, I will bring the map."))
    ]
    (tmp_path / "talk.jsonl").write_text("\n".join([*lead, *others]), encoding="utf-8")
    assert undersong("audit", "talk.jsonl", "--no-store").code == 0
    held, leads = (
        [json.loads(line) for line in (tmp_path / "undersong-report" / name).read_text(encoding="utf-8").splitlines()]
        for name in ("conversations.jsonl", "leads.jsonl")
    )
    assert [lead["conversation"] for lead in leads if lead["kinds"]] == ["m10"]
    assert "m10" not in {conversation["id"] for conversation in held}
    ran = undersong("verify", "undersong-report")
    assert (ran.code, "everything agrees" in ran.out) == (0, True)
