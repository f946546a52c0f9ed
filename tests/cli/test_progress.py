"""The progress line: what it says, how wide it is, and that it leaves nothing behind."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.cli.test_help import on_a_terminal
from undersong.cli.progress import ProgressLine, line_of


@pytest.mark.parametrize(
    ("step", "done", "total", "line"),
    [
        ("read", 1_500_000, 3_000_000, f"read      {'█' * 12}{' ' * 12} 1.5 of 3.0 MB"),
        ("scan", 1024, 1024, f"scan      {'█' * 24} 1,024 of 1,024 messages"),
        ("weigh", 0, 27, f"weigh     {' ' * 24} 0 of 27 rules"),
        ("report", 0, 0, "report    …"),
    ],
)
def test_a_line_says_how_much_of_how_much(step: str, done: int, total: int, line: str) -> None:
    assert line_of(step, done, total) == line


def test_a_line_is_as_narrow_as_the_terminal_and_is_wiped_by_the_next() -> None:
    stream = io.StringIO()
    line = ProgressLine(stream, 20)
    line.draw("evaluate", 5, 10)
    line.draw("detect", 1, 10)
    line.clear()
    pieces = stream.getvalue().split("\r")
    assert max(map(len, pieces)) <= 19
    assert pieces[-1] == ""
    assert pieces[-2] == " " * len(pieces[-3].rstrip("\n"))


def test_a_terminal_shows_progress_and_a_pipe_does_not(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text('{"id": "1", "conversation": "c", "author": "kira", "text": "hi"}\n')
    shown = on_a_terminal("audit", "talk.jsonl", folder=tmp_path)
    for step in ("read", "scan", "evaluate", "detect"):
        assert f"\r{step} " in shown
    assert "█" not in on_a_terminal("audit", "talk.jsonl", folder=tmp_path, TERM="dumb")
