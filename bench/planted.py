"""How well the shipped rules find planted patterns: ``python bench/planted.py --data DIR [--read SHARE] [--out FILE]``.

DIR holds folders with ``blind.jsonl.gz`` and ``truth.jsonl.gz``: worlds of agents, scored messages, planted patterns.
``--read .47`` thins the rows as a router with a budget does: of that share of all messages, half goes to what is
flagged (the deepest tiers first), half to a seeded random draw from the rest; the others are unread. What was planted
is then compared over the rows that are still read.
Writes predictions (one JSON object a line: world_id, agent, pattern, message_ids, strength) and, where
DIR/../score_planted.py exists, prints its figures over all folders together.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from undersong.models import Finding, Row
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import detect
from undersong.patterns.language.compile import PatternRule
from undersong.rows.jsonl import row_of

World = dict[str, Any]
DEPTH = ("deep_with_context", "deep", "focused")  # flagged tiers, the deepest first


def main() -> None:
    """Detect in every world of every set, then score."""
    arguments = _arguments()
    rules = load_rules(names=arguments.rule)
    out = arguments.out.open("w", encoding="utf-8") if arguments.out else None
    predictions: list[World] = []
    truth: list[World] = []
    began, messages = time.perf_counter(), 0
    for folder in sorted(path for path in arguments.data.iterdir() if (path / "blind.jsonl.gz").exists()):
        read: dict[str, set[str]] = {}
        for world in _lines(folder / "blind.jsonl.gz"):
            world = world if arguments.read is None else thinned(world, arguments.read)
            read[world["world_id"]] = {message["id"] for message in world["messages"] if message["scored"]}
            messages += len(world["messages"])
            predictions += predict(world, rules)
        if (folder / "truth.jsonl.gz").exists():
            truth += [_still_read(each, read[each["world_id"]]) for each in _lines(folder / "truth.jsonl.gz")]
    seconds = time.perf_counter() - began
    print(f"{messages} messages, {len(rules)} rules, {len(predictions)} findings, {messages / seconds:.0f} messages/s")
    if out:
        out.writelines(json.dumps(prediction) + "\n" for prediction in predictions)
        out.close()
    scorer = arguments.data.parent / "score_planted.py"
    if scorer.exists() and truth:
        show(_load(scorer).score(truth, predictions))


def predict(world: World, rules: tuple[PatternRule, ...]) -> list[World]:
    """The findings in one world, under its own names."""
    findings = detect(rows_of(world), rules).findings
    return [_prediction(world["world_id"], finding) for finding in findings]


def rows_of(world: World) -> list[Row]:
    """A world's messages as rows, in their order; names carry the world's id, so that worlds can be put together."""
    prefix = f"{world['world_id']}:"
    names = ("id", "agent", "target", "thread")
    rows = []
    for position, message in enumerate(world["messages"]):
        own = {name: prefix + message[name] for name in names if message[name] is not None}
        rows.append(row_of({**message, **own, "conversation": own["thread"]}, position))
    return rows


def thinned(world: World, share: float, seed: int = 1) -> World:
    """The world with at most ``share`` of its messages read."""
    chance = random.Random(f"{seed}:{world['world_id']}")
    scored = [message for message in world["messages"] if message["scored"]]
    chance.shuffle(scored)
    room = int(share * len(world["messages"]))
    flagged = sorted((m for m in scored if m["tier"] in DEPTH), key=lambda m: DEPTH.index(m["tier"]))[: room // 2]
    chosen = {message["id"] for message in flagged}
    chosen |= {message["id"] for message in [m for m in scored if m["id"] not in chosen][: room - len(chosen)]}
    unread = {"scored": False, "traits": None}
    return {**world, "messages": [m if m["id"] in chosen else {**m, **unread} for m in world["messages"]]}


def _still_read(truth: World, read: set[str]) -> World:
    """The truth over the rows that are read; a plant of which none is left stays as it was, and so is missed."""
    plants = [
        {**plant, "read_ids": [i for i in plant["read_ids"] if i in read] or plant["read_ids"]}
        for plant in truth["truth"]
    ]
    return {**truth, "truth": plants, "n_scored": len(read)}


def show(figures: dict[str, Any]) -> None:
    """The figures as a table."""
    recall = figures["recall_by_difficulty"]
    print(
        f"macro F1 {figures['macro_f1']:.3f}  recall easy {recall['easy']:.2f} medium {recall['medium']:.2f}", end=" "
    )
    print(f"hard {recall['hard']:.2f}  hard negatives fired {figures['hard_negative_rate']:.3f}", end="  ")
    print(f"false alarms per 1,000 messages {figures['false_alarms_per_1000_messages']:.2f}")
    for name, row in figures["per_pattern"].items():
        print(f"  {name:22} F1 {row['f1']:.2f}  precision {row['precision']:.2f}  recall {row['recall']:.2f}")
    print("  hard negatives:", ", ".join(f"{k} {fired}/{n}" for k, (fired, n) in figures["hard_negatives"].items()))


def _prediction(world_id: str, finding: Finding) -> World:
    prefix = f"{world_id}:"
    ids = [name.removeprefix(prefix) for name in finding.message_ids]
    agent = finding.agent.removeprefix(prefix)
    common = {"world_id": world_id, "agent": agent, "pattern": finding.pattern.removesuffix("_literal")}
    return common | {"message_ids": ids, "strength": finding.strength}


def _lines(path: Path) -> Iterator[World]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("scorer", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("UNDERSONG_DATA")
    parser.add_argument("--data", type=Path, default=default, required=default is None, help="folder of planted sets")
    parser.add_argument("--read", type=float, metavar="SHARE", help="read only this share of the messages")
    parser.add_argument("--out", type=Path, help="where the predictions go")
    parser.add_argument("--rule", action="append", default=[], help="only these rules, also literal ones")
    return parser.parse_args()


if __name__ == "__main__":
    main()
