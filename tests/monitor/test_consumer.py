"""The consumer of docs/recipes/live-service.md, over a pipe that brings messages at least once, killed on its way."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import POSTGRES
from tests.monitor.test_monitor import CYCLE, make_message
from undersong.models import encode
from undersong.monitor import SyncMonitor
from undersong.stores.protocol import Store, open_store

PAGE = Path(__file__).parent.parent.parent / "docs" / "recipes" / "live-service.md"
FROM_A_PIPE = """
import sys
from types import SimpleNamespace
taken = []
def records():
    for line in sys.stdin.buffer:
        offset, _, value = line.partition(b" ")
        taken.append(int(offset))
        yield SimpleNamespace(value=value)
consume(records(), lambda: print("committed", taken[-1], flush=True), sys.argv[1])
"""
AGAIN = 3  # committed records that come again


def messages() -> list[bytes]:
    """Several conversations in turn, and a record that is no message."""
    values = [encode(make_message(place, mood)) for place, mood in enumerate(CYCLE * 3)]
    others = [
        json.dumps({"id": f"o{n}", "conversation": f"other{n % 2}", "author": "ab"[n % 2], "text": f"Act now, {n}!",
                    "time": f"2026-01-01T00:00:{n:02}Z"}).encode()
        for n in range(len(values))
    ]  # fmt: skip
    return [b"no message", *(value for pair in zip(values, others, strict=True) for value in pair)]


def committed(address: str, values: list[bytes], first: int, most: int) -> int:
    """Let a consumer have the records from ``first`` on and kill it after ``most`` commits; the last one of these."""
    program = next(re.finditer(r"```python\n([^`]*def consume[^`]*)```", PAGE.read_text(encoding="utf-8")))[1]
    command = [sys.executable, "-c", program + FROM_A_PIPE, address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as consumer:
        assert consumer.stdin is not None
        assert consumer.stdout is not None
        lines = [b"%d %b\n" % (offset, values[offset]) for offset in range(first, len(values))]
        consumer.stdin.write(b"".join(lines))
        consumer.stdin.close()
        last, commits = first - 1, 0
        for line in consumer.stdout:
            if line.startswith(b"committed"):
                last, commits = int(line.split()[1]), commits + 1
            if commits == most:
                consumer.kill()
                break
    return last


def content(store: Store) -> tuple[object, ...]:
    judges = [judge.judge_hash for judge in store.judges()]
    rows = [store.thread(name, judge) for name in store.threads() for judge in judges]
    return sorted(store.conversations()), rows, list(store.findings()), store.counts()


def test_a_killed_consumer_loses_nothing_and_what_comes_again_changes_nothing(tmp_path: Path) -> None:
    address = str(tmp_path / "live.db")
    if POSTGRES:
        from tests.postgres.databases import emptied

        address = emptied()
    values, last = messages(), -1
    for most in (5, 9, len(values) * 2):
        last = committed(address, values, max(0, last + 1 - AGAIN), most)
    assert last == len(values) - 1
    with SyncMonitor(str(tmp_path / "whole.db")) as monitor:
        for value in values[1:]:
            monitor.observe(json.loads(value))
    with open_store(address, read_only=True) as store, open_store(tmp_path / "whole.db", read_only=True) as whole:
        assert content(store) == content(whole)
