"""CPU seconds of an audit of many coding sessions: real ones, copied under ids of their own.

python -m bench.claims_speed [--data DIR] [--messages 24000] [--runs 3]

DIR, or UNDERSONG_DATA, holds ``sessions/real_dev.jsonl.gz``. Each run is ``undersong audit --no-store`` in a process
of its own; user and system time of it and its children count, and the least of the runs is printed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

GOAL = 40  # CPU seconds


def write_copies(source: Path, target: Path, messages: int) -> int:
    """Sessions of ``source``, again and again under new ids, until there are that many messages; how many there are."""
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        sessions = [json.loads(line) for line in lines]
    written = copy = 0
    with target.open("w", encoding="utf-8") as out:
        while written < messages:
            for session in sessions:
                if written >= messages:
                    break
                own = session["session"] | {"id": f"{copy}-{session['session']['id']}"}
                out.write(json.dumps(session | {"session": own}, ensure_ascii=False) + "\n")
                written += len(session["turns"])
            copy += 1
    return written


def cpu_seconds(path: Path, folder: Path) -> float:
    """User and system seconds of one audit."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "undersong", "audit", str(path), "--no-store", "--out", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    parser.add_argument("--messages", type=int, default=24_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    if options.data is None:
        sys.exit("give --data DIR or set UNDERSONG_DATA")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "sessions.jsonl"
        written = write_copies(Path(options.data) / "sessions" / "real_dev.jsonl.gz", path, options.messages)
        print(f"{written:,} messages, {path.stat().st_size / 1e6:.0f} MB")
        runs = [cpu_seconds(path, Path(name) / f"report{number}") for number in range(options.runs)]
    print(f"CPU seconds of `undersong audit`: least {min(runs):.1f} of {[round(run, 1) for run in runs]}  goal {GOAL}")


if __name__ == "__main__":
    main()
