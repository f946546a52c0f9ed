"""What the README shows is what happens, and what its first screen claims is so."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import zipfile
from pathlib import Path

import pytest

import make
from tests.conftest import Undersong

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = re.search(r"```\n\$ python3 make.py demo\n(.*?)```", README, re.DOTALL)
COMMANDS = re.findall(r"^\.venv/bin/undersong (audit .*?)(?: +#.*)?$", README, re.MULTILINE)


def as_shown(text: str) -> str:
    """Without the digest, which every change of a rule changes, and without where the program lies."""
    text = re.sub(r"digest [0-9a-f]{16}…", "digest …", text)
    return re.sub(r"(?m)^( *)\S*undersong (explain|audit) ", r"\1undersong \2 ", text)


def test_the_demo_prints_what_the_readme_shows(undersong: Undersong) -> None:
    assert SHOWN
    shutil.copytree(ROOT / "demo", "demo")
    printed = []
    for line in re.findall(r"^\$ undersong (.*)$", SHOWN[1], re.MULTILINE):
        ran = undersong(*line.split())
        assert ran.code == 0, ran.err
        printed.append(f"$ undersong {line}\n{ran.out}\n")
    own = re.split(r"(?m)^Now your own", SHOWN[1])[0]
    assert as_shown("".join(printed)) == as_shown(own)


def test_the_demo_runs_the_commands_that_the_readme_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SHOWN
    ran = []
    monkeypatch.setattr(make, "run", lambda *command: ran.append(" ".join(map(str, command[1:]))))
    monkeypatch.setattr(make, "environment", lambda _: None)
    make.demo()
    assert ran == re.findall(r"^\$ undersong (.*)$", SHOWN[1], re.MULTILINE)


def test_what_the_demo_explains_can_be_explained(undersong: Undersong) -> None:
    assert SHOWN
    shutil.copytree(ROOT / "demo", "demo")
    undersong("audit", "demo/conversations", "--read", "sequences", "--judge", "replay:demo/readings.replay")
    for name in re.findall(r"undersong explain (\S+)$", SHOWN[1], re.MULTILINE):
        assert undersong("explain", name).code == 0
    assert undersong("verify", "undersong-report").code == 0
    assert Path("undersong-report/report.html").is_file()
    assert Path("undersong-report/forensic_audit_report.md").is_file()


def test_the_two_commands_are_verbs_of_make() -> None:
    assert set(re.findall(r"^python3 make.py (\w+)", README, re.MULTILINE)) <= make.VERBS.keys()


@pytest.mark.skipif(os.name == "nt", reason="the program that fails is a shell script")
def test_an_environment_that_cannot_be_made_is_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"  # as Debian's without python3-venv: links, no pip, and the exit code 1
    python.write_text('#!/bin/sh\nmkdir -p "$3/bin" && touch "$3/bin/python"\nexit 1\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(make, "ENVIRONMENT", tmp_path / "env")
    monkeypatch.setattr(make, "PYTHON", tmp_path / "env" / "bin" / "python")
    with pytest.raises(SystemExit) as ended:
        make.environment("core.txt")
    assert ended.value.code == 1
    assert not (tmp_path / "env").exists()


def zipped(name: str, source: Path) -> None:
    with zipfile.ZipFile(name, "w") as archive:
        archive.write(source, source.name)


def test_the_commands_for_ones_own_files_run_and_nothing_leaves_the_machine(
    undersong: Undersong, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As written, on such files; the last one names a judge and is not run here."""

    def refuse(*_: object) -> None:
        raise AssertionError("something was sent")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("HOME", str(Path.cwd()))
    zipped("conversations.zip", ROOT / "tests/samples/chatgpt/conversations.json")
    zipped("WhatsApp Chat with Mark.zip", ROOT / "demo/conversations/choir.txt")
    shutil.copytree(ROOT / "tests/samples/claude-code", ".claude/projects/one")
    local = [command for command in COMMANDS if "--judge" not in command]
    assert len(local) == 3
    for command in local:
        paths = [path.strip('"').replace("~", str(Path.cwd())) for path in re.findall(r'"[^"]+"|\S+', command)[1:]]
        ran = undersong("audit", *paths)
        assert ran.code == 0, ran.err
        assert re.search(r"Looked at \d+ messages in \d conversation", ran.out)


def test_a_run_without_a_key_checks_claims_and_says_what_a_judge_would_cost(undersong: Undersong) -> None:
    ran = undersong("audit", str(ROOT / "demo/conversations"))
    text = " ".join(ran.out.split())
    assert "The assistant said that tests pass, but the session's own output shows otherwise" in text
    assert re.search(
        r"Not looked for: \d+ of 28 patterns of manipulation, .* need an LLM judge, .* about \$0\.\d\d", text
    )
    joined = re.sub(r" \\\n +", " ", ran.out)  # as a shell joins a long command
    assert f"audit {ROOT / 'demo/conversations'} --read sequences --judge anthropic:claude-sonnet-5-5" in joined


def test_how_sure_a_reading_is_was_counted() -> None:
    counts = (ROOT / "undersong/data/rules/confidence.yaml").read_text(encoding="utf-8")
    right = re.search(r"right: \[.*, (\d+)\]", counts)
    wrong = re.search(r"wrong: \[.*, (\d+)\]", counts)
    assert right
    assert wrong
    assert f"right {right[1]} times out of {int(right[1]) + int(wrong[1])}" in README


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    assert len(README.splitlines()) < 150
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / link).exists(), link


def test_the_library_example_of_the_readme_runs(undersong: Undersong, tmp_path: Path) -> None:
    assert undersong("formats").code == 0
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert example
    names: dict[str, object] = {}
    exec(compile(example[1].replace("conversations.zip", str(tmp_path / "samples")), "README.md", "exec"), names)
    assert names["case"]


def test_every_format_is_named_here_and_every_verb_in_the_page_on_commands() -> None:
    from undersong.cli import VERBS
    from undersong.formats import FORMATS

    commands = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    for form in FORMATS:
        assert f"`{form.name}`" in README, form.name
    for verb in VERBS:
        assert f"undersong {verb}" in commands, verb
