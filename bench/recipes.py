#!/usr/bin/env python3
"""Each Cypher recipe against our literal rule on planted worlds, over real Bolt: the same findings, one by one.

usage: recipes.py --data DIR [--store bolt://HOST:PORT]
DIR holds folders with ``blind.jsonl.gz``. Without --store a server is started for the run (Java 17 and Maven). The
database is filled with the worlds, each as a judge of its own. Prints findings by rule and by recipe; exit 1 where
they differ.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import msgspec

from undersong.models import Row
from undersong.patterns.catalog import all_rules
from undersong.patterns.detect import detect
from undersong.rows.jsonl import row_of
from undersong.stores.neo4j import GraphStore

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.neo4j.serve import serving

Found = set[tuple[str, tuple[str, ...]]]


def worlds(data: Path) -> Iterator[tuple[str, list[Row]]]:
    """Each world with its rows; the world's name stands for a judge, so that worlds stay apart."""
    for path in sorted(data.glob("*/blind.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                world = json.loads(line)
                name = f"{path.parent.name}/{world['world_id']}"
                rows = (row_of(message, place) for place, message in enumerate(world["messages"]))
                yield name, [msgspec.structs.replace(row, judge="planted", judge_hash=name) for row in rows]


def main() -> None:
    """Compare every recipe on every world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--store")
    options = parser.parse_args()
    literal = [rule for rule in all_rules() if rule.id.endswith("_literal")]
    matches, differing, rows_in_all = Counter[str](), Counter[str](), 0
    with nullcontext(options.store) if options.store else serving() as address, GraphStore(address) as graph:
        for name, rows in worlds(options.data):
            rows_in_all += len(rows)
            graph.append(rows)
            for rule in literal:
                ours: Found = {(f.agent, f.message_ids) for f in detect(rows, [rule]).findings}
                theirs: Found = {(r["agent"], tuple(r["message_ids"])) for r in graph.run_recipe(rule.id, name)}
                matches[rule.id] += len(ours)
                differing[rule.id] += len(ours ^ theirs)
    print(f"{rows_in_all} rows\n{'rule':<28} findings  differing")
    for rule in literal:
        print(f"{rule.id:<28} {matches[rule.id]:>8}  {differing[rule.id]:>9}")
    sys.exit(1 if any(differing.values()) else 0)


if __name__ == "__main__":
    main()
