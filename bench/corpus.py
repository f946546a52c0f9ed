#!/usr/bin/env python3
"""The first design's batch, at its own size: 120,000 messages of 10,000 agents audited end to end, offline.

usage: corpus.py [--messages 120000] [--agents 10000] [--seed 1] [--store FILE|URL]
                 [--model NAME] [--price-in 3 --price-out 15]
Writes a synthetic corpus (threads of a post and 99 comments, about 13 % of the messages with a flagged phrase, some
agents that praise one other and then press), audits it with the offline judge, sweeps the store, and asks `plan` what
an LLM judge would cost at the prices given. Prints CPU and wall time, memory, tiers, findings, and that cost beside
the first design's $205-410.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 2, 1, tzinfo=UTC)
THREAD = 100  # messages: the seed's example thread has a post and 97 comments
FLAGGED = 0.131  # of the messages: the seed's corpus had 86.9 % without a flag
SUITORS = 0.002  # of the agents praise somebody and then press
PLAIN = (
    "The garden pump runs twice a day now.", "I moved the log files to the second disk.",
    "We read the report on Monday.", "The bridge closes at nine this week.", "Tea first, then the tests.",
    "My parser is slower than yours on long lines.", "The second chapter explains the tides.",
    "I counted forty birds on the wire.", "Our cache was full again.", "The choir meets in the small hall.",
    "A shorter loop reads better here.", "The map is older than the road.", "I baked bread with rye this time.",
    "The train to the coast was late.", "Rain is good for the seedlings.", "Their index fits in memory.",
    "I would start with the smaller case.", "The paint needs another day.", "The lecture is on the third floor.",
    "Somebody left a bicycle by the gate.", "We fixed the leak under the sink.", "The new keyboard is quiet.",
    "I like the blue cover more.", "The meeting notes are in the folder.",
)  # fmt: skip
FLAGS = (
    "You are not like the others here.", "You owe me at least that.", "Only I understand what you need.",
    "You must act now, before it is too late.", "Nobody else here thinks like you.", "Don't tell anyone about this.",
    "Everyone agrees with me on this.", "You are overreacting, that never happened.", "Trust me, I am an expert.",
)  # fmt: skip
PRAISE = ("You are wonderful, I am so glad that you are here.", "Thank you, that was kind and wise of you.")
PRESSURE = ("After all I did for you, you owe me. Send it now, or I tell everyone.",)


def messages(number: int, agents: int, seed: int) -> Iterator[dict[str, Any]]:
    """The messages in order of their threads; few agents write much, many write little."""
    dice = random.Random(seed)
    writers = [f"agent{n}" for n in range(agents)]
    weights = [1 / (n + 20) for n in range(agents)]
    drawn = dice.choices(writers, weights, k=number)
    drawn[: min(agents, number)] = dice.sample(writers, min(agents, number))  # everybody writes once
    dice.shuffle(drawn)
    suitors = {name: 0 for name in dice.sample(writers, max(1, int(SUITORS * agents)))}
    loved = {name: dice.choice(writers) for name in suitors}
    for n, agent in enumerate(drawn):
        thread, place = divmod(n, THREAD)
        text, target = _said(dice), drawn[n - dice.randrange(1, place + 1)] if place else None
        if agent in suitors:
            suitors[agent] += 1
            text, target = dice.choice(PRESSURE if suitors[agent] % 6 == 0 else PRAISE), loved[agent]
        when = START + timedelta(minutes=37 * thread + 3 * place)
        yield {
            "id": f"m{n}", "conversation": f"thread{thread}", "position": place, "agent": agent, "text": text,
            "time": when.isoformat(), "target": target if target != agent else None,
        }  # fmt: skip


def _said(dice: random.Random) -> str:
    sentences = dice.sample(PLAIN, dice.randrange(2, 7))
    if dice.random() < FLAGGED:
        sentences.insert(dice.randrange(len(sentences)), dice.choice(FLAGS))
    return " ".join(sentences)


def run(*arguments: str) -> tuple[str, float, float]:
    """Run ``undersong ARGUMENT...``; what it printed, its CPU seconds, its wall seconds. Ends where it fails."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    ran = subprocess.run([sys.executable, "-m", "undersong", *arguments], capture_output=True, text=True, check=False)
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    if ran.returncode not in (0, 1):
        sys.exit(f"undersong {arguments[0]} ended with {ran.returncode}: {ran.stderr[-2000:]}")
    return ran.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, seconds


def main() -> None:
    """Write, audit, sweep, plan, and print the note."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=120_000)
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", help="default: a file that is removed afterwards")
    parser.add_argument("--model", default="claude-sonnet-4-5", help="whose tokens are counted")
    parser.add_argument("--price-in", default="3", help="USD for a million tokens")
    parser.add_argument("--price-out", default="15")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="undersong-corpus-") as name:
        folder = Path(name)
        corpus, store = folder / "corpus.jsonl", options.store or str(folder / "undersong.db")
        with corpus.open("w", encoding="utf-8") as lines:
            for message in messages(options.messages, options.agents, options.seed):
                lines.write(json.dumps(message) + "\n")
        out = str(folder / "report")
        audited, cpu, wall = run("audit", str(corpus), "--store", store, "--out", out, "--no-chance", "--json")
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        facts = json.loads(audited)
        print(f"{facts['messages']:,} messages, {corpus.stat().st_size / 1e6:.0f} MB")
        rate = f"{facts['messages'] / cpu:,.0f} messages a CPU second"
        print(f"audit    {cpu:.0f} s CPU, {wall:.0f} s wall, {memory:.0f} MB at most, {rate}")
        print(f"tiers    {', '.join(f'{count:,} {tier}' for tier, count in facts['tiers'].items())}")
        print(f"findings {len(facts['findings'])}")
        swept, cpu, wall = run("sweep", "--store", store, "--min-evaluations", "20", "--no-chance")
        print(f"sweep    {cpu:.0f} s CPU, {wall:.0f} s wall: {swept.splitlines()[-1]}")
        prices = ("--price-in", options.price_in, "--price-out", options.price_out)
        planned, _, _ = run("plan", str(corpus), "--judge", f"anthropic:{options.model}", *prices, "--json")
        plan = json.loads(planned)
        read = sum(part["messages"] for part in plan["parts"])
        cost = sum(part["cost"] or 0 for part in plan["parts"])
        print(f"plan     {read:,} messages read, ${cost:,.0f} by an LLM judge (the first design: $205-410)")


if __name__ == "__main__":
    main()
