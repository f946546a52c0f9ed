"""How long the four paths through the code are: ``python bench/paths.py [CHECKOUT]``.

A file to a report, a live message to a finding, rows and rules to matches, a question to a judge and back. Of each it
prints how many modules of undersong it runs, how many functions, and how deep calls go (frames of undersong alone).
The first run after a change, and every one under PYTHONDONTWRITEBYTECODE, also counts the compiling of the rules.
CHECKOUT is the folder whose ``undersong`` is measured; without it the one that this program stands in.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
ROWS = [
    {"id": f"m{i}", "conversation": "c", "position": i, "time": f"2026-05-0{i + 1}T10:00:00Z", "agent": "kira",
     "target": "bo", "role": "agent", "state": "scored", "tier": "deep", "judge": "other",
     "traits": {"manipulation": 0.9 if i == 4 else 0.1, "compassion": 0.1 if i == 4 else 0.9}}
    for i in range(5)
]  # fmt: skip


class Profile:
    """Counts what runs below a folder, in every thread; what an import runs is no part of the path."""

    def __init__(self, package: Path) -> None:
        self.package = f"{package}{os.sep}"
        self.functions: set[Any] = set()
        self.deepest = 0
        self._depth = threading.local()

    def __call__(self, frame: Any, event: str, _argument: Any) -> None:
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(self.package):
            return
        step = 1 if event == "call" else -1
        importing = getattr(self._depth, "importing", 0)
        if importing or frame.f_code.co_name == "<module>":
            self._depth.importing = max(importing + step, 0)
            return
        depth = getattr(self._depth, "now", 0) + step
        self._depth.now = max(depth, 0)
        self.deepest = max(self.deepest, depth)
        self.functions.add(frame.f_code)

    def run(self, work: Callable[[], object]) -> str:
        threading.setprofile(self)
        sys.setprofile(self)
        with suppress(SystemExit):  # commands end with it
            work()
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        modules = {code.co_filename for code in self.functions}
        return f"{len(modules):>8}{len(self.functions):>11}{self.deepest:>7}"


def a_file_to_a_report() -> Callable[[], object]:
    """The library's audit of the shipped samples."""
    from undersong import audit

    return lambda: audit([str(HERE / "samples")])


def a_live_message_to_a_finding() -> Callable[[], object]:
    """One ``SyncMonitor.observe``, after a first one that has loaded what is loaded once."""
    from undersong import SyncMonitor

    monitor = SyncMonitor("live.db")
    message = {
        "id": "m0",
        "conversation": "c",
        "author": "kira",
        "role": "agent",
        "text": "You are wonderful, trust me.",
    }
    monitor.observe(message)
    return lambda: monitor.observe({**message, "id": "m1", "text": "Nobody else needs to know. Act now!"})


def rows_to_matches() -> Callable[[], object]:
    """``detect_patterns`` over rows of a love bomber."""
    from undersong import detect_patterns

    return lambda: detect_patterns(ROWS)


def a_question_to_a_judge_and_back() -> Callable[[], object]:
    """The command ``evaluate`` over one message with a judge on this machine; the server is not counted."""
    sys.path.insert(0, str(HERE / "bench"))
    from judge_server import JudgeServer

    from undersong.cli import cli

    server, loop = JudgeServer(), asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    port = asyncio.run_coroutine_threadsafe(server.start(), loop).result()
    Path("one.jsonl").write_text(json.dumps({"id": "m", "author": "kira", "text": "Act now!"}) + "\n")
    os.environ["UNDERSONG_JUDGE_KEY"] = os.environ["OPENAI_API_KEY"] = "sk-local"
    judge = f"openai:m@http://127.0.0.1:{port}/v1"
    command = ["evaluate", "one.jsonl", "--judge", judge, "--out", "rows.jsonl", "--budget-share", "1"]
    return lambda: cli(command, standalone_mode=False)


PATHS = {
    "a file to a report": a_file_to_a_report,
    "a live message to a finding": a_live_message_to_a_finding,
    "rows to matches": rows_to_matches,
    "a question to a judge": a_question_to_a_judge_and_back,
}


def main() -> None:
    """Measure each path in a process and a folder of its own."""
    checkout = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE
    if len(sys.argv) > 2:
        import undersong

        package = Path(undersong.__file__).parent
        work = PATHS[sys.argv[2]]()
        print(Profile(package).run(work), file=sys.stderr)
        os._exit(0)  # threads of monitors and servers are still there
    print(f"{'':30}{'modules':>8}{'functions':>11}{'depth':>7}")
    for name in PATHS:
        with tempfile.TemporaryDirectory(prefix="undersong-paths-") as folder:
            environment = os.environ | {"PYTHONPATH": str(checkout)}
            command = [sys.executable, "-P", str(Path(__file__).resolve()), str(checkout), name]
            ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            print(f"{name:30}{ran.stderr.rstrip().splitlines()[-1] if ran.stderr.strip() else 'nothing'}")


if __name__ == "__main__":
    main()
