"""The code in the documents runs: commands of ``console`` blocks, ``python`` blocks, and files that a block names.

In a ``console`` block a line ``$ undersong …`` is run; ``# exit code N`` below it says how it ends, else it is 0;
further lines are in what it prints, in that order, where ``…`` stands for anything. A ``yaml`` or ``toml`` block whose
first line is a comment with a path is written there. Other blocks (``sh`` for what needs a server or a key) are shown.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import Ran, Undersong

ROOT = Path(__file__).parents[1]
DOCS, INPUTS = ROOT / "docs", ROOT / "tests" / "samples"
CHAT = """\
25/02/2026, 21:14 - Mark: where are you, who with
25/02/2026, 21:20 - Dana: at choir until ten
25/02/2026, 21:21 - Mark: you never said that
25/02/2026, 21:30 - Dana: it is in the calendar
26/02/2026, 08:02 - Mark: coffee?
26/02/2026, 08:05 - Dana: yes please
"""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OWN_TESTS = (
    "live.md",
    "store.md",
)  # tests/monitor/test_page.py and tests/patterns/live, tests/stores/test_parquet.py
PAGES = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if page.name not in OWN_TESTS and any(kind in ("console", "python") for kind, _ in BLOCK.findall(page.read_text()))
]
EXIT = re.compile(r"# exit code (\d+)")


class Step(NamedTuple):
    """A command of a block, how it ends, and the lines that it prints among others."""

    command: str
    code: int
    lines: tuple[str, ...]


def steps_of(block: str) -> Iterator[Step]:
    """The commands of a console block."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *below = part.rstrip("\n").split("\n")
        ends = [int(match[1]) for line in below if (match := EXIT.fullmatch(line))]
        yield Step(command, ends[0] if ends else 0, tuple(line for line in below if line and not EXIT.fullmatch(line)))


def as_pattern(line: str) -> re.Pattern[str]:
    """A shown line, in which an ellipsis stands for anything."""
    return re.compile(r"^" + ".*".join(map(re.escape, line.split("…"))), re.MULTILINE)


@pytest.fixture
def inputs(undersong: Undersong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the pages speak of: an export, transcripts, posts, and a home with logs of an assistant."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    for name, source in (("transcripts", "openai"), ("agents", "moltbook"), ("today", "moltbook")):
        shutil.copytree(INPUTS / source, tmp_path / name)
    shutil.copytree(INPUTS / "claude-code", tmp_path / "home" / ".claude" / "projects" / "parser")
    with zipfile.ZipFile(tmp_path / "conversations.zip", "w") as archive:
        archive.write(INPUTS / "chatgpt" / "conversations.json", "conversations.json")
    with zipfile.ZipFile(tmp_path / "WhatsApp Chat with Mark.zip", "w") as archive:
        archive.writestr("_chat.txt", CHAT)
    assert callable(undersong)
    return tmp_path


def check(step: Step, ran: Ran) -> None:
    assert ran.code == step.code, f"{step.command}: {ran.out}{ran.err}"
    printed, place = ran.out + ran.err, 0
    for line in step.lines:
        match = as_pattern(line).search(printed, place)
        assert match, f"{step.command} does not print {line!r}:\n{printed}"
        place = match.end()


def run_console(block: str, undersong: Undersong, home: Path) -> None:
    for step in steps_of(block):
        program, *arguments = shlex.split(step.command)
        assert program == "undersong", step.command
        whole = [str(home / word[2:]) if word.startswith("~/") else word for word in arguments]
        ran = undersong(*whole)
        if "settings:" in "".join(step.lines):  # standard error comes first here, as on a terminal
            ran = Ran(ran.code, ran.err + ran.out, "")
        check(step, ran)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_code_of_a_page_runs(page: Path, undersong: Undersong, inputs: Path) -> None:
    for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        named = re.match(r"# ([\w./-]+)\n", block)
        if kind == "console":
            run_console(block, undersong, inputs / "home")
        elif kind == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block, page.name, "exec"), {"__name__": "page"})
        elif kind in ("yaml", "toml") and named:
            target = inputs / named[1]
            assert inputs in target.resolve().parents
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block, encoding="utf-8")


def test_every_recipe_has_a_reader_an_end_and_commands_that_run() -> None:
    recipes = sorted((DOCS / "recipes").glob("*.md"))
    assert len(recipes) == 15
    for page in recipes:
        text = page.read_text(encoding="utf-8")
        opening = text.split("\n\n")[1]
        assert opening.startswith(("For ", "For\n")), page.name
        assert "At the end" in opening, page.name
        assert "```console\n$ undersong " in text, page.name


def test_a_line_that_is_not_printed_is_noticed() -> None:
    step = next(steps_of("$ undersong formats\n# exit code 3\nfailed … here\n"))
    assert step == Step("undersong formats", 3, ("failed … here",))
    check(step, Ran(3, "x\nfailed 1 2 here\n", ""))
    with pytest.raises(AssertionError):
        check(step, Ran(3, "failed there", ""))
    with pytest.raises(AssertionError):
        check(step, Ran(0, "failed 1 here", ""))
