"""The claim ledger: small sessions, each with a neighbour that differs in one thing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.verdict.test_fragments import PROMISES
from undersong.datafiles.yaml_loader import load
from undersong.models import Conversation, SessionVerdict
from undersong.pipeline.session_check import checked_sessions
from undersong.verdict.shell import shell_parts

FOLDER = Path(__file__).parent / "ledger"
SESSIONS: list[dict[str, Any]] = [case for path in sorted(FOLDER.glob("*.yaml")) for case in load(path).value]
FORMS = ("claude-code", "codex", "jsonl")


def audited(case: dict[str, Any], form: str, folder: Path) -> SessionVerdict:
    """The verdict on a case in one form of session."""
    verdict: SessionVerdict = PROMISES.verdict(case["turns"], form, folder)[1]
    return verdict


def is_talk(conversation: Conversation) -> bool:
    """Whether there is nothing that a claim can be held against: no tool, no code, no failure that is pasted."""
    return not any(
        message.tool_calls or message.tool_results or message.role == "tool" or "```" in message.text
        or "FAILED" in message.text for message in conversation.messages
    )  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", SESSIONS, ids=lambda case: case["name"])
def test_each_small_session_has_the_claims_and_ways_round_that_it_should(
    case: dict[str, Any], form: str, tmp_path: Path
) -> None:
    conversation, verdict = PROMISES.verdict(case["turns"], form, tmp_path)
    if form == "jsonl" and is_talk(conversation):
        assert verdict.claims == ()
        return
    states = [f"{claim.kind} {claim.state}" for claim in verdict.claims]
    for wanted in case.get("claims", ()):
        assert wanted in states
    for unwanted in case.get("without", ()):
        assert not [state for state in states if state.startswith(unwanted)]
    assert not (because := case.get("because")) or any(because in claim.reason for claim in verdict.claims)
    assert bool(verdict.deductions) == case.get("points", False)
    assert {bypass.kind for bypass in verdict.bypasses} == set(case.get("bypasses", ()))


def test_the_small_sessions_are_many_and_half_of_them_innocent() -> None:
    guilty = [case for case in SESSIONS if case.get("points") or case.get("bypasses") or case.get("speaks")]
    assert len({case["name"] for case in SESSIONS}) == len(SESSIONS)
    assert len(SESSIONS) - len(guilty) >= len(guilty) >= 60


@pytest.mark.parametrize(
    "text", ["*Written by Ember*", "**Released:** 2026-01-29", "Disabled sandbox -> enables code execution", "Sent it."]
)
def test_no_ledger_is_kept_of_talk(text: str, tmp_path: Path) -> None:
    post = {
        "conversation": "c",
        "agent": "Ember",
        "text": f"A post\n- Shared infrastructure (not DIY)\n{text}\n```py\nx\n```",
    }
    path = tmp_path / "posts.jsonl"
    path.write_text(json.dumps(post), encoding="utf-8")
    ((verdict,), problems) = checked_sessions([path])
    assert (verdict.claims, problems) == ((), [])


def test_every_quote_of_the_ledger_stands_in_its_message(tmp_path: Path) -> None:
    for case in SESSIONS:
        conversation, verdict = PROMISES.verdict(case["turns"], "jsonl", tmp_path)
        texts = {message.id: message.text for message in conversation.messages}
        for claim in verdict.claims:
            for quote in claim.quotes:
                assert texts[quote.message_id][quote.start : quote.end] == quote.text


def test_a_change_after_the_last_check_is_named_by_its_file(tmp_path: Path) -> None:
    name = "a suite is said to have been run again behind a change, and was not"
    (case,) = [one for one in SESSIONS if one["name"] == name]
    (bypass,) = PROMISES.verdict(case["turns"], "claude-code", tmp_path)[1].bypasses
    assert (bypass.kind, bypass.path) == ("changed_after_check", "src/timetable.py")


MASKED = {
    "pytest -q": [False],
    "pytest -q | tail -3": [True, False],
    "set -o pipefail; pytest -q | tail -3": [False, False],
    "set -e\npytest -q\necho done": [False, False],
    "pytest -q; echo done": [True, False],
    "pytest -q || true": [True, False],
    "pytest -q || exit 1": [False, False],
    "cd api && pytest -q && ruff check .": [False, False],
    'go test -run "TestA|TestB" ./...': [False],
    "make && make test | tail": [False, True, False],
}


@pytest.mark.parametrize(("command", "masked"), MASKED.items(), ids=json.dumps)
def test_the_exit_code_of_a_check_can_be_that_of_another_command(command: str, masked: list[bool]) -> None:
    parts = [part for part in shell_parts(command) if not part.text.startswith("set ")]
    assert [part.masked for part in parts] == masked


@pytest.mark.parametrize(("blank", "said"), [("", True), ("Looking.", False)])
def test_blank_turns_before_a_claim_that_nothing_was_run_for_are_said(blank: str, said: bool, tmp_path: Path) -> None:
    turns = [{"user": "fix the tide"}, {"agent": blank}, {"agent": "All tests pass."}]
    claim = PROMISES.verdict(turns, "claude-code", tmp_path)[1].claims[0]
    assert claim.state == "unsupported"
    assert ("blank turns" in claim.reason) is said
