"""What a person sees before anything runs: help pages, what could be read here, problems of a kind, colours."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.conftest import Undersong
from undersong.cli import COMMANDS, VERBS, cli, wants_color
from undersong.cli.help import OTHER, SECTIONS, section_of
from undersong.cli.nearby import readable_here
from undersong.cli.options import show_problems
from undersong.models import Problem

HEAVY = ("numpy", "msgspec", "yaml", "jinja2", "lark", "undersong.models", "undersong.pipeline", "undersong.cli.audit")


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_nothing_of_the_product(option: str) -> None:
    code = f"""
import sys
sys.argv = ["undersong", {option!r}]
from undersong.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code
print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"
    assert "undersong" in ran.stdout


def test_every_command_of_the_table_is_there_and_is_explained_by_its_own_help() -> None:
    for name in VERBS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert command.help, name
        assert isinstance(command, click.Group) or (command.epilog or "").startswith("\b\nExamples:\n  "), name
        assert isinstance(command, click.Group) or f"undersong {name}" in (command.epilog or ""), name
    assert sum(map(len, COMMANDS.values())) == len(VERBS)


def test_the_options_of_an_audit_are_in_sections_with_examples_below() -> None:
    page = CliRunner().invoke(cli, ["audit", "--help"], prog_name="undersong").output
    titles = [line[:-1] for line in page.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == [*SECTIONS, OTHER]
    assert "undersong audit conversations.zip" in page.split("Examples:")[1]
    assert page.split(f"{OTHER}:")[1].split("Examples:")[0].split() == ["-h,", "--help", "Show", "this", "message",
                                                                        "and", "exit."]  # fmt: skip
    assert section_of("no_such_option") == OTHER


@pytest.mark.parametrize("verb", ["plan", "scan", "evaluate", "detect", "watch", "sweep"])
def test_commands_with_many_options_have_sections_too(verb: str) -> None:
    page = CliRunner().invoke(cli, [verb, "--help"], prog_name="undersong").output
    titles = [line[:-1] for line in page.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert set(titles) <= {*SECTIONS, OTHER}
    assert len(titles) > 2


def test_an_audit_without_a_path_says_what_it_could_read_here(undersong: Undersong) -> None:
    Path("chat.txt").write_text("mo: hello\nkira: hello to you\nmo: bye\n")
    Path("notes.txt").write_text("a list of things\n")
    Path("page.html").write_text("<p>no conversation</p>")
    ran = undersong("audit")
    assert ran.code == 2
    assert "undersong audit chat.txt" in ran.out
    assert "undersong audit samples/" in ran.out
    assert "notes.txt" not in ran.out
    assert "page.html" not in ran.out


def test_the_logs_of_assistants_and_exports_among_downloads_are_offered(tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    here.mkdir()
    assert list(readable_here(here, home)) == []
    (home / ".claude" / "projects" / "p").mkdir(parents=True)
    (home / ".claude" / "projects" / "p" / "a.jsonl").write_text("{}\n")
    (home / "Downloads").mkdir()
    (home / "Downloads" / "chat.txt").write_text("mo: hello\nkira: hello to you\nmo: bye\n")
    places = list(readable_here(here, home))
    assert [(place.path, place.title) for place in places] == [("~/.claude/projects", "Claude Code sessions")]
    assert list(readable_here(tmp_path / "missing", tmp_path / "nobody")) == []


def test_problems_of_a_kind_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    many = [Problem(what=f"line {n} is no JSON", where=f"a.jsonl:{n}", kind="record") for n in range(1, 31)]
    show_problems([*many, Problem(what="is empty", where="b.jsonl", remedy="give another", kind="file")])
    assert capsys.readouterr().err.splitlines() == [
        "record: a.jsonl:1: line 1 is no JSON (and 29 more like it)",
        "file: b.jsonl: is empty; give another",
    ]


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [({}, None), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, None), ({"TERM": "dumb"}, False)],
)
def test_no_color_is_heeded(environment: dict[str, str], wanted: bool | None) -> None:
    assert wants_color(environment) is wanted


def on_a_terminal(*arguments: str, folder: Path, **environment: str) -> str:
    """What a terminal shows of a command."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "undersong", *arguments], cwd=folder, stdin=follower, stdout=follower, stderr=follower,
        env=os.environ | {"TERM": "xterm"} | environment,
    )  # fmt: skip
    os.close(follower)
    shown = b""
    try:
        while piece := os.read(leader, 65536):
            shown += piece
    except OSError:  # as Linux says that the other side is closed
        pass
    process.wait()
    os.close(leader)
    return shown.decode()


def test_a_terminal_gets_colours_unless_told_otherwise(tmp_path: Path) -> None:
    assert "\x1b[1m" in on_a_terminal("audit", "--help", folder=tmp_path)
    assert "\x1b" not in on_a_terminal("audit", "--help", folder=tmp_path, NO_COLOR="1")
    row = {"id": "1", "conversation": "c", "author": "kira", "text": "hi"}
    (tmp_path / "talk.jsonl").write_text(json.dumps(row) + "\nno JSON\n")
    plain = on_a_terminal("audit", "talk.jsonl", folder=tmp_path, NO_COLOR="1")
    assert "\x1b[3" not in plain
    assert "record: talk.jsonl:2" in plain


def test_a_file_in_place_of_a_command_is_audited_and_a_slip_is_met_with_the_nearest_command(
    undersong: Undersong, tmp_path: Path
) -> None:
    chat = tmp_path / "chat.txt"
    chat.write_text("Ana: Did you fix the door yesterday?\nBo: I did, it closes again.\nAna: Thank you.\n", "utf-8")
    alone = undersong(str(chat), "--out", str(tmp_path / "one"))
    named = undersong("audit", str(chat), "--out", str(tmp_path / "two"))
    assert alone.code == named.code == 0
    assert "Looked at 3 messages in 1 conversation" in alone.out
    assert alone.out.replace("/one", "/two") == named.out
    slip = undersong("adit", str(chat))
    assert slip.code == 2
    assert "'adit' is no command, and no file or folder of that name is here" in slip.err
    assert "did you mean 'undersong audit'?" in slip.err
