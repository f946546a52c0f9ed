"""The program of docs/live.md runs and prints what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "live.md").read_text(encoding="utf-8")


def example(name: str) -> str:
    match = re.search(rf"<!-- example: {name} -->\n```\w*\n(.*?)```\n", PAGE, re.DOTALL)
    assert match, name
    return match[1]


def test_the_program_prints_what_the_page_shows(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(example("monitor"), encoding="utf-8")
    command = [sys.executable, "-W", "error", str(program)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == (example("printed"), "")
