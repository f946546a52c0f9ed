"""A killed run of a paid judge goes on from its ledger (`bench/judges.py --kills 40` does it many times)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"


def test_reports_after_kills_are_equal_and_nothing_is_asked_three_times() -> None:
    environment = {**os.environ, "UNDERSONG_JUDGE_KEY": "k"}
    command = [sys.executable, str(BENCH / "judges.py"), "--kills", "2", "--messages", "120", "--seed", "3", "--copies"]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 reports equal to the undisturbed one, 0 not" in ran.stdout
