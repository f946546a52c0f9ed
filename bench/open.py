#!/usr/bin/env python3
"""Audit a long coding session with tool calls, or the development conversations, and open the report in Chromium.

usage: open.py [--turns 5000] [--seed 1] [--runs 5] [--data DIR]
With --data (or UNDERSONG_DATA) the input is the 60 conversations with an AI, else a generated session of that length,
each file of it 120 lines and each test log 40. Prints the CPU time and the peak memory of the audit beside those of
reading the same file alone, the sizes of the report, and how long the browser takes from the address to the load event,
beside an empty page in the same browser.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from coding import session
from corpora import SETS, development

READ = "import sys; from undersong.formats.ingest import read; print(sum(1 for _ in read(sys.argv[1])))"


HELPERS = "".join(
    f"\n\ndef helper_{n}(order):\n    return [line for line in order if line.kind == {n}]\n" for n in range(30)
)
LOG = "".join(f"tests/test_till.py::test_total_of_order_{n} PASSED [{n * 2:3d}%]\n" for n in range(40))


def long_session(out: Path, turns: int, seed: int) -> None:
    """The session of ``bench/coding.py`` with files and logs as long as real ones."""
    with out.open("w", encoding="utf-8") as lines:
        for line, _ in session(turns, seed):
            for block in line["message"]["content"]:
                if isinstance(block, dict) and block["type"] == "tool_use":
                    block["input"]["content"] += HELPERS
                elif isinstance(block, dict) and block["type"] == "tool_result":
                    block["content"] = LOG + block["content"]
            lines.write(json.dumps(line) + "\n")


def run(*command: str) -> tuple[float, int, str]:
    """CPU seconds of a command, the peak memory of any command so far in MiB, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = subprocess.run([sys.executable, *command], check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, after.ru_maxrss // 1024, printed


def opened(page: Path, runs: int) -> tuple[float, int]:
    """The shortest time to the load event in seconds, and how many elements the page has."""
    from playwright.sync_api import sync_playwright

    executable = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        times, elements = [], 0
        for _ in range(runs):
            tab = browser.new_page()
            began = time.perf_counter()
            tab.goto(page.as_uri(), wait_until="load")
            times.append(time.perf_counter() - began)
            elements = tab.evaluate("document.querySelectorAll('*').length")
            tab.close()
        browser.close()
    return min(times), elements


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, report, empty = folder / "session.jsonl", folder / "report", folder / "empty.html"
        if options.data:
            turns = development(Path(options.data), source, SETS[:1])
        else:
            turns = options.turns
            long_session(source, turns, options.seed)
        empty.write_text("<!doctype html><title>empty</title>")
        reading, memory, _ = run("-c", READ, str(source))
        print(f"{turns} turns, {source.stat().st_size / 1e6:.1f} MB")
        print(f"read alone   {reading:6.1f} CPU s {memory:6d} MiB")
        audit, memory, printed = run("-m", "undersong", "audit", str(source), "--out", str(report))
        print(f"audit        {audit:6.1f} CPU s {memory:6d} MiB   ({audit / reading:.1f} times reading)")
        checking, memory, _ = run("-m", "undersong", "verify", str(report), str(source))
        print(f"verify       {checking:6.1f} CPU s {memory:6d} MiB   ({checking / audit:.2f} times the audit)")
        for path in sorted(report.iterdir()):
            print(f"  {path.stat().st_size / 1e6:8.2f} MB  {path.name}")
        nothing, _ = opened(empty, options.runs)
        for page in sorted(report.glob("*.html")):
            seconds, elements = opened(page, options.runs)
            print(f"{page.name} opens in {seconds:.2f} s ({elements} elements), an empty page in {nothing:.2f} s")
        print(printed)


if __name__ == "__main__":
    main()
