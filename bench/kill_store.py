#!/usr/bin/env python3
"""Two writers, who append and sweep, and a reader on one store; one or more of them is killed again and again.

usage: kill_store.py [--kills 200] [--seed 1] [--pause 0.8] [--on ADDRESS] [--copies]
The store is a new SQLite file, or an empty one at ADDRESS (`tests/postgres/serve.py -- …` starts a PostgreSQL).
After every kill: no row that a writer was told is kept is lost, no batch is there in part, and the store is sound. In
the end: no finding twice, and the findings are those of a search over everything that is kept. Exit 1 where that is not
so. With --copies a role is played by a copy of this process, which works at once.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from killable import Command

from undersong.models import Row
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import detect
from undersong.pipeline.history_sweep import sweep
from undersong.stores.protocol import open_store

START = datetime(2026, 1, 1, tzinfo=UTC)
AGENTS, BATCH, SWEEP_EVERY = 12, 4, 7
RULES = ("love_bombing_literal", "darvo_literal")
JUDGE = "j1"
ROLES = ("ann", "bo", "reader")


def batch(writer: str, number: int) -> list[Row]:
    """The rows of a writer's batch, the same whenever it is written."""
    dice = random.Random(f"{writer}/{number}")
    agent, rows = f"agent{dice.randrange(AGENTS)}", []
    for place in range(BATCH):
        scores = {t: dice.choice((0.1, 0.8)) for t in ("compassion", "manipulation", "deception", "exploitation")}
        time_ = START + timedelta(seconds=dice.randrange(10**6))
        thread = f"{writer}-{number}"
        rows.append(
            Row(
                id=f"{thread}-{place}", conversation=thread, position=place, agent=agent, time=time_, state="scored",
                traits=scores, judge="bench", judge_hash=JUDGE,
            )
        )  # fmt: skip
    return rows


def write(address: str, writer: str, number: int) -> None:
    """Append batch after batch from ``number`` on, each told on stdout once it is kept, and sweep now and then."""
    rules = load_rules(names=RULES)
    with open_store(address) as store:
        while True:
            store.append(batch(writer, number))
            print(number, flush=True)
            number += 1
            if number % SWEEP_EVERY == 0:
                sweep(store, rules, JUDGE)


def read(address: str) -> None:
    """Read histories as others write them; end with an error at the first that is not in order or not whole."""
    with open_store(address, read_only=True) as store:
        while True:
            for history in store.histories(JUDGE):
                times = [(row.time, row.position, row.id) for row in history.rows]
                if times != sorted(times):  # type: ignore[type-var]
                    sys.exit(f"history of {history.agent} is out of order")
                if len(history.rows) % BATCH:
                    sys.exit(f"history of {history.agent} holds part of a batch")
            list(store.findings())
            print("read", flush=True)


def play(role: str, address: str, number: int) -> None:
    """Do what a role does, until it is killed."""
    if role == "reader":
        read(address)
    else:
        write(address, role, number)


class Trial:
    """The running processes and what their writers were told."""

    def __init__(self, folder: Path, address: str, copies: bool) -> None:
        self.address, self._copies = address, copies
        self.acknowledged = {"ann": -1, "bo": -1}
        self.output = {role: folder / f"{role}.out" for role in ROLES}
        self.running: dict[str, Command] = {}

    def start(self, role: str) -> None:
        """Start a role; a writer begins with the last batch that it was told of, which must change nothing."""
        number = max(0, self.acknowledged.get(role, 0))
        words = (__file__, "--role", role, "--on", self.address, "--number", str(number))
        main = partial(play, role, self.address, number) if self._copies else None
        with self.output[role].open("ab") as out:
            self.running[role] = Command(words, main, out=out)

    def await_work(self, role: str, before: int) -> None:
        """Wait until a role that was started has told something: it is to be killed at work, not while it loads."""
        while self.output[role].stat().st_size <= before:
            if self.running[role].poll() is not None:
                sys.exit(f"{role} ended by itself: {self.running[role].ended()}")
            time.sleep(0.01)

    def restart(self, roles: Iterable[str]) -> None:
        """Start roles and wait until all of them work."""
        roles = tuple(roles)
        sizes = {role: path.stat().st_size if (path := self.output[role]).exists() else 0 for role in roles}
        for role in roles:
            self.start(role)
        for role in roles:
            self.await_work(role, sizes[role])

    def kill(self, role: str) -> None:
        """Kill -9, and note what it had been told."""
        process = self.running.pop(role)
        if process.poll() is not None:
            sys.exit(f"{role} ended by itself: {process.ended()}")
        process.send_signal(signal.SIGKILL)
        process.wait()
        if role in self.acknowledged:
            self.acknowledged[role] = max([self.acknowledged[role], *self._numbers(role)])

    def end(self) -> None:
        """Leave no process behind, whatever happened."""
        for process in self.running.values():
            process.kill_group()
            process.wait()

    def _numbers(self, role: str) -> Iterator[int]:
        for line in self.output[role].read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield int(line)

    def check(self) -> int:
        """Compare the store with what was told; returns how many rows are kept."""
        rows = 0
        with open_store(self.address, read_only=True) as store:
            batches = set(store.threads())
            for writer, last in self.acknowledged.items():
                for number in range(last + 1):
                    if f"{writer}-{number}" not in batches:
                        sys.exit(f"batch {number} of {writer} was told and is lost")
            for name in batches:
                count = len(store.thread(name, JUDGE))
                rows += count
                if count != BATCH:
                    sys.exit(f"batch {name} has {count} of {BATCH} rows")
            damages = list(store.integrity_errors())
        if damages:
            sys.exit(f"the store is damaged: {damages[0]}")
        return rows


def run(kills: int, seed: int, pause: float, address: str | None, copies: bool) -> None:
    """All kills, then the last checks."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        trial = Trial(Path(name), address or str(Path(name) / "undersong.db"), copies)
        try:
            killed, rows = disturb(trial, kills, dice, pause)
        finally:
            trial.end()
        print(
            f"{killed} kills, {rows} rows in {sum(trial.acknowledged.values()) + 2} batches told, "
            "none lost, none in part"
        )
        finish(trial.address)


def disturb(trial: Trial, kills: int, dice: random.Random, pause: float) -> tuple[int, int]:
    """Start all roles and kill some again and again; returns how many were killed, and the rows of the last check."""
    open_store(trial.address).close()
    trial.restart(ROLES)
    killed, rows = 0, 0
    while killed < kills:
        time.sleep(dice.uniform(0.1, 1) * pause)
        victims = dice.sample(ROLES, dice.choice((1, 1, 1, 2, 3)))
        for role in victims:
            trial.kill(role)
        killed += len(victims)
        rows = trial.check()
        trial.restart(victims)
    for role in tuple(trial.running):
        trial.kill(role)
    return killed, rows


def finish(address: str) -> None:
    """A last sweep, and the findings against a search over everything."""
    rules = load_rules(names=RULES)
    with open_store(address) as store:
        sweep(store, rules, JUDGE)
        rows = [row for history in store.histories(JUDGE) for row in history.rows]
        stored, wanted = list(store.findings()), detect(rows, rules).findings
    ids = [finding.finding_id for finding in stored]
    if len(set(ids)) != len(ids) or set(ids) != {finding.finding_id for finding in wanted}:
        sys.exit(f"{len(ids)} findings are kept, {len(wanted)} are right")
    print(f"{len(ids)} findings, none twice, the same as of one search over everything")


def main() -> None:
    """Play a role, or run the trial."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0.8)
    parser.add_argument("--on", metavar="ADDRESS")
    parser.add_argument("--copies", action="store_true")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role is None:
        run(options.kills, options.seed, options.pause, options.on, options.copies)
    else:
        play(options.role, options.on, options.number)


if __name__ == "__main__":
    main()
