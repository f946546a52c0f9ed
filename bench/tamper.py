#!/usr/bin/env python3
"""Change single bytes of a report, its inputs and its pattern files, and count how often `verify` names the change.

usage: tamper.py [CHANGES=500] [--seed 1]
An audit of a small corpus of three files, by a copy of the shipped patterns. Every change is undone before the next.
A change counts as named where a discrepancy carries the name of the file that was changed, or of the rule in it.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from coding import write_session
from corpora import generated

from undersong.core.manifest import NAME, RUN
from undersong.patterns.catalog import FOLDER, load_rules
from undersong.pipeline.audit import audit
from undersong.pipeline.options import Options
from undersong.report.writer import write
from undersong.stores.sqlite import temporary_store
from undersong.verify import Discrepancy, verify

SHARES = {"report": 5, "inputs": 3, "rules": 2}  # of ten changes


class Bench:
    """A report with everything that it was made from, in one folder."""

    def __init__(self, folder: Path, *, rules: bool = True) -> None:
        """``rules`` False: with the shipped patterns, which are then not changed."""
        self.inputs, self.report = folder / "inputs", folder / "report"
        (self.inputs / "chats").mkdir(parents=True)
        generated(60, 1, self.inputs / "forum.jsonl", length=20, agents=4)
        generated(20, 2, self.inputs / "chats" / "forum.jsonl", length=20, agents=2)
        write_session(self.inputs / "session.jsonl", 40, 1)
        (self.inputs / "read me.html").write_text("not an input")
        self.rules: Path | None = None
        if rules:
            self.rules = folder / "rules"
            shutil.copytree(FOLDER, self.rules)
        patterns = load_rules(None if self.rules is None else [self.rules])
        with temporary_store() as store:
            case, rows = audit(self.inputs, store, Options(rules=patterns))
            look = {name.conversation: store.conversation(name.conversation)[0] for name in case.sessions}
            write(case, rows, self.report, run={"seconds": 1}, rules=patterns, conversations=look.get)
        used = {f"{rule.id}.yaml" for rule in patterns}
        self.targets = {
            "report": [path for path in sorted(self.report.iterdir()) if path.name != RUN and path.stat().st_size],
            "inputs": sorted(path for path in self.inputs.rglob("*.jsonl")),
            "rules": sorted(path for path in self.rules.iterdir() if path.name in used) if self.rules else [],
        }
        self.kinds = [kind for kind, share in SHARES.items() for _ in range(share) if self.targets[kind]]

    def verify(self) -> tuple[Discrepancy, ...]:
        """What verify says of all of it."""
        return verify(self.report, [self.inputs], rules=[self.rules] if self.rules else None)

    def change(self, dice: random.Random) -> tuple[Path, int, bool]:
        """Change one byte of one file, verify, and change it back: the file, the place, and whether it was named."""
        path = dice.choice(self.targets[dice.choice(self.kinds)])
        before = path.read_bytes()
        place = dice.randrange(len(before))
        after = bytearray(before)
        after[place] ^= dice.randrange(1, 256)
        path.write_bytes(after)
        try:
            named = any(path.name in each.where or path.stem in each.where for each in self.verify())
        finally:
            path.write_bytes(before)
        return path, place, named


def main() -> None:
    """Print how many changes were named, by kind of file; exit 1 if one was not, or if an untouched report is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("changes", type=int, nargs="?", default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        alarms = bench.verify()
        print(f"untouched: {len(alarms)} discrepancies", *alarms, sep="\n  ")
        dice, made, missed = random.Random(options.seed), Counter[str](), 0
        began = time.process_time()
        for _ in range(options.changes):
            path, place, named = bench.change(dice)
            made[path.relative_to(bench.report.parent).parts[0]] += 1
            if not named:
                missed += 1
                print(f"byte {place} of {path.name} went unnoticed")
        print(f"{options.changes} changes ({', '.join(f'{count} in {kind}' for kind, count in sorted(made.items()))}):")
        print(f"{options.changes - missed} named, {missed} not; {time.process_time() - began:.0f} CPU s")
        untouched = bench.verify()
        print(f"untouched again: {len(untouched)} discrepancies; {NAME} {(bench.report / NAME).stat().st_size} bytes")
    sys.exit(1 if missed or alarms or untouched else 0)


if __name__ == "__main__":
    main()
