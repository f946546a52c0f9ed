"""Run every published figure again: `make.py numbers` writes docs/numbers.md, `--check` looks for what got worse.

    python -m bench.figures [--only WORD] [--check] [--out FILE]

Each entry of ``figures.yaml`` is a command, run as it stands there; the page has its lines verbatim, with the machine,
the date and the seconds of CPU. An entry that needs labelled data which are not at hand is *not run*, and says so; one
whose program fails ends with its message and makes this program end with 1, as does a bound that does not hold.
With ``--only`` the other entries of the page stand as they were, each with its own commit and day.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import yaml

import undersong

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "numbers.md"
TABLE = Path(__file__).with_name("figures.yaml")
MOST_LINES = 48  # of an output on the page
HEAD = """# The numbers

For those who want to know what a figure in these documents rests on. Each was printed by the command above it, at the
commit and on the day below it; `python3 make.py numbers` runs all of them again, and with `--only WORD` those with a
word in their title; a nightly run fails where one got worse.
"""


class Outcome(NamedTuple):
    """What came of an entry: ``state`` is ``ok``, ``failed`` or ``not run``; ``worse`` are bounds that do not hold."""

    entry: dict[str, Any]
    state: str
    lines: tuple[str, ...]
    seconds: float
    worse: tuple[str, ...]


def outcome(entry: dict[str, Any]) -> Outcome:
    """Run an entry."""
    if entry.get("needs") == "data" and not os.environ.get("UNDERSONG_DATA"):
        return Outcome(entry, "not run", ("the labelled data are not at hand (UNDERSONG_DATA)",), 0.0, ())
    words = shlex.split(entry["command"])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run([sys.executable, *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    lines = tuple(line for line in ran.stdout.splitlines() if re.search(entry["show"], line))
    if ran.returncode:
        return Outcome(entry, "failed", tuple(ran.stderr.strip().splitlines()[-3:]), seconds, ())
    return Outcome(entry, "ok", lines[:MOST_LINES], seconds, tuple(worse(entry, ran.stdout)))


def worse(entry: dict[str, Any], output: str) -> Iterator[str]:
    """The bounds of an entry that its output does not hold, in words; a figure that is not printed does not hold."""
    for bound in entry.get("bounds", ()):
        printed = re.findall(bound["match"], output, re.MULTILINE)
        if not printed:
            yield f"{entry['title']}: {bound['name']} was not printed"
            continue
        value = float(printed[-1])
        if value < bound.get("least", value) or value > bound.get("most", value):
            limit = f"at least {bound['least']}" if "least" in bound else f"at most {bound['most']}"
            yield f"{entry['title']}: {bound['name']} is {value:g}, {limit} is wanted"


def sections(outcomes: Iterable[Outcome], now: datetime) -> dict[str, str]:
    """Each entry in Markdown, by its title."""
    git = ("git", "rev-parse", "--short", "HEAD")
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True)
    system = (
        f"{os.cpu_count()} processors, {platform.machine()}, {platform.system()}, Python {platform.python_version()}"
    )
    where = f"undersong {undersong.__version__}, commit {commit.stdout.strip()}, {now:%Y-%m-%d}; {system}."
    texts = {}
    for one in outcomes:
        text = f"## {one.entry['title']}\n\n{one.entry['says']}\n\n```sh\n{one.entry['command']}\n```\n\n"
        if one.state == "ok":
            text += "```text\n" + "\n".join(one.lines) + f"\n```\n\n{one.seconds:.0f} s of CPU; {where}\n"
        else:
            text += f"**{one.state}**: {' '.join(one.lines)}\n"
        texts[one.entry["title"]] = text
    return texts


def page(entries: Iterable[dict[str, Any]], fresh: dict[str, str], old: str = "") -> str:
    """The page in Markdown: fresh sections, and of an old page those of the other entries."""
    standing = {text.partition("\n")[0]: "## " + text.strip() + "\n" for text in old.split("\n## ")[1:]}
    texts = (fresh.get(entry["title"]) or standing.get(entry["title"], "") for entry in entries)
    return "\n".join([HEAD, *filter(None, texts)])


def main() -> None:
    """Run all, or those whose title has a word; write the page, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only entries whose title has this word")
    parser.add_argument("--check", action="store_true", help="write build/numbers.md instead; end with 1 where worse")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    entries = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    outcomes = []
    for entry in (one for one in entries if chosen.only in one["title"]):
        outcomes.append(outcome(entry))
        print(f"{outcomes[-1].state:<8} {outcomes[-1].seconds:6.0f} s  {entry['title']}", flush=True)
    target = chosen.out or (ROOT / "build" / "numbers.md" if chosen.check else PAGE)
    target.parent.mkdir(exist_ok=True)
    old = PAGE.read_text(encoding="utf-8") if chosen.only and not chosen.check else ""
    target.write_text(page(entries, sections(outcomes, datetime.now(UTC)), old), encoding="utf-8")
    faults = [fault for one in outcomes for fault in one.worse]
    faults += [f"{one.entry['title']}: {' '.join(one.lines)}" for one in outcomes if one.state == "failed"]
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
