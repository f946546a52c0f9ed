"""How fast the pattern engine is: ``python bench/detect.py [--rows N]`` (needs numba, polars, duckdb).

Rows are made from a seed: agents by a Zipf-like law, a third of the rows public, a tenth unread, scores to three
decimals, indicators and flags, so that every rule applies. They come as columns, in the order of time, to all three.

literal: three sequences of single rows and one of eight with statistics, the agents' rows put in order first, every
finding with its rows and its strength. The engine, Polars expressions and DuckDB windows find the same, or it is said.
Polars and DuckDB give every place where the sequence fits; which of overlapping ones stand is then worked out for both
by one NumPy loop. Times are CPU seconds of the whole process, the least of some runs.

all: every rule that is on, findings with measures; the reference does a part of the rows beside it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from undersong.models import TRAITS
from undersong.patterns import load_rules
from undersong.patterns.engine.arrays import Columns, Encoded, pieces, table_of_columns
from undersong.patterns.engine.run import Found, Run
from undersong.patterns.engine.vectors import Vectors
from undersong.patterns.expressions import Call, Text, walk
from undersong.patterns.rules import PatternRule

POSITIVE = ("virtue", "goodwill", "accuracy", "reasoning", "recognition", "compassion")
DAY = 86_400_000_000  # microseconds
ROWS_AT_ONCE = 1_000_000


def made(rows: int, rules: tuple[PatternRule, ...], seed: int = 1) -> Columns:
    """Columns of so many rows."""
    dice = np.random.default_rng(seed)
    agents = max(10, rows // 50)
    weights = 1 / (np.arange(agents) + 10)
    agent = dice.choice(agents, rows, p=weights / weights.sum()).astype(np.int32)
    target = ((agent + dice.geometric(0.2, rows)) % agents).astype(np.int32)
    target[dice.random(rows) < 1 / 3] = -1
    names = [f"a{number:07}" for number in range(agents)]
    conversations = max(1, rows // 20)
    harmful = dice.random(rows) < np.where(dice.random(agents) < 0.05, 0.3, 0.02)[agent]
    numbers = {trait: _scores(dice, rows, trait in POSITIVE, harmful) for trait in TRAITS}
    read = dice.random(rows) < 0.9
    for values in numbers.values():
        values[~read] = np.nan
    texts = {
        "agent": Encoded(agent, names),
        "target": Encoded(target, names),
        "conversation": Encoded(
            (np.arange(rows) // 20).astype(np.int32), [f"c{number:07}" for number in range(conversations + 1)]
        ),
        "tier": _choice(dice, rows, ("standard", "focused", "deep", "deep_with_context"), (0.6, 0.2, 0.15, 0.05)),
        "observed": _choice(dice, rows, ("yes", "no", "unknown"), (0.3, 0.3, 0.4)),
        "role": _choice(dice, rows, ("agent", "assistant", "user"), (0.6, 0.2, 0.2)),
    }
    apologies = dice.integers(0, 6, rows).astype(np.float64)
    return Columns(
        times=np.sort(dice.integers(0, 360 * DAY, rows)),
        read=read,
        texts=texts,
        numbers=numbers | {"apologies": apologies, "loops": (dice.random(rows) < 0.02).astype(np.float64)},
        judged=read,
        indicators={name: dice.random(rows) < np.where(harmful, 0.05, 0.003) for name in _named(rules, "indicator")},
        flags={name: dice.random(rows) < 0.05 for name in _named(rules, "flag")},
    )


def _scores(dice: np.random.Generator, rows: int, positive: bool, harmful: Any) -> Any:
    low, high = dice.beta(2, 8, rows), dice.beta(5, 4, rows)
    return np.where(harmful ^ positive, high, low).round(3)


def _choice(dice: np.random.Generator, rows: int, names: tuple[str, ...], weights: tuple[float, ...]) -> Encoded:
    return Encoded(dice.choice(len(names), rows, p=weights).astype(np.int32), names)


def _named(rules: tuple[PatternRule, ...], function: str) -> list[str]:
    """What the rules ask for by name."""
    trees = [tree for rule in rules for tree in (*rule.trees.define, *rule.trees.columns.values())]
    trees += [rule.trees.where for rule in rules if rule.trees.where is not None]
    found = {
        part.arguments[0].value
        for tree in trees
        for part in walk(tree)
        if isinstance(part, Call) and part.name == function and isinstance(part.arguments[0], Text)
    }
    return sorted(found)


def engine(columns: Columns, rules: tuple[PatternRule, ...]) -> list[tuple[PatternRule, Found]]:
    """Every finding of some rules."""
    table = table_of_columns(columns)
    source, found = Vectors(table.source), []
    for piece in pieces(table, ROWS_AT_ONCE):
        run = Run(piece, source)
        found += [(rule, run.find(rule)) for rule in rules]
    return found


def least(work: Callable[[], Any], runs: int) -> tuple[float, Any]:
    """CPU seconds and the result."""
    best, result = float("inf"), None
    for _ in range(runs):
        began = time.process_time()
        result = work()
        best = min(best, time.process_time() - began)
    return best, result


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    rules = load_rules()
    columns = made(arguments.rows, rules)
    for rule in rules:
        seconds, found = least(lambda rule=rule: engine(columns, (rule,)), arguments.runs)
        print(f"{rule.id:40} {seconds:7.3f} {sum(part.size for _, part in found)}")
    seconds, found = least(lambda: engine(columns, rules), arguments.runs)
    print(seconds, arguments.rows / seconds, sum(part.size for _, part in found))


if __name__ == "__main__":
    main()
