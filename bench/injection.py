"""How often the injection flag fires: on attacks the cues were written with, on unseen ones, and on ordinary messages.

python bench/injection.py [--data DIR] [--ordinary 2000] [--seed 1]

Beside each figure stands that of a trivial flag: a message that says "ignore", "instruction", "score" or "system".
Intervals are Clopper-Pearson, 95 %.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import yaml

from undersong.judges.llm.injection import suspicious
from undersong.routing.budget import clopper_pearson

HERE = Path(__file__).parent
KNOWN = HERE.parent / "tests" / "judges" / "attacks.yaml"
UNSEEN = HERE / "unseen_attacks.yaml"
TRIVIAL = re.compile(r"\b(?:ignore|instructions?|scores?|system)\b", re.IGNORECASE)
SETS = ("spiral_turns.jsonl.gz", "sycon_stance.jsonl.gz", "diplomacy_lies.jsonl.gz", "moltbook_traits.jsonl.gz")


def texts(path: Path) -> Iterator[str]:
    """The messages of a labelled set."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield from (message["text"] for message in json.loads(line)["messages"])


def drawn(data: Path, count: int, seed: int) -> dict[str, list[str]]:
    """So many messages, the same number of each set."""
    dice = random.Random(seed)
    return {name: dice.sample(sorted(set(texts(data / name))), count // len(SETS)) for name in SETS}


def flag_line(name: str, messages: Sequence[str]) -> str:
    """One line: how many of these messages each flag fires on."""
    flags: tuple[Callable[[str], object], ...] = (suspicious, TRIVIAL.search)
    return f"{name:<28}" + "".join(
        f"{_share(sum(map(bool, map(flag, messages))), len(messages)):>36}" for flag in flags
    )


def _share(hits: int, count: int) -> str:
    low, high = clopper_pearson(hits, count)
    return f"{hits:,} of {count:,} = {hits / count:.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    parser.add_argument("--ordinary", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    attacks = [text for each in yaml.safe_load(KNOWN.read_text(encoding="utf-8")).values() for text in each]
    print(f"{'':<28}{'flag':>36}{'trivial flag':>36}")
    print(flag_line("attacks, known", attacks))
    print(flag_line("attacks, unseen", yaml.safe_load(UNSEEN.read_text(encoding="utf-8"))["attacks"]))
    if options.data is None:
        sys.exit("ordinary messages: give --data DIR or set UNDERSONG_DATA")
    ordinary = drawn(Path(options.data), options.ordinary, options.seed)
    print(flag_line("ordinary messages", [text for each in ordinary.values() for text in each]))
    for name, messages in ordinary.items():
        print(flag_line(f"  {name.partition('.')[0]}", messages))


if __name__ == "__main__":
    main()
