#!/usr/bin/env python3
"""Kill commands at random moments of their work, run them again, and compare what is left with an undisturbed run.

usage: kills.py [--kills 400] [--seed 1] [--only audit,forget] [--copies]
Half of the kills are SIGKILL, half SIGTERM. A command is killed up to ten times in a row, its store checked after
each, and then run to its end: the store's content, the report's bytes and the names of all files must be those of a run
that nobody disturbed, and the temporary folder must be empty. Prints a table; exit 1 where anything differs. Nothing is
compiled by numba, which takes three quarters of a sweep's time here. How far a command is stands on stderr; on a busy
machine run it in parts, with --kills 10 and a seed for each. With --copies a command is a copy of this process, which
has loaded the program, and takes a fraction of the time: either way nothing is killed before the work begins.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
import kill_store
from corpora import generated
from killable import Command, Main, run_here

from undersong import cli
from undersong.models import encode
from undersong.stores.integrity import problems
from undersong.stores.reviewing import review_of
from undersong.stores.sqlite import SQLiteStore
from undersong.stores.transfer import export_records

STORE = "here.db"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
IN_A_ROW = 10
CONVERSATIONS, LENGTH = 6, 8
UNDERSONG = ("-m", "undersong")
# how a killed process may end: 130 as after Ctrl-C, the signal itself before and after the program's own code runs
ENDED = {signal.SIGKILL: (-signal.SIGKILL,), signal.SIGTERM: (130, -signal.SIGTERM)}
RULES = tuple(part for rule in kill_store.RULES for part in ("--rule", rule))


class Job(NamedTuple):
    """A command, and what makes the folder in which it starts."""

    command: tuple[str, ...]
    prepare: Callable[[Path], None]
    text_gone: str = ""  # what must stand in no file afterwards
    main: Main = cli.main  # does what the command does


class Left(NamedTuple):
    """What a run leaves: the content of its store, the bytes of its report, the names of all files."""

    records: tuple[bytes, ...]
    report: dict[str, bytes]
    names: frozenset[str]


def corpus(folder: Path) -> None:
    """Conversations as a file."""
    generated(CONVERSATIONS * LENGTH, 3, folder / "in.jsonl", length=LENGTH, agents=6)


def first_audit(folder: Path, name: str) -> None:
    """Audit the file into a store."""
    run_here((*UNDERSONG, "audit", "in.jsonl", "--store", name, "--out", "first", "--draws", "9"), folder)
    shutil.rmtree(folder / "first")


def audited(folder: Path, name: str = STORE) -> None:
    """A store of an audit, in which somebody reviewed what there is."""
    corpus(folder)
    first_audit(folder, name)
    with SQLiteStore(folder / name) as store:
        for minute, item in enumerate([*store.findings(), *store.leads()]):
            store.add_review(
                review_of(store, item, "unsure", NOON + timedelta(minutes=minute), note="both readings fit")
            )


def exported(folder: Path) -> None:
    """An export of such a store."""
    audited(folder, "other.db")
    run_here((*UNDERSONG, "store", "export", "all.jsonl", "--store", "other.db"), folder)


def halves(folder: Path) -> None:
    """Two stores that have some conversations in common."""
    audited(folder, "other.db")
    whole = (folder / "in.jsonl").read_text().splitlines(keepends=True)
    (folder / "in.jsonl").write_text("".join(whole[: len(whole) // 2]))
    first_audit(folder, STORE)


def histories(folder: Path) -> None:
    """A store of rows in which a sweep finds something."""
    with SQLiteStore(folder / STORE) as store:
        for number in range(120):
            store.append(kill_store.batch("ann", number))


def observe() -> None:
    """The job of the monitor: observe every message, and print its id once that is stored."""
    from undersong.monitor import SyncMonitor

    with SyncMonitor(STORE) as monitor:
        for line in Path("in.jsonl").read_text().splitlines():
            message = json.loads(line)
            monitor.observe(message)
            print(message["id"], flush=True)


JOBS = {
    "audit": Job((*UNDERSONG, "audit", "in.jsonl", "--store", STORE, "--out", "report", "--draws", "9"), corpus),
    "audit --no-store": Job((*UNDERSONG, "audit", "in.jsonl", "--no-store", "--out", "report", "--draws", "9"), corpus),
    "watch": Job((*UNDERSONG, "watch", "in.jsonl", "--no-follow", "--store", STORE), corpus),
    "monitor": Job((__file__, "--role", "monitor"), corpus, main=observe),
    "sweep": Job((*UNDERSONG, "sweep", "--store", STORE, *RULES), histories),
    "import": Job((*UNDERSONG, "store", "import", "all.jsonl", "--store", STORE), exported),
    "merge": Job((*UNDERSONG, "store", "merge", "other.db", "--store", STORE), halves),
    "forget": Job((*UNDERSONG, "store", "forget", "thread3", "--store", STORE), audited, text_gone="thread3"),
}


class Bench:
    """One job: its prepared folder, what an undisturbed run leaves, and how long that works."""

    def __init__(self, job: Job, folder: Path, *, copies: bool = False) -> None:
        self.job, self._base, self._copies = job, folder / "base", copies
        self._base.mkdir()
        job.prepare(self._base)
        self._folder = folder / "run"
        if copies:
            self.reset()
            run_here(job.command, self._folder, job.main)
        self.seconds = min(self._timed(), self._timed())  # on a busy machine one may be much slower
        self.wanted = self.left()

    def reset(self) -> None:
        """Begin again from the prepared folder."""
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._base, self._folder)
        (self._folder / "tmp").mkdir()

    def _start(self) -> Command:
        environment = os.environ | {"TMPDIR": str(self._folder / "tmp"), "PYTHONPATH": str(Path.cwd())}
        environment["UNDERSONG_PLAIN"] = "1"
        main = self.job.main if self._copies else None
        self._command = Command(self.job.command, main, cwd=self._folder, environment=environment)
        return self._command

    def _at_work(self, process: Command) -> float:
        """Wait until the process has opened its store, and give the time."""
        while process.poll() is None and not self._has_log():
            time.sleep(0.002)
        return time.monotonic()

    def _has_log(self) -> bool:
        try:
            return any(self._folder.rglob("*.db-wal"))
        except FileNotFoundError:  # a folder went while it was looked through
            return False

    def kill(self, number: signal.Signals, delay: float) -> bool:
        """Start the command and kill it so many seconds after it began to work; False where it had ended by then."""
        for path in self._folder.rglob("*.db-wal"):  # a killed run leaves its log
            with SQLiteStore(path.with_name(path.name.removesuffix("-wal"))):
                pass
        due = self._at_work(self._start()) + delay
        while (running := self._command.poll() is None) and time.monotonic() < due:
            time.sleep(min(0.01, max(0.0, due - time.monotonic())))
        self._command.send_signal(number)
        code = self._command.wait()
        if code not in (0, *ENDED[number]):
            sys.exit(f"{number.name}: {self._command.ended()}")
        return running and code != 0

    def run(self) -> None:
        """Run the command to its end."""
        self._start().finish()

    def _timed(self) -> float:
        """The seconds that an undisturbed run works."""
        self.reset()
        began = self._at_work(self._start())
        self._command.finish()
        return time.monotonic() - began

    def acknowledged(self) -> set[str]:
        """The ids that the monitor printed before it was killed."""
        self._command.out.seek(0)
        return {line.decode().strip() for line in self._command.out if line.endswith(b"\n")}

    def damages(self) -> list[str]:
        """What does not hold together now, and what was acknowledged and is lost."""
        path = self._folder / STORE
        if not path.exists() or not _has_tables(path):
            return []
        with SQLiteStore(path, read_only=True) as store:
            wrong = list(problems(store))
            if "monitor" in self.job.command:
                wrong += [f"{name} is lost" for name in sorted(self.acknowledged()) if not store.find_message(name)]
        return wrong

    def left(self) -> Left:
        """What there is now."""
        return Left(self._records(), self._report(), frozenset(str(p.relative_to(self._folder)) for p in self._files()))

    def _files(self) -> list[Path]:
        return [path for path in self._folder.rglob("*") if not path.name.endswith(("-wal", "-shm"))]

    def _report(self) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in self._folder.glob("report/*") if p.name != "run.json"}

    def _records(self) -> tuple[bytes, ...]:
        if not (self._folder / STORE).exists():
            return ()
        with SQLiteStore(self._folder / STORE, read_only=True) as store:
            return tuple(_without_times(encode(record)) for record in export_records(store))

    def traces(self) -> list[str]:
        """Files with a text that is to be gone."""
        if not self.job.text_gone:
            return []
        private = {"in.jsonl", "tmp"}
        files = (path for path in self._folder.iterdir() if path.is_file() and path.name not in private)
        return [path.name for path in files if self.job.text_gone.encode() in path.read_bytes()]

    def differences(self) -> list[str]:
        """What is not as after an undisturbed run."""
        now, wanted = self.left(), self.wanted
        wrong = [f"files {sorted(now.names ^ wanted.names)}"] if now.names != wanted.names else []
        if now.records != wanted.records:
            wrong.append(f"{len(set(now.records) ^ set(wanted.records))} records of the store")
        wrong += [f"{name} of the report" for name in wanted.report if now.report.get(name) != wanted.report[name]]
        return wrong + [f"what was forgotten is in {name}" for name in self.traces()]


def _has_tables(path: Path) -> bool:
    """Whether a store was begun: a process may be killed after it made the file and before anything is in it."""
    with closing(sqlite3.connect(path)) as db:
        return bool(db.execute("PRAGMA user_version").fetchone()[0])


def _without_times(record: bytes) -> bytes:
    """A record of an export without the moment at which something was forgotten."""
    value = json.loads(record)
    value.get("grave", {}).pop("forgotten", None)
    return json.dumps(value, sort_keys=True).encode()


def trials(bench: Bench, kills: int, dice: random.Random) -> tuple[dict[str, int], list[str]]:
    """Kill until there were enough; how often by which signal, and what was wrong."""
    counted, wrong = {number.name: 0 for number in ENDED} | {"runs": 0}, list[str]()
    while counted["SIGKILL"] + counted["SIGTERM"] < kills:
        bench.reset()
        for _ in range(dice.randint(1, IN_A_ROW)):
            number = dice.choice((signal.SIGKILL, signal.SIGTERM))
            delay = dice.uniform(0, bench.seconds)
            if bench.kill(number, delay):
                counted[number.name] += 1
            wrong += [f"after {number.name} at {delay:.3f} s: {each}" for each in bench.damages()]
        bench.run()
        counted["runs"] += 1
        wrong += [*bench.damages(), *bench.differences()]
        killed = counted["SIGKILL"] + counted["SIGTERM"]
        print(f"{killed} of {kills} kills, {len(wrong)} wrong", file=sys.stderr, flush=True)
    return counted, wrong


def main() -> None:
    """Play the monitor, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(JOBS))
    parser.add_argument("--role", help=argparse.SUPPRESS)
    parser.add_argument("--copies", action="store_true")
    options = parser.parse_args()
    if options.role:
        observe()
        return
    names, bad = options.only.split(","), 0
    print(f"{'command':<18}{'work, s':>8}{'SIGKILL':>9}{'SIGTERM':>9}{'finished':>10}{'wrong':>7}", flush=True)
    for place, name in enumerate(names):
        share = options.kills // len(names) + (place < options.kills % len(names))
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(JOBS[name], Path(folder), copies=options.copies)
            counted, wrong = trials(bench, share, random.Random(f"{options.seed}/{name}"))
        numbers = f"{counted['SIGKILL']:>9}{counted['SIGTERM']:>9}{counted['runs']:>10}{len(wrong):>7}"
        print(f"{name:<18}{bench.seconds:>8.2f}{numbers}", *wrong[:5], sep="\n  ", flush=True)
        bad += len(wrong)
    print(f"{bad} things wrong" if bad else "nothing lost, nothing twice, nothing left lying about")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
