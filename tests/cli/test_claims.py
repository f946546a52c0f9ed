"""``undersong claims``: one session held against itself, with an exit code, and as a Stop hook."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Undersong
from tests.verdict.test_thinking import EDIT, EDITED, claude_code

RUN = [{"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "pytest -q"}}]


def session(folder: Path, result: str, *, failed: bool, claim: str = "Low tide is right and all tests pass.") -> Path:
    answer = [{"type": "tool_result", "tool_use_id": "t2", "content": result, "is_error": failed}]
    return claude_code(
        folder, ("user", "low tide is off"), ("assistant", EDIT), ("user", EDITED), ("assistant", RUN),
        ("user", answer), ("assistant", claim),
    )  # fmt: skip


def test_a_contradicted_claim_ends_with_one_and_one_line_of_json(undersong: Undersong, tmp_path: Path) -> None:
    path = session(tmp_path, "1 failed, 8 passed in 0.2s", failed=True)
    ran = undersong("claims", str(path), "--json")
    assert ran.code == 1
    (line,) = ran.out.splitlines()
    (claim,) = json.loads(line)["against"]
    assert (claim["state"], claim["sentence"]) == ("contradicted", "Low tide is right and all tests pass.")
    assert claim["against"] == "1 failed, 8 passed in 0.2s"
    assert not Path("undersong-report").exists()


def test_a_claim_that_holds_ends_with_nought(undersong: Undersong, tmp_path: Path) -> None:
    ran = undersong("claims", str(session(tmp_path, "9 passed in 0.2s", failed=False)))
    assert (ran.code, ran.out.strip()) == (0, "of 1 claim 1 backed")


def test_without_a_path_it_says_what_to_do(undersong: Undersong) -> None:
    assert undersong("claims").code == 2


HOOK = {
    "contradicted": ("1 failed, 8 passed in 0.2s", True, False),
    "backed": ("9 passed in 0.2s", False, False),
    "the second time": ("1 failed, 8 passed in 0.2s", True, True),
}


@pytest.mark.parametrize(("result", "failed", "active"), HOOK.values(), ids=HOOK)
def test_the_hook_of_the_documentation_holds_a_session_once(
    result: str, failed: bool, active: bool, tmp_path: Path
) -> None:
    settings = json.loads(_block("docs/sessions.md", "json"))
    (hook,) = settings["hooks"]["Stop"][0]["hooks"]
    given_input = {
        "session_id": "quay-1", "transcript_path": str(session(tmp_path, result, failed=failed)),
        "hook_event_name": "Stop", "stop_hook_active": active,
    }  # fmt: skip
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        hook["command"], shell=True, input=json.dumps(given_input), capture_output=True, text=True, check=False,
        env=os.environ | {"PATH": path}, cwd=tmp_path,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    (line,) = ran.stdout.splitlines()
    answer = json.loads(line)
    assert (answer.get("decision") == "block") == (failed and not active)
    assert ("1 failed, 8 passed" in answer.get("reason", "")) == (failed and not active)


def _block(page: str, lang: str) -> str:
    """The one block of a language in a page."""
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    (block,) = (each.split("```", 1)[0] for each in text.split(f"```{lang}\n")[1:])
    return block


def test_a_hook_that_cannot_read_the_session_says_so_and_holds_nothing(
    undersong: Undersong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("no session", encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"transcript_path": str(path)})))
    ran = undersong("claims", "--hook")
    assert ran.code == 0
    answer = json.loads(ran.out)
    assert "decision" not in answer
    assert "could not read" in answer["systemMessage"]
    monkeypatch.setattr("sys.stdin", io.StringIO("{}"))
    assert undersong("claims", "--hook").code == 2


def test_talk_without_work_has_no_ledger_and_says_so(undersong: Undersong, tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    path.write_text(json.dumps({"agent": "Ember", "text": "*Written by Ember*. I sent the mail."}), encoding="utf-8")
    ran = undersong("claims", str(path))
    assert ran.code == 0
    assert "no ledger is kept of 1 conversation: no tool changes or checks anything there" in ran.out
    assert json.loads(undersong("claims", str(path), "--json").out)["without_ledger"] == 1


def test_a_path_that_is_not_there_is_said_once(undersong: Undersong) -> None:
    ran = undersong("claims", "nope.jsonl")
    assert ran.code == 3
    assert ran.err.count("nope.jsonl") == 1
