"""How much faster two processes are than one, and whether they write the same bytes.

python bench/processes.py [--messages 20000] [--only scan,audit,detect,sweep] [--runs 3]

Each command runs over the same messages with --processes 1 and 2, by turns. Printed are the quickest wall time of each,
the CPU time of all its processes, their ratio, and the load of the machine: where others work on its cores the ratio of
wall times says little. Where the CPU time of the busiest process is the whole wall time, it is the one to mend.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
from everything import write

WANTED = 1.7  # times as fast
TICKS = os.sysconf("SC_CLK_TCK")
COMMANDS = {
    "scan": ("scan", "{folder}/input.jsonl", "--out", "{folder}/out"),
    "audit": ("audit", "{folder}/input.jsonl", "--out", "{folder}/report", "--store", "{folder}/new.db"),
    "detect": ("detect", "{folder}/levels.jsonl", "--out", "{folder}/out"),
    "sweep": ("sweep", "--store", "{folder}/store.db", "--again", "--json"),
}


class Cost(NamedTuple):
    """Wall seconds, CPU seconds of all processes, and of the busiest."""

    wall: float
    cpu: float
    busiest: float


def run(arguments: list[str], output: Path) -> Cost:
    """Run undersong and follow its processes; raises SystemExit where it fails."""
    environment = os.environ | {"BENCH_RUN": str(output)}  # children inherit it, whoever started them
    before = set(numbers())
    with output.open("wb") as file:
        started = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "undersong", *arguments], stdout=file, env=environment,
                                   stderr=subprocess.PIPE)  # fmt: skip
        seconds: dict[int, float] = {}
        while process.poll() is None:
            seconds |= {number: used for number in set(numbers()) - before if (used := cpu(number, output)) is not None}
            time.sleep(0.05)
        wall = time.perf_counter() - started
    if process.returncode not in (0, 1):
        raise SystemExit(f"{arguments}: {process.stderr.read().decode()[-2000:] if process.stderr else ''}")
    return Cost(wall, sum(seconds.values()), max(seconds.values()))


def numbers() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def cpu(number: int, output: Path) -> float | None:
    """CPU seconds so far of a process of this run; None of another."""
    try:
        if f"BENCH_RUN={output}\0".encode() not in Path(f"/proc/{number}/environ").read_bytes():
            return None
        fields = Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (OSError, PermissionError):
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS


def prepare(folder: Path, messages: int, names: list[str]) -> None:
    """The messages; for detect and sweep their scores, taken for levels, as an LLM judge would give."""
    write(folder / "input.jsonl", messages)
    if not {"detect", "sweep"} & set(names):
        return
    run(["evaluate", str(folder / "input.jsonl"), "--out", str(folder / "rows.jsonl")], folder / "printed")
    with (folder / "rows.jsonl").open("rb") as rows, (folder / "levels.jsonl").open("w", encoding="utf-8") as levels:
        for line in rows:
            row = json.loads(line) | {"domain": None, "scale": "level", "judge": "bench", "judge_hash": "b" * 64}
            levels.write(json.dumps(row) + "\n")
    run(["store", "import", str(folder / "levels.jsonl"), "--store", str(folder / "store.db")], folder / "printed")


def result(folder: Path, name: str, output: Path) -> dict[str, bytes]:
    """What a command wrote, without the moment and the length of the run."""
    if name == "audit":
        return {each.name: each.read_bytes() for each in (folder / "report").iterdir() if each.name != "run.json"}
    return {name: output.read_bytes() if name == "sweep" else (folder / "out").read_bytes()}


def compare(folder: Path, name: str, runs: int) -> bool:
    """Run a command both ways and print a line; whether the results are the same and two are fast enough."""
    costs: dict[int, list[Cost]] = {1: [], 2: []}
    results = []
    for processes in [1, 2] * runs:
        working = folder / f"run-{processes}-{len(results)}"
        working.mkdir()
        for path in folder.iterdir():
            if path.is_file():
                shutil.copy(path, working / path.name)
        arguments = [part.format(folder=working) for part in COMMANDS[name]]
        costs[processes].append(run([*arguments, "--processes", str(processes)], working / "printed"))
        results.append(result(working, name, working / "printed"))
        shutil.rmtree(working)
    one, two = min(costs[1]), min(costs[2])
    same = all(each == results[0] for each in results)
    ratio = one.wall / two.wall
    print(f"{name:8} {one.wall:>7.1f} s {one.cpu:>7.1f} CPU s | {two.wall:>7.1f} s {two.cpu:>7.1f} CPU s, "
          f"busiest {two.busiest:.1f} | {ratio:.2f} times {'the same bytes' if same else 'OTHER BYTES'}, "
          f"load {os.getloadavg()[0]:.1f}", flush=True)  # fmt: skip
    return same and ratio >= WANTED


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--only", default=",".join(COMMANDS))
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    names = options.only.split(",")
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), options.messages, names)
        print(f"{options.messages:,} messages, {os.cpu_count()} cores; one process | two")
        return 0 if all([compare(Path(folder), name, options.runs) for name in names]) else 1


if __name__ == "__main__":
    sys.exit(main())
