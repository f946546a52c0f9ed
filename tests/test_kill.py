"""A killed audit, run again, gives the report of an undisturbed one (`bench/kill.py` does it many times).

What is killed here are copies of a process that has loaded the program, which all work within milliseconds; tests/cli
stop programs that were started.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parent.parent / "bench"


def test_reports_after_kills_are_equal_byte_for_byte() -> None:
    command = [sys.executable, str(BENCH / "kill.py"), "--kills", "3", "--messages", "700", "--seed", "7", "--copies"]
    environment = {name: value for name, value in os.environ.items() if name != "UNDERSONG_DATA"}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "3 reports equal, 0 not" in ran.stdout


def test_a_store_that_is_shared_survives_kills_of_its_writers_and_reader() -> None:
    command = [sys.executable, str(BENCH / "kill_store.py"), "--kills", "10", "--seed", "3", "--copies"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "none lost, none in part" in ran.stdout


@pytest.mark.parametrize("commands", ["audit,watch,sweep", "monitor,import,merge,forget"])
def test_a_command_that_was_killed_and_run_again_leaves_what_an_undisturbed_one_does(commands: str) -> None:
    program = [sys.executable, str(BENCH / "kills.py"), "--kills", "10", "--seed", "4", "--copies", "--only", commands]
    ran = subprocess.run(program, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "nothing lost, nothing twice, nothing left lying about" in ran.stdout
