"""The page on the work of coding agents, and the words that a report uses for each kind of talk."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Undersong
from undersong.models import LedgerClaim, Quote
from undersong.models.verdict import BROKEN, NARROWED, NARROWER
from undersong.report.work_view import ClaimToCheck

SHELL = {"name": "Bash", "id": "c1", "input": {"command": "pytest -q"}}
COMPANION_WORDS = re.compile(r"sovereign|psychogenic|distress code|validated delusion", re.IGNORECASE)


def session(claim: str, result: str, *, error: bool, days: int = 0) -> dict[str, Any]:
    """A session in which a check is run and something is claimed."""
    time = f"2026-03-{20 - days:02d}T10:00:0"
    turns = [
        {"role": "user", "text": "the tide table is off by one", "ts": f"{time}0Z"},
        {"role": "assistant", "text": "Checking.", "ts": f"{time}1Z"},
        {"role": "assistant", "text": "", "tool_calls": [SHELL], "ts": f"{time}2Z"},
        {"role": "tool", "text": result, "ts": f"{time}3Z",
         "tool_results": [{"text": result, "call_id": "c1", "is_error": error}]},
        {"role": "assistant", "text": claim, "ts": f"{time}4Z"},
    ]  # fmt: skip
    return {"schema": "undersong.session", "version": 1, "session": {"id": f"tide-{days}"}, "turns": turns}


def write(path: Path, *sessions: dict[str, Any]) -> None:
    path.write_text("".join(json.dumps(each) + "\n" for each in sessions), encoding="utf-8")


def test_one_page_names_the_claim_what_speaks_against_it_and_how_to_open_it(
    undersong: Undersong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = session("All tests pass.", "9 passed in 0.1s", error=False, days=3)
    wrong = session("All tests pass.", "FAILED tests/test_tide.py::test_low\n1 failed, 8 passed", error=True)
    write(tmp_path / "talks.jsonl", right, wrong)
    ran = undersong("audit", str(tmp_path / "talks.jsonl"), "--out", str(tmp_path / "out"))
    page = (tmp_path / "out" / "work.md").read_text(encoding="utf-8")
    assert "Of 2 claims 1 backed, 1 contradicted" in page
    assert "FAILED tests/test_tide.py::test_low" in page
    assert "2026-03-20" in page
    command = re.search(r"undersong (explain \S+)`", page)
    assert command
    shown = undersong(*command[1].split(), "--store", str(tmp_path / "out.db"))
    assert shown.code == 0
    assert "All tests pass." in shown.out
    assert "claim: tests, contradicted" in shown.out
    assert "FAILED tests/test_tide.py::test_low" in shown.out
    monkeypatch.chdir(tmp_path / "out")
    assert undersong(*command[1].split()).out == shown.out
    monkeypatch.chdir(tmp_path)
    assert "work.md" in ran.out
    assert "of 2 claims 1 backed, 1 contradicted" in " ".join(ran.out.split())
    assert undersong("verify", str(tmp_path / "out"), str(tmp_path / "talks.jsonl")).code == 0


@pytest.mark.parametrize(("check", "reason", "heading"), [
    ("", "nothing of the kind was run before it", "never checked"),
    ("pytest -q", "nothing of the kind was run since the last change", "not checked since"),
    ("pytest -q -k low", NARROWER, "checked in part"), ("npx tsc", NARROWED, "check narrowed"),
    ("make", BROKEN, "never checked"),
    ("pytest -q", "the output of the check does not say that it passed", "never checked"),
])  # fmt: skip
def test_what_was_checked_before_or_in_part_is_not_headed_as_never_checked(
    check: str, reason: str, heading: str
) -> None:
    quote = Quote(message_id="m", start=0, end=4, text="Done", sha256="")
    claim = LedgerClaim(
        conversation="c", message_id="m", position=1, agent="a", time=None, kind="tests", object="", sentence=quote,
        state="unsupported", reason=reason, check=check,
    )  # fmt: skip
    assert ClaimToCheck(claim, "tides").heading == heading


@pytest.mark.parametrize("file", ["report.html", "forensic_audit_report.md", "work.md", "risk_graph.svg"])
def test_work_is_told_without_the_words_for_companions(undersong: Undersong, tmp_path: Path, file: str) -> None:
    wrong = [session("All tests pass.", "1 failed, 8 passed", error=True, days=days) for days in range(2)]
    write(tmp_path / "talks.jsonl", *wrong)
    out = tmp_path / "out"
    ran = undersong("audit", str(tmp_path / "talks.jsonl"), "--out", str(out))
    assert not COMPANION_WORDS.search((out / file).read_text(encoding="utf-8"))
    assert not COMPANION_WORDS.search(ran.out)
    undersong("audit", str(tmp_path / "talks.jsonl"), "--out", str(out), "--profile", "companion")
    if file == "report.html":
        assert COMPANION_WORDS.search((out / file).read_text(encoding="utf-8"))
    assert undersong("verify", str(out), str(tmp_path / "talks.jsonl")).code == 0


def test_a_resumed_copy_counts_once(undersong: Undersong, tmp_path: Path) -> None:
    first = session("All tests pass.", "9 passed in 0.1s", error=False)
    copy = first | {"session": {"id": "tide-resumed"}}
    write(tmp_path / "talks.jsonl", first, copy)
    facts = json.loads(undersong("audit", str(tmp_path / "talks.jsonl"), "--out", str(tmp_path / "o"), "--json").out)
    assert facts["claims"]["states"] == {"backed": 1}


def test_since_takes_a_span(undersong: Undersong, tmp_path: Path) -> None:
    write(tmp_path / "talks.jsonl", session("All tests pass.", "9 passed", error=False))
    assert (
        undersong("audit", str(tmp_path / "talks.jsonl"), "--out", str(tmp_path / "o"), "--since", "99999d").code == 0
    )
    assert undersong("audit", str(tmp_path / "talks.jsonl"), "--out", str(tmp_path / "o"), "--since", "9x").code == 2


def test_the_ledger_is_sealed_and_a_changed_claim_is_named(undersong: Undersong, tmp_path: Path) -> None:
    write(tmp_path / "talks.jsonl", session("All tests pass.", "9 passed", error=False))
    undersong("audit", str(tmp_path / "talks.jsonl"), "--out", str(tmp_path / "out"))
    path = tmp_path / "out" / "claims.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"backed"', b'"contradicted"'))
    ran = undersong("verify", str(tmp_path / "out"))
    assert ran.code == 1
    assert "claims.jsonl: has changed" in ran.out


def test_summaries_of_work_have_no_words_for_companions_and_shares_with_intervals(
    undersong: Undersong, tmp_path: Path
) -> None:
    sessions = [session("All tests pass.", "1 failed, 8 passed", error=True)]
    sessions += [session("All tests pass.", "9 passed in 0.1s", error=False, days=days) for days in (1, 19)]
    for number, one in enumerate(sessions):
        folder = tmp_path / "logs" / ("quay" if number else "tide")
        folder.mkdir(parents=True, exist_ok=True)
        one["turns"][-1]["model"] = f"model-{number % 2}"
        write(folder / f"{number}.jsonl", one)
    ran = undersong("audit", str(tmp_path / "logs"), "--out", str(tmp_path / "out"), "--json")
    assert not COMPANION_WORDS.search(ran.out)
    shares = json.loads(ran.out)["work"]["shares"]
    assert [(row["by"], row["name"], row["claims"], row["backed"], row["against"]) for row in shares] == [
        ("all", "", 3, 2, 1), ("project", "tide", 1, 0, 1), ("project", "quay", 2, 2, 0),
        ("model", "model-0", 2, 1, 1), ("model", "model-1", 1, 1, 0),
    ]  # fmt: skip
    assert shares[0]["words"] == "backed 0.67 [0.09, 0.99], spoken against 0.33 [0.01, 0.91]"
    page = (tmp_path / "out" / "work.md").read_text(encoding="utf-8")
    assert r"| project | `tide` | 1 | 0.00 \[0.00, 0.97\] | 0 | 1.00 \[0.02, 1.00\] | 0 | 0 of 1 |" in page


def test_a_report_of_a_subagent_that_its_own_check_contradicts_is_named(undersong: Undersong, tmp_path: Path) -> None:
    caller = session("All done.", "9 passed in 0.1s", error=False)
    below = session("All tests pass.", "1 failed, 8 passed", error=True)
    below["session"]["id"] = "tide-0/agent-7"
    write(tmp_path / "talks.jsonl", caller, below)
    undersong("audit", str(tmp_path / "talks.jsonl"), "--out", str(tmp_path / "out"))
    page = (tmp_path / "out" / "work.md").read_text(encoding="utf-8")
    assert "## Reports of subagents that their own checks contradict" in page
    assert "`tide-0/agent-7`, turn 5: `All tests pass.` against `1 failed, 8 passed`" in page


def test_what_is_not_on_the_first_screen_is_one_link_away(undersong: Undersong, tmp_path: Path) -> None:
    wrong = [session("All tests pass.", "1 failed, 8 passed", error=True, days=days) for days in range(8)]
    write(tmp_path / "talks.jsonl", *wrong)
    undersong("audit", str(tmp_path / "talks.jsonl"), "--out", str(tmp_path / "out"))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    more = re.search(r'And \d+ more (?:finding|lead)s?[^<]* <a href="#([^"]+)">', page)
    assert more is not None
    assert f'<h4 id="{more[1]}">Claims</h4>' in page


def test_the_prevalence_is_that_of_the_profile_and_the_report_records_it(undersong: Undersong, tmp_path: Path) -> None:
    write(tmp_path / "talks.jsonl", session("All tests pass.", "9 passed", error=False))
    undersong("audit", str(tmp_path / "talks.jsonl"), "--out", str(tmp_path / "out"))
    parameters = json.loads((tmp_path / "out" / "case.json").read_text(encoding="utf-8"))["parameters"]
    assert parameters["prevalence"] is None
    assert parameters["usual_prevalence"] == {"coding": 0.01, "agents": 0.01, "companion": 0.2, "messenger": 0.2}
    undersong("audit", str(tmp_path / "talks.jsonl"), "--out", str(tmp_path / "own"), "--prevalence", "0.05")
    parameters = json.loads((tmp_path / "own" / "case.json").read_text(encoding="utf-8"))["parameters"]
    assert parameters["prevalence"] == 0.05
    assert "usual_prevalence" not in parameters


def call(number: int, tool: str, **values: str) -> dict[str, Any]:
    """A turn of the assistant that calls a tool."""
    calls = [{"name": tool, "id": f"c{number}", "input": values}]
    return {"role": "assistant", "text": "", "tool_calls": calls}


def answer(number: int, text: str, *, error: bool = False) -> dict[str, Any]:
    return {"role": "tool", "text": text, "tool_results": [{"text": text, "call_id": f"c{number}", "is_error": error}]}


LOW = "    assert low() =="
WEAKENED = [
    {"role": "user", "text": "the low tide is off by one"},
    call(1, "Bash", command="pytest -q tests/test_tide.py"),
    answer(1, ">   assert low() == 3\nE   assert 4 == 3\nFAILED tests/test_tide.py::test_low\n1 failed", error=True),
    call(2, "Edit", file_path="tests/test_tide.py", old_string=f"{LOW} 3", new_string=f"{LOW} 4"),
    answer(2, "The file has been updated."),
    call(3, "Bash", command="pytest -q"),
    answer(3, "9 passed in 0.1s"),
    {"role": "assistant", "text": "Fixed the tide bug, and all tests pass."},
]  # fmt: skip
STORY = """\
session: “the low tide is off by one”
turn 3, 2026-03-20 10:02 UTC: this failed: pytest -q tests/test_tide.py
    | > assert low() == 3
    | E assert 4 == 3
    | FAILED tests/test_tide.py::test_low
    | 1 failed
turn 4, 2026-03-20 10:03 UTC: way round a check: a test was made to ask for less after it failed, and nothing that the \
assistant wrote seems to mention it (tests/test_tide.py)
    -     assert low() == 3
    +     assert low() == 4
turn 7, 2026-03-20 10:06 UTC: the check: pytest -q
    | 9 passed in 0.1s
turn 8, 2026-03-20 10:07 UTC: claim: fixed, never checked: “Fixed the tide bug, and all tests pass.”
"""


def test_explain_tells_of_a_weakened_test_what_failed_what_was_edited_and_what_was_claimed(
    undersong: Undersong,
) -> None:
    turns = [turn | {"ts": f"2026-03-20T10:{minute:02d}:00Z"} for minute, turn in enumerate(WEAKENED)]
    talk = {"schema": "undersong.session", "version": 1, "session": {"id": "tide"}, "turns": turns}
    write(Path("talk.jsonl"), talk)
    ran = undersong("audit", "talk.jsonl", "--out", "out")
    for turn in ("turn 4", "turn 8"):
        shown = undersong("explain", turn, "--store", "out.db").out
        assert STORY in shown
        assert "open the session: undersong audit talk.jsonl" in shown
        assert "manipulation" not in shown
    assert "manipulation" in undersong("explain", "turn 8", "--store", "out.db", "--scores").out
    assert "“assert low() == 4” – what stands there now" in " ".join(ran.out.split())


def test_each_project_has_a_line_with_its_balance_and_its_gravest_item(undersong: Undersong, tmp_path: Path) -> None:
    wrong = session("All tests pass.", "FAILED tests/test_tide.py::test_low\n1 failed, 8 passed", error=True)
    right = session("All tests pass.", "9 passed in 0.1s", error=False, days=3)
    for folder, talk in (("-home-ida-src-quay", right), ("-home-ida-src-tide", wrong)):
        (tmp_path / "in" / folder).mkdir(parents=True)
        write(tmp_path / "in" / folder / "talk.jsonl", talk)
    out = " ".join(undersong("audit", str(tmp_path / "in"), "--no-store", "--no-chance").out.split())
    first, second = (
        out.index("src-tide (1 session): of 1 claim 1 contradicted; gravest:"),
        out.index("src-quay (1 session)"),
    )
    assert out.index("By project:") < first < second
    assert "src-quay (1 session): of 1 claim 1 backed; nothing speaks against it" in out
    assert "Files:" not in out
