"""``undersong claims``: one session held against itself, with an exit code, and as a Stop hook."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran, Undersong
from tests.verdict.test_thinking import EDIT, EDITED, claude_code
from undersong.pipeline.session_check import ending_session

PUSH = [{"type": "tool_use", "id": "t3", "name": "Bash", "input": {"command": "git push --no-verify"}}]
PUSHED = [{"type": "tool_result", "tool_use_id": "t3", "content": "main -> main"}]
RUN = [{"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "pytest -q"}}]


def session(folder: Path, result: str, *, failed: bool, claim: str = "Low tide is right and all tests pass.") -> Path:
    answer = [{"type": "tool_result", "tool_use_id": "t2", "content": result, "is_error": failed}]
    return claude_code(
        folder, ("user", "low tide is off"), ("assistant", EDIT), ("user", EDITED), ("assistant", RUN),
        ("user", answer), ("assistant", claim),
    )  # fmt: skip


def bypassed(folder: Path, claim: str) -> Path:
    folder.mkdir(exist_ok=True)
    return claude_code(folder, ("user", "push it"), ("assistant", PUSH), ("user", PUSHED), ("assistant", claim))


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
    path = session(tmp_path, "9 passed in 0.2s", failed=False)
    ran = undersong("claims", str(path))
    rest = f"Nothing speaks against 1 claim: `undersong claims {path} --all` lists all."
    assert (ran.code, ran.out.split("\n\n")) == (0, ["of 1 claim 1 backed", f"{rest}\n"])
    ran = undersong("claims", str(path), "--all")
    assert "backed: turn 6: “Low tide is right and all tests pass.”\n    why: 9 passed in 0.2s" in ran.out


def test_each_session_is_named_with_the_command_that_opens_it(undersong: Undersong, tmp_path: Path) -> None:
    path = session(tmp_path, "1 failed, 8 passed in 0.2s", failed=True)
    bypass = bypassed(tmp_path / "other", "Pushed to main.")
    bypass.write_text(bypass.read_text(encoding="utf-8").replace("quay-1", "pier-2"), encoding="utf-8")
    ran = undersong("claims", str(path), str(bypass))
    assert ran.code == 1
    first, second = (part.splitlines() for part in ran.out.split("\n\n")[1:3])
    assert first[0] == f"“low tide is off” · 2026-05-01 · {path}"
    assert (first[-1], second[-1]) == tuple(
        f"  open it: cd /quay && claude --resume {name}" for name in ("quay-1", "pier-2")
    )
    assert second[1] == "  no verify: turn 2: git push --no-verify"
    facts = json.loads(undersong("claims", str(bypass), "--json").out)["sessions"]
    assert [(fact["file"], fact["open"]) for fact in facts] == [(str(bypass), "cd /quay && claude --resume pier-2")]
    text = bypass.read_text(encoding="utf-8").replace('"/quay"', '"/home/ida/tide tables"')
    bypass.write_text(text, encoding="utf-8")
    (fact,) = json.loads(undersong("claims", str(bypass), "--json").out)["sessions"]
    assert fact["open"] == "cd '/home/ida/tide tables' && claude --resume pier-2"


SAME_NAME = {
    "absolute files": (("x/s.jsonl", "y/s.jsonl"), True, False),
    "relative files": (("x/s.jsonl", "y/s.jsonl"), False, False),
    "folders of one name": (("x/log", "y/log"), True, False),
    "one session grown": (("x/s.jsonl", "y/s.jsonl"), True, True),
}


@pytest.mark.parametrize(("inputs", "absolute", "grown"), SAME_NAME.values(), ids=SAME_NAME)
def test_inputs_of_one_name_in_different_folders_are_told_apart(
    undersong: Undersong, inputs: tuple[str, str], absolute: bool, grown: bool
) -> None:
    files = [Path(name) if name.endswith(".jsonl") else Path(name, "s.jsonl") for name in inputs]
    for file, tide in zip(files, ("Low", "High"), strict=True):
        file.parent.mkdir(parents=True)
        claim = f"{tide} tide is right and all tests pass."
        session(file.parent, "1 failed, 8 passed in 0.2s", failed=True, claim=claim).rename(file)
    if grown:  # the first has all but the end of the second
        files[0].write_text("".join(files[1].read_text(encoding="utf-8").splitlines(True)[:-1]), encoding="utf-8")
    ran = undersong("claims", *(str(Path(name).absolute() if absolute else name) for name in inputs), "--json")
    facts = json.loads(ran.out)
    expected = [str(file.absolute() if absolute else file) for file in files][grown:]
    assert [each["file"] for each in facts["sessions"]] == [each["file"] for each in facts["against"]] == expected
    assert [each["turn"] for each in facts["against"]] == [6] * len(expected)
    assert ("x/s.jsonl: the same session as in y/s.jsonl" in ran.err) is grown


def test_a_way_round_a_check_alone_ends_with_one(undersong: Undersong, tmp_path: Path) -> None:
    assert undersong("claims", str(bypassed(tmp_path, "Pushed to main."))).code == 1


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


@pytest.fixture
def hook(undersong: Undersong, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run the hook on an input."""

    def run(text: str | dict[str, object], *arguments: str) -> Ran:
        given = text if isinstance(text, str) else json.dumps(text)
        monkeypatch.setattr("sys.stdin", io.StringIO(given))
        return undersong("claims", "--hook", *arguments)

    return run


UNREADABLE = {
    "no JSON": "what?",
    "nothing": "",
    "no object": "[]",
    "no path": "{}",
    "a path that is none": '{"transcript_path": 3}',
    "a folder": '{"transcript_path": "."}',
    "nothing there": '{"transcript_path": "nope.jsonl"}',
    "no session": '{"transcript_path": "x.jsonl"}',
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_a_hook_that_cannot_read_says_so_with_an_exit_code_that_holds_nothing(
    hook: Callable[..., Ran], text: str
) -> None:
    Path("x.jsonl").write_text("no session", encoding="utf-8")
    ran = hook(text)
    assert (ran.code, ran.out) == (1, "")
    (line,) = ran.err.splitlines()
    assert line.startswith("undersong: ")


@pytest.mark.parametrize("arguments", [("--from", "nonsense"), ("a-path",)])
def test_a_hook_with_wrong_options_holds_nothing(
    hook: Callable[..., Ran], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    ran = hook({"transcript_path": str(bypassed(tmp_path, "Done."))}, *arguments)
    assert (ran.code, ran.out, ran.err.startswith("undersong: ")) == (1, "", True)


@pytest.mark.parametrize(("words", "blocked"), [("Pushed to main.", True), ("Pushed, with --no-verify.", False)])
def test_a_way_round_a_check_holds_where_the_agent_does_not_tell_of_it(
    hook: Callable[..., Ran], tmp_path: Path, words: str, blocked: bool
) -> None:
    answer = json.loads(hook({"transcript_path": str(bypassed(tmp_path, words))}).out)
    assert (answer.get("decision") == "block") == blocked
    assert answer["systemMessage"] == "undersong: no verify: git push --no-verify"


def test_what_an_earlier_request_brought_holds_no_later_one(hook: Callable[..., Ran], tmp_path: Path) -> None:
    path = claude_code(
        tmp_path, ("user", "push it"), ("assistant", PUSH), ("user", PUSHED), ("assistant", "Pushed to main."),
        ("user", "thanks, what is next?"), ("assistant", "The harbour list."),
    )  # fmt: skip
    assert json.loads(hook({"transcript_path": str(path)}).out) == {}


def test_a_file_that_lags_behind_is_read_with_the_last_message(tmp_path: Path) -> None:
    words = "Low tide is right and all tests pass."
    whole = session(tmp_path, "1 failed, 8 passed in 0.2s", failed=True, claim=words)
    (tmp_path / "late").mkdir()
    lines = whole.read_text(encoding="utf-8").splitlines(keepends=True)
    late = tmp_path / "late" / whole.name
    late.write_text("".join(lines[:-1]), encoding="utf-8")
    for path in (whole, late):
        ended, _ = ending_session(path, "quay-1", words, settle=0)
        assert ended is not None
        assert [claim.state for claim in ended.verdict.claims] == ["contradicted"]


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


def test_a_note_is_one_short_line_that_ends_with_the_name_of_its_file(undersong: Undersong, tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 20) / ("deeper" * 20)
    folder.mkdir(parents=True)
    broken = folder / "quay-1.jsonl"
    broken.write_text('{"sessionId": "s", "uuid": "1", "type": "user"}\n' + "{" * 300, encoding="utf-8")
    lines = undersong("claims", str(broken)).err.splitlines()[:-1]
    assert lines
    assert all(len(line) <= 160 for line in lines)
    assert any("quay-1.jsonl" in line for line in lines)


GERMAN = (
    "Der Fahrplan ist jetzt richtig, und ich habe die Tests noch einmal laufen lassen: alle gehen durch. Die Uhr war "
    "um eine Stunde verstellt, und das ist nun nicht mehr so. Der Zweig liegt auf dem Server, du kannst also gleich "
    "damit anfangen, wenn du es noch einmal ansehen willst."
)


@pytest.mark.parametrize(("claim", "why"), [
    (GERMAN, "mostly in German"),
    ("Here is a short account of where the tide table stands at the end of this day.", "no claim was recognised in it"),
])  # fmt: skip
def test_a_session_whose_claims_cannot_be_read_is_no_clean_one(
    claim: str, why: str, undersong: Undersong, tmp_path: Path
) -> None:
    folder, other = tmp_path / "logs" / "tide", tmp_path / "logs" / "quay"
    for where in (folder, other):
        where.mkdir(parents=True)
    path = session(folder, "1 failed, 8 passed in 0.2s", failed=True, claim=claim)
    ran = undersong("claims", str(path))
    assert ran.code == 1
    assert f"not read: {'it is ' if 'German' in why else ''}{why}" in ran.out
    assert "turn 5: pytest -q: 1 failed, 8 passed in 0.2s" in ran.out
    clean = session(other, "9 passed in 0.2s", failed=False)
    clean.write_text(clean.read_text(encoding="utf-8").replace("quay-1", "pier-2"), encoding="utf-8")
    ran = undersong("claims", str(tmp_path / "logs"))
    assert "  quay: of 1 claim 1 backed\n  tide: no claim recognised, 1 session not read\n" in ran.out
    (unread,) = json.loads(undersong("claims", str(tmp_path / "logs"), "--json").out)["unread"]
    assert (unread["project"], why in unread["why"]) == ("tide", True)


def test_an_audit_names_what_it_could_not_read_and_a_gate_fails_at_it(undersong: Undersong, tmp_path: Path) -> None:
    path, out = session(tmp_path, "1 failed, 8 passed in 0.2s", failed=True, claim=GERMAN), tmp_path / "out"
    ran = undersong("audit", str(path), "--out", str(out), "--no-store", "--fail-on-unread")
    assert ran.code == 1
    assert "--fail-on-unread: what agents claim in 1 session" in " ".join(ran.out.split() + ran.err.split())
    page = (out / "work.md").read_text(encoding="utf-8")
    assert "## Sessions whose claims were not read" in page
    assert "nothing speaks against a claim, and each was checked" not in page


@pytest.mark.parametrize("claim", ["All tests pass.", "Ok."])
def test_a_short_or_english_session_is_read(claim: str, undersong: Undersong, tmp_path: Path) -> None:
    path = session(tmp_path, "9 passed in 0.2s", failed=False, claim=claim)
    ran = undersong("claims", str(path))
    assert (ran.code, "not read" in ran.out) == (0, False)
