"""SIGTERM ends a run as Ctrl-C does: same words, same exit code, nothing half written; all files are private."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import Undersong

ROWS = "".join(
    f'{{"conversation": "c{n // 20}", "author": "a{n % 3}", "text": "You owe me at least that, {n}."}}\n'
    for n in range(4000)
)


def stop(folder: Path, number: int, *arguments: str) -> tuple[int, str]:
    """Start a command, send it a signal once it works, and give its exit code and what it said."""
    command = [sys.executable, "-m", "undersong", *arguments]
    environment = os.environ | {"TMPDIR": str(folder / "tmp")}
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env=environment) as process:
        while not any(path.suffix == ".db" and path.stat().st_size for path in folder.rglob("*.db")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        assert process.stderr is not None
        said = process.stderr.read()
    return process.returncode, said


@pytest.mark.parametrize("keep", [(), ("--no-store",)])
def test_sigterm_ends_an_audit_like_an_interrupt(tmp_path: Path, keep: tuple[str, ...]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    ended = []
    for number in (signal.SIGTERM, signal.SIGINT):
        folder = tmp_path / number.name
        (folder / "tmp").mkdir(parents=True)
        (folder / "in.jsonl").write_text(ROWS)
        ended.append(stop(folder, number, "audit", "in.jsonl", *keep))
        assert list((folder / "tmp").iterdir()) == []
        assert not any(path.suffix in (".partial", ".old") for path in folder.iterdir())
        assert not (folder / "undersong-report").exists()
    assert ended[0] == ended[1]
    assert ended[0][0] == 130
    assert "stopped; what was stored is kept" in ended[0][1]


MET_IN_A_STRING = """
import signal
from undersong.cli import formats, main

formats.command.callback = lambda **options: eval("signal.raise_signal(signal.SIGTERM)")
main()
"""


def test_a_signal_that_meets_the_making_of_a_class_gives_the_exit_code_of_a_stop(tmp_path: Path) -> None:
    (tmp_path / "stopped.py").write_text(MET_IN_A_STRING)
    command = [sys.executable, "-m", "stopped", "formats"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path.cwd())])}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert "undersong: stopped" in ended.stderr
    assert ended.returncode == 130


def test_everything_that_a_command_writes_is_for_the_owner_alone(undersong: Undersong, tmp_path: Path) -> None:
    before = set(tmp_path.rglob("*"))
    assert undersong("audit", "samples", "--draws", "9", "--format", "csv", "--format", "jsonl").code == 0
    assert undersong("store", "export", "all.jsonl").code == 0
    assert undersong("store", "export", "tables", "--format", "parquet").code == 0
    assert undersong("scan", "samples", "--out", "rows.jsonl").code == 0
    made = set(tmp_path.rglob("*")) - before
    assert {path.name for path in made} >= {"undersong-report.db", "all.jsonl", "findings.parquet", "rows.jsonl"}
    assert [path for path in made if path.stat().st_mode & 0o077] == []
