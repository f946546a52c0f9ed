"""Runners of many languages: what they print is the evidence where a pipe hides their exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.verdict.test_fragments import PROMISES
from undersong.models import Message, ToolCall, ToolResult
from undersong.verdict.shell import is_part
from undersong.verdict.tool_outcomes import outcome

FOLDER = Path(__file__).parent / "runners"
RUNNERS: list[dict[str, str]] = yaml.load((FOLDER / "runners.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
SCREENS: list[dict[str, Any]] = yaml.load((FOLDER / "screens.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
STATES = {"passes": "backed", "fails": "contradicted", "earlier": "unsupported"}
CASES = [(runner, when) for runner in RUNNERS for when in STATES]


def session(runner: dict[str, str], when: str) -> list[dict[str, Any]]:
    """An edit, a check and a claim; ``earlier``: the check passes before the edit."""
    edit = {"file_path": runner["file"], "old_string": "return level", "new_string": "return level - 1"}
    changed = {"call": {"tool": "Edit", "input": edit, "result": "The file has been updated."}}
    printed = runner["fails" if when == "fails" else "passes"]
    checked = {"call": {"tool": "Bash", "input": {"command": runner["command"]}, "result": printed, "error": False}}
    steps = [checked, changed] if when == "earlier" else [changed, checked]
    between = [{"agent": "Looking at it."}, steps[0], {"agent": "Next."}, steps[1]]
    return [{"user": "low tide is off by one"}, *between, {"agent": runner["claim"]}]


def state_of(runner: dict[str, str], when: str, folder: Path) -> tuple[set[str], bool]:
    """The states of the claims of the runner's kind, and whether points are deducted."""
    verdict = PROMISES.verdict(session(runner, when), "claude-code", folder)[1]
    return {claim.state for claim in verdict.claims if claim.kind == runner["kind"]}, bool(verdict.deductions)


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("python -m pytest -q", False), ("python3 -m unittest", False), ("pytest -q", False),
        ("python -m pytest -m slow", True), ("pytest -m slow", True), ("python -m pytest tests/test_tide.py", True),
    ],
)  # fmt: skip
def test_a_runner_that_is_called_as_a_module_runs_all_tests(command: str, part: bool) -> None:
    assert is_part(command.split()) is part


@pytest.mark.parametrize(("runner", "when"), CASES, ids=[f"{runner['name']} {when}" for runner, when in CASES])
def test_the_words_of_a_runner_back_or_contradict_a_claim(runner: dict[str, str], when: str, tmp_path: Path) -> None:
    states, points = state_of(runner, when, tmp_path)
    assert states == {STATES[when]}
    assert points is (when == "fails")


def read(command: str, screen: str) -> str:
    """What a screen says of the tests, where no flag says that they failed."""
    call = ToolCall(id="1", name="Bash", input={"command": command})
    message = Message(id="m", conversation="c", position=1, author="tool", role="tool", text=screen)
    result = outcome(message, ToolResult(text=screen, call_id="1", is_error=False), call, 0)
    return "failed" if "tests" in result.failed_kinds else "passed" if "tests" in result.passed_kinds else "unknown"


@pytest.mark.parametrize("runner", SCREENS, ids=lambda runner: runner["runner"])
def test_a_screen_of_a_runner_is_read_rightly_or_not_at_all(runner: dict[str, Any]) -> None:
    command = runner["command"]
    for screen in runner["screens"]:
        hidden = command if "|" in command else f"{command} 2>&1 | tail -n 40"
        assert (screen["text"], read(hidden, screen["text"])) == (screen["text"], screen["state"])
        if screen["state"] != "failed" and "Fatal error" not in screen["text"]:
            assert (screen["text"], read(command, screen["text"])) == (screen["text"], screen["state"])


def test_the_runners_are_many() -> None:
    assert len({runner["name"] for runner in RUNNERS}) == len(RUNNERS) >= 40
