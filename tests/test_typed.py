"""What a type checker of somebody else sees of the library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import undersong

case, rows = undersong.audit([{"role": "user", "content": "hi"}], "a.db", undersong.Options(seed=1))
reveal_type(case)
reveal_type(rows[0])
reveal_type(undersong.scan_keywords("x"))
undersong.audit(3)
undersong.nothing
"""


def test_the_public_names_have_their_types(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    root = Path(__file__).parents[1]
    command = (sys.executable, "-m", "mypy", "--strict", "--no-error-summary")  # with the cache of `make.py check`
    ran = subprocess.run((*command, tmp_path / "program.py"), cwd=root, capture_output=True, text=True, check=False)
    lines = [line.partition("program.py:")[2] for line in ran.stdout.splitlines() if "program.py:" in line]
    assert [line.split(":")[0] for line in lines] == ["5", "6", "7", "8", "9"], ran.stdout
    assert "undersong.models.verdict.Case" in lines[0]
    assert "undersong.models.row.Row" in lines[1]
    assert "KeywordScanResult" in lines[2]
    assert "error" in lines[3]
    assert "error" in lines[4]
