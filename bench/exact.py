"""Does the engine find what the reference finds: ``python bench/exact.py [--cases N] [--first SEED] [--large]``.

Random rules (overlapping conditions, every quantifier and skip mode, windows, having, keep) over random rows (holes,
public rows, ties, rows without times). ``--large`` walks small tables in the way of large ones, compiled where numba
is installed. Prints how many cases differ, how many matches were compared, and how many rules went to the reference.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.patterns.vectorized.worlds import plain_result, random_rows, random_rule
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.reference.search import search
from undersong.patterns.vectorized import jit
from undersong.patterns.vectorized.exact_sum import NotVectorizable
from undersong.patterns.vectorized.row_source import TimelineSearch


def main() -> None:
    """Compare case after case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    if arguments.large:
        jit.ENOUGH = 0
    different, matches, left = 0, 0, 0
    for seed in range(arguments.first, arguments.first + arguments.cases):
        dice = random.Random(seed)
        rule, sequences = random_rule(dice), timelines(random_rows(dice))
        searches, expected = TimelineSearch(sequences, few=0), plain_result(search(rule, sequences))
        try:
            searches.run.find(rule)
        except (NotVectorizable, FloatingPointError):
            left += 1
        matches += len(expected[0])
        if plain_result(searches.search(rule)) != expected:
            different += 1
            print(f"seed {seed} differs: {rule.file}")
    print(f"{arguments.cases} cases, {matches} matches, {different} differ; {left} rules were left to the reference")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
