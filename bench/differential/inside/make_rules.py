"""Writes FOLDER/000/rules/*.yaml and rows.jsonl at random: ``make_rules.py FOLDER FIRST END RULES WORLDS``."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import msgspec
import yaml

sys.path.insert(0, str(Path(__file__).parent))
from names import load

worlds = load("random rules and rows")


def rule_file(seed: int) -> dict[str, Any]:
    """The keys of a random rule that compiles."""
    document, drawn = worlds.document, list[dict[str, Any]]()

    def noting(keys: dict[str, Any]) -> Any:
        drawn.append(keys)
        return document(keys)

    worlds.document = noting
    try:
        worlds.random_rule(random.Random(seed))
    finally:
        worlds.document = document
    return {**drawn[-1], "id": f"random_{seed}", "title": f"Random {seed}"}


def rows(seed: int) -> list[dict[str, Any]]:
    """The rows of a random world, under names of its own."""
    made = []
    for row in worlds.random_rows(random.Random(seed)):
        keys = json.loads(msgspec.json.encode(row))
        for name in ("id", "agent", "target", "conversation"):
            if keys.get(name) is not None:
                keys[name] = f"w{seed}-{keys[name]}"
        made.append(keys)
    return made


def main() -> None:
    """Every batch."""
    folder, first, end, rules, many = Path(sys.argv[1]), *map(int, sys.argv[2:6])
    for batch in range(first, end):
        place = folder / f"{batch:03}"
        (place / "rules").mkdir(parents=True)
        for seed in range(batch * rules, (batch + 1) * rules):
            text = yaml.safe_dump(rule_file(seed), sort_keys=False)
            (place / "rules" / f"random_{seed}.yaml").write_text(text, encoding="utf-8")
        with (place / "rows.jsonl").open("w", encoding="utf-8") as out:
            for seed in range(batch * many, (batch + 1) * many):
                out.writelines(json.dumps(row) + "\n" for row in rows(seed))


if __name__ == "__main__":
    main()
