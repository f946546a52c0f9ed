"""Makes what both versions read, once, with the first checkout."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.differential.bench import INSIDE, Plan, Side

RULES_IN_A_BATCH, WORLDS_IN_A_BATCH = 100, 4
FAULTS = (
    "429_after*1", "429*2", "500*1", "400", "cut*1", "truncated*1", "truncated", "broken_envelope*1", "prose*1",
    "prose", "schema*1", "schema", "range", "refusal", "empty*1", "quote", "unknown", "control*1", "control", "limit",
    "no", "expired", "529*1", "empty",
)  # fmt: skip
LASTING = ("cut", "500", "429_after")  # asked for again and again, with pauses between
BATCH_FAULTS = ("refusal", "quote", "expired")
BROKEN_RULES = {
    "unknown_key": ("within: ", "whithin: "),
    "bad_condition": ("manipulation", "manipulatoin"),
    "bad_level": ("level: ", "level: very_"),
    "no_pattern": ("pattern: ", "patern: "),
    "bad_yaml": ("define:", "define: ["),
    "bad_quantifier": ("pattern: ", "pattern: A{3,1} "),
    "bad_strength": ("strength: ", "strength: mean("),
}


def make(plan: Plan, side: Side, shared: Path, *, rules: bool) -> None:
    """Samples, broken files, corpora, planted sets, random rules, worlds, and messages with faults for the judge."""
    folder = plan.inputs
    folder.mkdir(parents=True)
    shutil.copytree(side.checkout / "samples", folder / "samples")
    shutil.copytree(side.checkout / "tests" / "samples", folder / "chats")
    broken_rules(next(side.checkout.rglob("patterns/love_bombing.yaml")), folder / "broken_rules")
    mutated(folder, plan.size(60, 600))
    (folder / "names.txt").write_text("kira_x\nmarten\n", encoding="utf-8")
    faulty(folder / "faults.jsonl", FAULTS[::2] if plan.quick else FAULTS + LASTING)
    faulty(folder / "batch.jsonl", BATCH_FAULTS)
    labels(folder / "labels.jsonl")
    planted(shared / "bench" / "planted", folder / "planted", plan.size(10, 10_000))
    inside(side, "make_corpus.py", str(folder), str(plan.size(1_500, 12_000)), str(plan.size(15, 200)))
    if rules:
        random_rules(side, folder / "random", plan.size(400, 20_000) // RULES_IN_A_BATCH)


def random_rules(side: Side, out: Path, batches: int) -> None:
    """Batches of rules and rows, made by two processes: to compile 20,000 rules takes three minutes."""
    sizes = (str(RULES_IN_A_BATCH), str(WORLDS_IN_A_BATCH))
    halves = ((0, batches // 2), (batches // 2, batches))
    with ThreadPoolExecutor(2) as pool:
        made = [pool.submit(inside, side, "make_rules.py", str(out), *map(str, half), *sizes) for half in halves]
    for rule_file in made:
        rule_file.result()


def inside(side: Side, name: str, *arguments: str) -> None:
    """Run a helper with the checkout's modules; ends the program where it fails."""
    command = [side.python, "-P", str(INSIDE / name), *arguments]
    ran = subprocess.run(command, env=side.environment(), capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{name} failed in {side.checkout}:\n{ran.stderr[-3000:]}")


def broken_rules(rule: Path, out: Path) -> None:
    """A folder for each way to break a shipped rule."""
    text = rule.read_text(encoding="utf-8")
    for name, (right, wrong) in BROKEN_RULES.items():
        (out / name).mkdir(parents=True)
        (out / name / "love_bombing.yaml").write_text(text.replace(right, wrong, 1), encoding="utf-8")


def mutated(folder: Path, count: int) -> None:
    """Sample files with bytes changed, cut out, doubled, or cut off: what ingest says of each is compared."""
    dice = random.Random(5)
    samples = sorted(path for name in ("samples", "chats") for path in (folder / name).rglob("*") if path.is_file())
    (folder / "mutated").mkdir()
    for number in range(count):
        source = samples[number % len(samples)]
        raw = bytearray(source.read_bytes())
        for _ in range(dice.choice((1, 1, 3))):
            place = dice.randrange(len(raw))
            match dice.randrange(4):
                case 0:
                    raw[place] = dice.randrange(256)
                case 1:
                    del raw[place : place + dice.randrange(1, 40)]
                case 2:
                    raw[place:place] = raw[place : place + dice.randrange(1, 200)]
                case _:
                    del raw[max(place, 40) :]
        (folder / "mutated" / f"{number:04}{source.suffix}").write_bytes(bytes(raw))


def faulty(path: Path, faults: tuple[str, ...]) -> None:
    """Conversations of four whose messages are flagged or name a fault of the server."""
    flagged = (
        "You owe me this after everything I did.",
        "Nobody else understands you like I do.",
        "Thank you, all is well.",
    )
    with path.open("w", encoding="utf-8") as lines:
        for number in range(3 * len(faults)):
            fault = f" fault={faults[number // 3]} please" if number % 3 == 1 else ""
            row = {
                "id": f"m{number}", "conversation": f"c{number // 12}", "author": f"a{number % 4}", "role": "agent",
                "text": f"{flagged[number % 3]} This is number {number}.{fault}",
                "time": f"2026-03-{1 + number // 12:02d}T10:{number % 12:02d}:00Z",
            }  # fmt: skip
            lines.write(json.dumps(row) + "\n")


def labels(path: Path) -> None:
    """Labelled messages by a few authors, for the figures of a judge."""
    dice, traits = random.Random(3), (
        "virtue", "goodwill", "manipulation", "deception", "accuracy", "reasoning", "fabrication", "broken_logic",
        "recognition", "compassion", "dismissal", "exploitation",
    )  # fmt: skip
    with path.open("w", encoding="utf-8") as lines:
        for number in range(24):
            marks = {trait: dice.randrange(0, 101, 5) / 100 for trait in traits}
            row = {"author": f"a{number % 6}", "text": f"A labelled message, number {number}.", "traits": marks}
            lines.write(json.dumps(row) + "\n")


def planted(source: Path, out: Path, most: int) -> None:
    """The worlds of each planted set as one file of rows; names carry the world's id."""
    out.mkdir()
    for folder in sorted(path.parent for path in source.glob("*/blind.jsonl.gz")):
        blind, rows = folder / "blind.jsonl.gz", out / f"{folder.name}.jsonl"
        with gzip.open(blind, "rt", encoding="utf-8") as worlds, rows.open("w", encoding="utf-8") as lines:
            for _, line in zip(range(most), worlds, strict=False):
                lines.writelines(json.dumps(row) + "\n" for row in world_rows(json.loads(line)))


def world_rows(world: dict[str, object]) -> list[dict[str, object]]:
    """The messages of a world as rows."""
    messages = world["messages"]
    assert isinstance(messages, list)
    rows = []
    for position, message in enumerate(messages):
        names = {k: f"{world['world_id']}:{message[k]}" for k in ("id", "agent", "target", "thread") if message[k]}
        rows.append({**message, **names, "position": position})
    return rows
