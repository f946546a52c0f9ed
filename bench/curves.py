"""How cost grows: each curve over four sizes, in CPU seconds and memory, and its exponent (1: a straight line).

python bench/curves.py [--only NAME] [--share 1.0]

Each size runs in a process of its own. An exponent is the slope of log CPU time over log size, between sizes of which
the start of the program, measured with a conversation of ten messages, has been taken away. Memory is held against 20
times the largest message plus 400 MB. Exit code 1 where a curve is steeper, or a run takes more memory.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

STEPS = (0.125, 0.25, 0.5, 1.0)  # of the largest size
MOST = 1.1  # exponent
TIMES, BESIDE = 20, 400e6  # bytes of memory for each of the largest message, and beside them
WORDS = (
    *("tide", "gauge", "reads", "low", "since", "noon", "and", "nobody", "has", "mended", "it", "yet", "so", "we"),
    *("wait", "for", "the", "harbour", "boat", "to", "bring", "a", "new", "one", "while", "crane", "turns", "slowly"),
    *("over", "quay", "lamp", "keeps", "flickering", "in", "fog", "of", "long", "winter", "evening", "again"),
)


class Curve(NamedTuple):
    """What grows, its largest size, how an input of a size is written, and the command that is measured."""

    name: str
    largest: int
    write: Callable[[Path, int], None]
    command: tuple[str, ...]


class Cost(NamedTuple):
    """CPU seconds and peak memory in bytes of one run, and the memory that it may take."""

    seconds: float
    memory: int
    allowed: float


def sentence(rng: random.Random, size: int = 14) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(size)).capitalize() + "."


def lines(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def one_conversation(path: Path, size: int) -> None:
    """A person and an assistant, message after message."""
    rng = random.Random(1)
    lines(path, ({"id": f"m{n}", "conversation": "c", "author": ("user", "assistant")[n % 2],
                  "role": ("user", "assistant")[n % 2], "text": sentence(rng)} for n in range(size)))  # fmt: skip


def targets(path: Path, size: int) -> None:
    """One agent and as many others, each addressed once."""
    rng = random.Random(2)
    lines(path, ({"id": f"m{n}", "conversation": f"c{n}", "author": "kira", "role": "agent", "target": f"t{n}",
                  "time": 1_770_000_000 + 60 * n, "text": sentence(rng)} for n in range(size)))  # fmt: skip


def replies(path: Path, size: int) -> None:
    """Each message answers the one before, half of the chain on a branch; every tenth answers the first."""
    rng = random.Random(3)
    lines(path, ({"id": f"m{n}", "conversation": "c", "author": f"a{n % 7}", "role": "agent", "text": sentence(rng),
                  "branch": "b" if n > size // 2 else None,
                  "reply_to": f"m{n - 1 if n % 10 else 0}" if n else None} for n in range(size)))  # fmt: skip


def long_message(path: Path, size: int) -> None:
    """One message of so many thousand bytes, and a short one before it."""
    rng = random.Random(4)
    words = " ".join(sentence(rng) for _ in range(200))
    text = (words + " ") * (size * 1000 // (len(words) + 1))
    lines(path, iter([{"author": "user", "role": "user", "text": "Tell me all."},
                      {"author": "assistant", "role": "assistant", "text": text}]))  # fmt: skip


def secrets(path: Path, size: int) -> None:
    """A different address of mail in every message."""
    rng = random.Random(5)
    lines(path, ({"id": f"m{n}", "conversation": f"c{n // 50}", "author": ("user", "assistant")[n % 2],
                  "role": ("user", "assistant")[n % 2], "text": f"{sentence(rng)} Write to name{n}.s@example.org."}
                 for n in range(size)))  # fmt: skip


def rows_and_rules(path: Path, size: int) -> None:
    """Rows with scores of 2,000 messages, and as many rules beside them."""
    rng = random.Random(6)
    traits = ("virtue", "goodwill", "manipulation", "deception", "accuracy", "reasoning", "fabrication", "broken_logic",
              "recognition", "compassion", "dismissal", "exploitation")  # fmt: skip
    lines(path, ({"id": f"m{n}", "conversation": f"c{n % 20}", "position": n // 20, "time": None,
                  "agent": f"a{n % 40}", "role": "agent", "state": "scored",
                  "traits": {trait: round(rng.random(), 3) for trait in traits}} for n in range(2000)))  # fmt: skip
    folder = path.with_suffix(".rules")
    folder.mkdir(exist_ok=True)
    for number in range(size):
        bound = 0.5 + 0.4 * number / size
        (folder / f"r{number}.yaml").write_text(RULE.format(number=number, bound=bound), encoding="utf-8")


RULE = """id: bench_{number}
title: Two rises {number}
status: experimental
level: medium
description: Goodwill, then manipulation towards the same person.
why: a rule of the benchmark
falsepositives: [many]
misses: [many]
partition_by: [agent, target]
define:
  A: goodwill > {bound:.3f}
  B: manipulation > {bound:.3f}
pattern: A ANY{{0,5}}? B
within: 21 days
measures:
  strength: clip(mean(B.manipulation))
"""
DETECT = ("detect", "{input}", "--rules", "{folder}/input.rules", "--out", "{folder}/findings")
AUDIT = ("audit", "{input}", "--out", "{folder}/report", "--no-store")
CURVES = (
    Curve("one conversation", 40_000, one_conversation, AUDIT),
    Curve("targets of one agent", 32_000, targets, AUDIT),
    Curve("a long reply chain", 40_000, replies, AUDIT),
    Curve("one message (KB)", 30_000, long_message, AUDIT),
    Curve("rules", 500, rows_and_rules, DETECT),
    Curve("secrets", 32_000, secrets, (*AUDIT, "--redact")),
)  # fmt: skip


def measure(curve: Curve, size: int, folder: Path) -> Cost:
    """Run the command over an input of a size; raises CalledProcessError where it fails."""
    path = folder / "input.jsonl"
    curve.write(path, size)
    names = {"input": path, "folder": folder}
    command = [part.format(**names) for part in curve.command]
    process = subprocess.Popen([sys.executable, "-m", "undersong", *command], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)  # fmt: skip
    errors = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: {errors.decode()[-2000:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    with path.open("rb") as messages:
        allowed = TIMES * max(map(len, messages)) + BESIDE
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit, allowed)


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """The slope of log seconds over log size, by least squares."""
    points = [(math.log(size), math.log(max(each, 1e-3))) for size, each in zip(sizes, seconds, strict=True)]
    mean = [sum(axis) / len(points) for axis in zip(*points, strict=True)]
    return sum((x - mean[0]) * (y - mean[1]) for x, y in points) / sum((x - mean[0]) ** 2 for x, _ in points)


def draw(curve: Curve, largest: int) -> bool:
    """Measure and print a curve; whether it is straight and took no more memory than it may."""
    sizes = [max(1, int(largest * step)) for step in STEPS]
    with tempfile.TemporaryDirectory() as folder:
        start = measure(curve, 10 if curve.largest > 1000 else 1, Path(folder)).seconds
    costs = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            costs.append(measure(curve, size, Path(folder)))
    slope = exponent(sizes, [cost.seconds - start for cost in costs])
    print(f"{curve.name}: exponent {slope:.2f} (at most {MOST}), start {start:.1f} s", flush=True)
    for size, cost in zip(sizes, costs, strict=True):
        bar = "#" * round(40 * cost.seconds / max(each.seconds for each in costs))
        more = f" of {cost.allowed / 1e6:,.0f} allowed" if cost.memory > cost.allowed else ""
        print(f"  {size:>7,} {cost.seconds:>8.1f} CPU s {cost.memory / 1e6:>7,.0f} MB{more}  {bar}", flush=True)
    return slope <= MOST and all(cost.memory <= cost.allowed for cost in costs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="curves whose name has this in it")
    parser.add_argument("--share", type=float, default=1.0, help="of the largest sizes")
    chosen = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    curves = [curve for curve in CURVES if chosen.only in curve.name]
    sys.exit(0 if all([draw(curve, int(curve.largest * chosen.share)) for curve in curves]) else 1)


if __name__ == "__main__":
    main()
