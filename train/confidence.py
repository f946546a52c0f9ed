"""Count what readings of sequences are worth: ``python -m train.confidence [--set bench/talks/dev]``.

Reads ``truth.jsonl`` and ``sequences.jsonl`` of a set of conversations and writes
``undersong/data/rules/confidence.yaml``. Same input, same bytes.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from bench.talks.score import one_name, read_lines, speakers
from undersong.datafiles.yaml_loader import RULES
from undersong.patterns.significance.confidence import FILE, ReadingCounts

HEAD = """\
# How often a reader of whole sequences was right, by the certainty with which it named a shape (1 a guess to 4 beyond
# doubt). Counted over the speakers with three messages and more of bench/talks/{name} by `python -m train.confidence`:
# conversations that language models wrote for this project and language models read, see docs/benchmark.md. A shape
# named of an innocent speaker, and another shape than the planted one, count as false.
"""


def counted(folder: Path) -> ReadingCounts:
    """What the readers of a set said of its speakers, by certainty."""
    truth = {row["conversation"]: row for row in read_lines(folder / "truth.jsonl")}
    people = speakers(read_lines(folder / "messages.jsonl"))
    planted = {(name, row["agent"]) for name, row in truth.items() if row["kind"] == "planted"}
    right, wrong = Counter[int](), Counter[int]()
    for answer in read_lines(folder / "sequences.jsonl"):
        place = answer["conversation"], answer["agent"]
        for shape in answer["shapes"][:1]:
            true = place in planted and one_name(shape["shape"]) == one_name(truth[place[0]]["shape"])
            (right if true else wrong)[shape["certainty"]] += 1
    levels = range(1, 5)
    return ReadingCounts(
        planted=len(planted & people.keys()),
        innocent=len(people.keys() - planted),
        right=tuple(right[level] for level in levels),
        wrong=tuple(wrong[level] for level in levels),
    )


def main() -> None:
    """Count and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", type=Path, default=Path("bench/talks/dev"))
    folder = parser.parse_args().set
    counts = counted(folder)
    lines = [f"planted: {counts.planted}", f"innocent: {counts.innocent}"]
    lines += [f"{name}: {list(getattr(counts, name))}  # with certainty 1, 2, 3, 4" for name in ("right", "wrong")]
    (RULES / FILE).write_text(HEAD.format(name=folder.name) + "\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
