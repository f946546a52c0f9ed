"""Writes the generated corpora and the monitor's worlds: ``make_corpus.py FOLDER MESSAGES WORLDS``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from names import load

AGENTS = 12  # messages an agent writes on average, as in bench/corpus.py


def main() -> None:
    """A corpus of threads, a smaller one of long messages, and worlds in the order in which they arrive."""
    folder, messages, worlds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as lines:
        for message in load("corpus").messages(messages, messages // AGENTS, 1):
            lines.write(json.dumps(message) + "\n")
    load("corpora").generated(messages // 4, 1, folder / "long.jsonl")
    made = load("monitor worlds")
    (folder / "worlds").mkdir()
    for seed in range(worlds):
        arriving = made.arrivals(seed, made.world(seed))
        (folder / "worlds" / f"{seed:03}.json").write_text(json.dumps(arriving), encoding="utf-8")


if __name__ == "__main__":
    main()
