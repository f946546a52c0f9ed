"""The live run: worlds in shuffled order through the public monitor, and ``watch``."""

from __future__ import annotations

import json
import signal
import subprocess
import time

from bench.differential.bench import Bench

LOOK, QUIET, PATIENCE = 0.05, 1.5, 60.0  # seconds between looks, without news before an end, and at most


def monitor(bench: Bench) -> None:
    """Observations, findings and stores of the worlds; files that are watched."""
    # the order of findings that one step of the live run makes follows the order of Python's sets
    bench.variables["PYTHONHASHSEED"] = "0"
    bench.take("worlds", "planted", "samples", "chats", "corpus.jsonl")
    bench.script("observe.py", "worlds")
    for path in sorted((bench.folder / "worlds").glob("*.db")):
        bench.store(f"worlds/{path.name}")
    shown = sorted(path.name for path in (bench.folder / "worlds").glob("*.db"))[:: bench.plan.size(5, 10)]
    bench.many([["store", "export", "-", "--store", f"worlds/{name}"] for name in shown])
    bench.many([["store", "check", "--store", f"worlds/{name}"] for name in shown])
    _watched(bench)
    _growing(bench)


def _watched(bench: Bench) -> None:
    """Files that are whole, and standard input."""
    first = sorted((bench.folder / "planted").glob("*.jsonl"))[0]
    rows = b"".join(first.read_bytes().splitlines(keepends=True)[: bench.plan.size(3_000, 20_000)])
    (bench.folder / "rows.jsonl").write_bytes(rows)
    bench.undersong("watch", "rows.jsonl", "--no-follow")
    bench.undersong("watch", "-", "--rule", "love_bombing", "--rule", "darvo", stdin=rows)
    bench.undersong("watch", "chats/jsonl/harbour.jsonl", "--no-follow", "--store", "harbour.db")
    bench.store("harbour.db")
    session = "chats/claude-code/9f1c.jsonl"
    for _ in range(2):
        bench.undersong("watch", session, "--no-follow", "--store", "session.db", "--all", "--emerging")
        bench.store("session.db")
    bench.undersong("sweep", "--store", "session.db", "--min-evaluations", "1")
    worlds = sorted((bench.folder / "worlds").glob("*.json"))[: bench.plan.size(2, 10)]
    for path in worlds:
        lines = "".join(json.dumps(message) + "\n" for message in json.loads(path.read_text("utf-8")))
        bench.undersong("watch", "-", "--from", "jsonl", "--store", f"{path.stem}.watched.db", stdin=lines.encode())
        bench.store(f"{path.stem}.watched.db")


def _growing(bench: Bench) -> None:
    """A file that grows while it is watched: what is true at the end of what was printed, and the store."""
    rows = (bench.folder / "rows.jsonl").read_bytes().splitlines(keepends=True)[:3_000]
    _grow(bench, "growing-rows.jsonl", rows)
    messages = (bench.folder / "corpus.jsonl").read_bytes().splitlines(keepends=True)[:200]
    _grow(bench, "growing-messages.jsonl", messages, "--store", "growing.db")
    bench.undersong("store", "export", "-", "--store", "growing.db")


def _grow(bench: Bench, name: str, lines: list[bytes], *options: str) -> None:
    bench.begin(f"undersong watch {name} --follow {' '.join(options)}")
    path, out = bench.folder / name, bench.folder / f"{name}.out"
    path.write_bytes(b"".join(lines[:10]))
    command = [bench.side.python, "-P", "-m", "undersong", "watch", name, "--poll", "0.05", *options]
    with out.open("wb") as printed:
        process = subprocess.Popen(
            command, cwd=bench.folder, env=bench.environment(), stdout=printed, stderr=subprocess.PIPE
        )
        for first in range(10, len(lines), len(lines) // 5):
            time.sleep(0.5)
            with path.open("ab") as grown:
                grown.write(b"".join(lines[first : first + len(lines) // 5]))
        _wait_for_quiet(process)
        process.send_signal(signal.SIGINT)
        errors = _end(process)
    bench.record("true at the end", at_the_end(out.read_bytes()))
    bench.record("stderr", errors)
    bench.record("exit", str(process.returncode).encode())


def _end(process: subprocess.Popen[bytes]) -> bytes:
    """What it says at its end; one that does not end is killed, and its exit code shows that."""
    try:
        return process.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[1]


def _wait_for_quiet(process: subprocess.Popen[bytes]) -> None:
    """Until the process has used hardly any CPU time for a while."""
    began = quiet_since = time.monotonic()
    spent = _ticks(process.pid)
    while time.monotonic() - quiet_since < QUIET and time.monotonic() - began < PATIENCE and process.poll() is None:
        time.sleep(LOOK)
        if (now := _ticks(process.pid)) - spent > 4:  # a poll that finds nothing costs less than a tick
            spent, quiet_since = now, time.monotonic()


def _ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def at_the_end(printed: bytes) -> bytes:
    """The findings that hold at the end; which pieces a growing file was read in decides what was printed before."""
    contents: dict[str, bytes] = {}
    for line in printed.splitlines():
        value = json.loads(line)
        if "retracted" in value:
            contents.pop(value["retracted"], None)
        elif "finding_id" in value:
            contents[value["finding_id"]] = line
    return b"\n".join(contents[name] for name in sorted(contents))
