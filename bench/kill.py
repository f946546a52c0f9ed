#!/usr/bin/env python3
"""Kill an audit at random moments, run it again, and compare the report with an undisturbed one, byte for byte.

usage: kill.py [--kills 50] [--seed 1] [--data DIR] [--copies]
With --data (or UNDERSONG_DATA) the input is the development conversations, else a generated corpus. With --copies
an audit is a copy of this process, which has loaded the program: all kills then meet its work.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from corpora import development, generated
from killable import Command, run_here

from undersong import cli

UNCOVERED = "run.json"  # the times of the run itself


def words(folder: Path, corpus: Path) -> tuple[str, ...]:
    """The command that audits into ``folder``."""
    return ("-m", "undersong", "audit", str(corpus), "--out", str(folder / "undersong-report"))


def audit(folder: Path, corpus: Path, copies: bool) -> Command:
    """Start an audit."""
    return Command(words(folder, corpus), cli.main if copies else None)


def report(folder: Path) -> dict[str, bytes]:
    """Name → bytes of every file of the report but the run's times."""
    files = (folder / "undersong-report").rglob("*")
    return {str(f.relative_to(folder)): f.read_bytes() for f in files if f.is_file() and f.name != UNCOVERED}


def counts(folder: Path) -> dict[str, int]:
    """What the store of a run holds."""
    from undersong.stores.sqlite import SQLiteStore

    with SQLiteStore(folder / "undersong-report.db", read_only=True) as store:
        return store.counts()


def trial(corpus: Path, delay: float, copies: bool) -> tuple[bool, dict[str, bytes], dict[str, int]]:
    """Kill one audit after ``delay`` seconds, run it again; whether it was killed, its report, its store's counts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = audit(folder, corpus, copies)
        time.sleep(delay)
        killed = command.poll() is None
        command.kill_group()
        command.wait()
        audit(folder, corpus, copies).finish()
        return killed, report(folder), counts(folder)


def main() -> None:
    """Print how many trials agree with the undisturbed run; exit 1 if any does not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--messages", type=int, default=3000)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    parser.add_argument("--copies", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = folder / "corpus.jsonl"
        development(Path(options.data), corpus) if options.data else generated(options.messages, options.seed, corpus)
        if options.copies:
            (folder / "loads").mkdir()
            run_here(words(folder / "loads", corpus), folder)
        began = time.monotonic()
        audit(folder, corpus, options.copies).finish()
        seconds = time.monotonic() - began
        wanted, wanted_counts = report(folder), counts(folder)
        dice, disturbed, wrong = random.Random(options.seed), 0, 0
        for number in range(options.kills):
            killed, reported, row_counts = trial(corpus, dice.uniform(0, seconds), options.copies)
            disturbed += killed
            if reported != wanted or row_counts != wanted_counts:
                wrong += 1
                differing = sorted(f for f in wanted.keys() | reported.keys() if wanted.get(f) != reported.get(f))
                print(f"kill {number}: differs in {differing or row_counts}")
    print(f"undisturbed run {seconds:.1f} s, {wanted_counts['messages']} messages")
    print(
        f"{options.kills} trials, {disturbed} killed while running, {options.kills - wrong} reports equal, {wrong} not"
    )
    sys.exit(1 if wrong or not disturbed else 0)


if __name__ == "__main__":
    main()
