"""CPU seconds of `undersong claims` and `undersong audit` over many coding sessions: real ones, copied with new ids.

python -m bench.claims_speed [--data DIR] [--messages 24000] [--runs 3] [--only claims|audit]

DIR, or UNDERSONG_DATA, holds ``sessions/real_dev.jsonl.gz``. Each run is a process of its own; user and system time of
it and its children count, and the least of the runs is printed, because the machine may be shared.
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


def cpu_seconds(arguments: list[str]) -> float:
    """User and system seconds of one command; its exit code may be that of a contradicted claim."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "undersong", *arguments], check=False, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    parser.add_argument("--messages", type=int, default=24_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", action="append", choices=("claims", "audit"), help="measure only this command")
    options = parser.parse_args()
    if options.data is None:
        sys.exit("give --data DIR or set UNDERSONG_DATA")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "sessions.jsonl"
        written = write_copies(Path(options.data) / "sessions" / "real_dev.jsonl.gz", path, options.messages)
        print(f"{written:,} messages, {path.stat().st_size / 1e6:.0f} MB", flush=True)
        commands = {
            "claims": ["claims", str(path), "--json"],
            "audit": ["audit", str(path), "--no-store", "--out", str(Path(name) / "report")],
        }
        for command in options.only or commands:
            runs = [cpu_seconds(commands[command]) for _ in range(options.runs)]
            shown = ", ".join(f"{run:.1f}" for run in runs)
            print(f"CPU seconds of `undersong {command}`: least {min(runs):.1f} of {shown}  goal {GOAL}", flush=True)


if __name__ == "__main__":
    main()
