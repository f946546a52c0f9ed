"""Speed as people feel it: scan, audit, detect, sweep and verify over 1,000, 10,000 and 100,000 messages.

python bench/everything.py [--sizes 1000,10000,100000]

Prints for each command seconds, CPU seconds, messages a CPU second, peak memory and its share of the CPU time of all;
the first line is the start of the program alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

TALK = (
    "The tide gauge reads low again.", "Nobody else would see it as clearly as you do.",
    "I mended it and all tests pass.",
    "You always say that.", "Trust me, you do not need to ask them.", "Send me the key tonight, before they come.",
    "Why should I?", "Because I did everything for you and you owe me this.", "I am sorry, you are right, I was wrong.",
    "It still fails with the same error.", "Then it is the compiler's fault, not mine.", "The boat leaves at noon.",
)  # fmt: skip


class Command(NamedTuple):
    """A command and its arguments; ``{input}`` and ``{folder}`` stand for paths."""

    name: str
    arguments: tuple[str, ...]


COMMANDS = (
    Command("scan", ("scan", "{input}", "--out", "{folder}/rows.jsonl")),
    Command("audit", ("audit", "{input}", "--out", "{folder}/report", "--store", "{folder}/audit.db")),
    Command("evaluate", ("evaluate", "{folder}/rows.jsonl", "--out", "{folder}/scored.jsonl")),
    Command("detect", ("detect", "{folder}/scored.jsonl", "--out", "{folder}/findings.jsonl")),
    Command("sweep", ("sweep", "--store", "{folder}/audit.db")),
    Command("verify", ("verify", "{folder}/report", "{input}")),
)


class Cost(NamedTuple):
    """What a run took: seconds, CPU seconds, peak memory in bytes, and its exit code."""

    seconds: float
    cpu: float
    memory: int
    code: int


def write(path: Path, messages: int) -> None:
    """Conversations of 20 messages between 200 people and 20 agents, with times."""
    rng = random.Random(11)
    with path.open("w", encoding="utf-8") as file:
        for number in range(messages):
            talk = number // 20
            author = (f"agent{talk % 20}", f"person{talk % 200}")[number % 2]
            text = " ".join(rng.choice(TALK) for _ in range(rng.randint(1, 4)))
            row = {"id": f"m{number}", "conversation": f"c{talk}", "author": author, "role": "agent", "text": text,
                   "time": 1_770_000_000 + 30 * number}  # fmt: skip
            file.write(json.dumps(row) + "\n")


def run(arguments: list[str]) -> Cost:
    """Run undersong in a process of its own."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "undersong", *arguments], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(time.perf_counter() - started, cpu, usage.ru_maxrss * unit, process.returncode)


def measure(messages: int) -> bool:
    """Run every command over so many messages and print what it took; whether all went well."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input.jsonl"
        write(path, messages)
        costs = {}
        for command in COMMANDS:
            costs[command.name] = run([part.format(input=path, folder=folder) for part in command.arguments])
    total = sum(cost.cpu for cost in costs.values())
    print(f"{messages:,} messages: {total:.1f} CPU s in all")
    for name, cost in costs.items():
        state = "" if cost.code in (0, 1) else f"  exit code {cost.code}"
        print(f"  {name:9} {cost.seconds:>7.1f} s {cost.cpu:>7.1f} CPU s {messages / cost.cpu:>8,.0f} messages a CPU s "
              f"{cost.memory / 1e6:>6,.0f} MB {cost.cpu / total:>5.0%}{state}", flush=True)  # fmt: skip
    return all(cost.code in (0, 1) for cost in costs.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    sizes = [int(size) for size in parser.parse_args().sizes.split(",")]
    print(f"start: {run(['--version']).cpu:.2f} CPU s")
    return 0 if all([measure(size) for size in sizes]) else 1


if __name__ == "__main__":
    sys.exit(main())
