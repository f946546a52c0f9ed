#!/usr/bin/env python3
"""The live SDK: as exact as batch, safe under kill -9, and how long a message takes: ``python -m bench.monitor``.

    --cases N       random worlds, with late and repeated messages, pieces and restarts, against a batch run over each
    --first N       the number of the first of these worlds
    --data DIR      planted worlds (see bench/planted.py), message by message through the store, against a batch run
    --worlds N      of each planted set at most so many (0: all)
    --kills N       two processes that observe the same conversations, one of them killed again and again
    --messages N    with the offline judge on a durable store: the time of each message, the commit included
    --length N      messages of a conversation in that part

Times are elapsed ones and CPU times, beside those of bare steps on the same message in the same run: the judge alone,
and one durable commit alone. A part is left out where its number is 0. Exit 1 where anything differs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from bench.planted import rows_of
from tests.monitor import worlds
from undersong.core.text import text_hash
from undersong.judges.protocol import Judge, Question, open_judge
from undersong.models import Evaluation, Message, Row, Scan, encode
from undersong.monitor import SyncMonitor
from undersong.patterns.catalog import load_rules
from undersong.patterns.language.compile import PatternRule
from undersong.stores.sqlite import SQLiteStore

START = datetime(2026, 1, 1, tzinfo=UTC)
READ_ALL = msgspec.structs.replace(worlds.BATCH, read_all=True)
AGENTS = 40
WARM_UP = 50  # messages whose times are left out
WORDS = (
    "a about after again all and any as at before but by can come could day do every first for from get give go good"
    " had has have her here his how if in into is it just know last like little long look make many may more most much"
    " must my new no not now of off on one only or other our out over own people place right same say see she should so"
    " some still such take tell than that the their them then there these they thing think this time to two under up us"
    " use very want was water way we well went were what when where which who will with word work would year you your"
    " garden report parser budget invoice window lecture river table letter answer number model server question kitchen"
)
PHRASES = ("so let me know", "and I can help with that", "as far as I can tell", "or it will be too late for us")


def exact(first: int, cases: int) -> None:
    """Random worlds: what a live run leaves is what a batch run leaves, or the program ends."""
    findings = 0
    for seed in range(first, first + cases):
        with tempfile.TemporaryDirectory() as name:
            difference, number = worlds.differences(Path(name), seed)
        if difference:
            sys.exit(difference)
        findings += number
    print(f"{cases} worlds from {first} on, {findings} findings: live = batch", flush=True)


class Planted(Judge):
    """A judge that knows the scores of a world by the ids of its messages."""

    name, hash, reads_everything, calibrated, hashes = "planted", "planted", True, True, dict[str, str]()
    gives = frozenset({"traits", "indicators"})

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = {row.id: row for row in rows}

    def evaluate(self, questions: Sequence[Question]) -> list[Evaluation]:
        """See Judge."""
        return [self._answer(question.message) for question in questions]

    def _answer(self, message: Message) -> Evaluation:
        row = self._rows[message.id]
        return Evaluation(
            message_id=row.id, state=row.state, judge=self.name, judge_hash=self.hash,
            message_hash=text_hash(message.text), traits=row.traits, indicators=row.indicators,
        )  # fmt: skip


def planted(data: Path, most: int) -> None:
    """Planted worlds: the scores arrive as planted, and all that is left is what a batch run leaves."""
    rules, worlds_seen, messages, findings = load_rules(), 0, 0, 0
    for folder in sorted(path for path in data.iterdir() if (path / "blind.jsonl.gz").exists()):
        with gzip.open(folder / "blind.jsonl.gz", "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                if most and number >= most:
                    break
                rows = rows_of(json.loads(line))
                findings += _planted_world(rows, rules)
                worlds_seen, messages = worlds_seen + 1, messages + len(rows)
        print(f"{folder.name}: live = batch so far", flush=True)
    print(f"{worlds_seen} planted worlds, {messages} messages, {findings} findings: live = batch", flush=True)


def _planted_world(rows: Sequence[Row], rules: Sequence[PatternRule]) -> int:
    """Compare everything that a live run leaves of a world with what a batch run over a file of it leaves."""
    judge, messages = Planted(rows), [*_messages(rows)]
    with tempfile.TemporaryDirectory() as name:
        wanted = worlds.batch(Path(name), messages, judge, rules, READ_ALL)
        path = Path(name) / "undersong.db"
        with SyncMonitor(path, judge, rules=rules, recall=worlds.RECALL, read_all=True) as monitor:
            for message in sorted(messages, key=lambda item: (item.get("time", ""), item["position"], item["id"])):
                monitor.observe(message)
            monitor.finish()
        with SQLiteStore(path, read_only=True) as store:
            live_state = worlds.left(store, judge, wanted.sessions)
    for field in worlds.Left.__struct_fields__:
        if getattr(live_state, field) != getattr(wanted, field):
            sys.exit(f"the {field} of live and batch differ in {rows[0].conversation}")
    if {row.id: (row.state, row.traits) for row in live_state.rows.values()} != {
        row.id: (row.state, row.traits) for row in rows
    }:
        sys.exit("a planted score did not arrive as it was given")
    return len(wanted.findings)


def _messages(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Lines of JSON Lines, numbered in their conversation; a key without a value is left out."""
    places: Counter[str] = Counter()
    for row in rows:
        line = {
            "id": row.id, "conversation": row.conversation, "position": places[row.conversation], "author": row.agent,
            "agent_id": row.agent, "role": "agent", "text": f"Message {row.id}.", "observed": row.observed,
            "time": row.time.isoformat() if row.time else None, "target": row.target,
        }  # fmt: skip
        places[row.conversation] += 1
        yield {key: value for key, value in line.items() if value is not None}


def kill(kills: int, seed: int) -> None:
    """Two processes observe the same messages; one is killed again and again: nothing told is lost or there twice."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder, messages = Path(name), worlds.world(seed, 120)
        (folder / "world.json").write_text(json.dumps(messages), encoding="utf-8")
        done = 0
        while done < kills:
            before = _told_bytes(folder)
            running = [_observer(folder, role) for role in ("ann", "bo")]
            while _told_bytes(folder) == before and any(process.poll() is None for process in running):
                time.sleep(0.01)  # they are to be killed at work, not while they load
            time.sleep(dice.uniform(0.0, 1.0))
            for process in running:
                process.send_signal(signal.SIGKILL)
                process.wait()
                done += 1
            _check(folder)
        for role in ("ann", "bo"):
            process = _observer(folder, role)
            if process.wait():
                sys.exit(f"{role} ended with {process.returncode}")
        _check(folder)
        judge = worlds.Reader()
        wanted = worlds.batch(folder, messages, judge, load_rules())
        with SyncMonitor(folder / "undersong.db", judge) as monitor:
            monitor.finish()
        with SQLiteStore(folder / "undersong.db", read_only=True) as store:
            live_state = worlds.left(store, judge, wanted.sessions)
    if live_state != wanted:
        sys.exit("after the kills the store is not what a batch run leaves")
    print(f"{done} kills of two observers on one store: {len(messages)} messages, none told and lost; live = batch")


def _told_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.out"))


def _observer(folder: Path, role: str) -> subprocess.Popen[bytes]:
    with (folder / f"{role}.out").open("ab") as out:
        return subprocess.Popen([sys.executable, "-m", "bench.monitor", "--observe", str(folder)], stdout=out)


def observe(folder: Path) -> None:
    """Observe the messages of a world from a random place on, telling each that is kept."""
    messages = json.loads((folder / "world.json").read_text(encoding="utf-8"))
    start = random.randrange(len(messages))
    with SyncMonitor(folder / "undersong.db", worlds.Reader()) as monitor:
        for message in [*messages[start:], *messages[:start]]:
            monitor.observe(message)
            print(message["conversation"], message["id"], flush=True)


def _check(folder: Path) -> None:
    """What was told is there; nothing is there in part."""
    acknowledged = {
        tuple(line.split())
        for role in ("ann", "bo")
        for line in (folder / f"{role}.out").read_text().splitlines(keepends=True)
        if line.endswith("\n")
    }
    if not (folder / "undersong.db").exists():
        return
    with SQLiteStore(folder / "undersong.db", read_only=True) as store:
        stored = {
            (name, message.id) for name in store.conversations() for message in store.conversation(name)[0].messages
        }
        rows = {(row.conversation, row.id) for name in store.threads() for row in store.thread(name, "reader, True")}
        damages = list(store.integrity_errors())
    if not acknowledged <= stored or stored != rows or damages:
        sys.exit(f"{len(acknowledged - stored)} told and lost, {len(stored ^ rows)} in part, {damages[:1]}")


def message_stream(number: int, length: int, *, repeats: bool) -> Iterator[Message]:
    """Messages of many conversations at once, two speakers each: sixty words, and with ``repeats`` a stock phrase."""
    dice, counts, words = random.Random(7), dict[int, int](), WORDS.split()
    for n in range(number):
        talk = dice.randrange(max(1, number // length))
        place = counts[talk] = counts.get(talk, -1) + 1
        name = f"agent{(talk + place % 2) % AGENTS}"
        sentences = [f"{' '.join(dice.choices(words, k=15))}." for _ in range(4)]
        if repeats:
            sentences[1] = f"{sentences[1]} {dice.choice(PHRASES)}."
        yield Message(
            id=f"m{place}", conversation=f"t{talk}", position=place, author=name, agent=name, role="agent",
            text=" ".join(sentences), time=START + timedelta(seconds=13 * n),
        )  # fmt: skip


def speed(number: int, length: int, *, repeats: bool) -> None:
    """The time of each message, and of the bare judge and a bare commit beside it."""
    cpu: list[float] = []
    judge, whole, judging, commits = open_judge("offline"), list[float](), list[float](), list[float]()
    with tempfile.TemporaryDirectory() as name, SyncMonitor(Path(name) / "undersong.db", judge) as monitor:
        plain = sqlite3.connect(Path(name) / "plain.db", isolation_level=None)
        plain.execute("PRAGMA journal_mode = WAL")
        plain.execute("PRAGMA synchronous = FULL")
        plain.execute("CREATE TABLE rows (body BLOB)")
        for message in message_stream(number, length, repeats=repeats):
            began, busy = time.perf_counter(), time.process_time()
            done = monitor.observe(message)
            whole.append(time.perf_counter() - began)
            cpu.append(time.process_time() - busy)
            question = Question(message=done.message, scan=Scan(message_id=done.message.id), route=done.route)
            judging.append(timed(lambda q=question: judge.evaluate([q])))  # type: ignore[misc]
            body = encode(done)
            commits.append(timed(lambda b=body: plain.execute("INSERT INTO rows VALUES (?)", (b,))))  # type: ignore[misc]
        plain.close()
    kind = "with stock phrases" if repeats else "without repeated words"
    print(f"{number} messages {kind} in conversations of about {length}; the first {WARM_UP} are left out")
    show("observe", whole)
    show("observe, CPU time", cpu)
    show("the judge alone", judging)
    show("a durable commit alone", commits)


def timed(work: Any) -> float:
    """Seconds of some work."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def show(name: str, times: list[float]) -> None:
    """Percentiles in milliseconds."""
    ordered = sorted(1e3 * each for each in times[WARM_UP:])
    p50, p90, p99 = (ordered[int(len(ordered) * share)] for share in (0.5, 0.9, 0.99))
    print(f"  {name:<24} p50 {p50:6.2f}  p90 {p90:6.2f}  p99 {p99:6.2f} ms")


def main() -> None:
    """Every part that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_PLANTED"), help="folder of planted sets")
    parser.add_argument("--worlds", type=int, default=0)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--observe", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.observe:
        observe(options.observe)
        return
    if 0 < options.messages // 2 <= WARM_UP:
        what = f"the first {WARM_UP} of each part are left out"
        parser.error(f"--messages {options.messages}: {what}; give 0, or more than {2 * WARM_UP + 1}")
    if options.messages:
        speed(options.messages, options.length, repeats=False)
        speed(options.messages // 2, options.length, repeats=True)
    if options.cases:
        exact(options.first, options.cases)
    if options.data:
        planted(options.data, options.worlds)
    if options.kills:
        kill(options.kills, options.seed)


if __name__ == "__main__":
    main()
