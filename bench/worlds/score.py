"""What rules over scores reach on rough worlds: ``python -m bench.worlds.score --data DIR [--seed 2] [--noise]``.

Rules and their confidence are made on seeds 1, 201 and 202 (``python -m train.confidence``); another seed is another
set of worlds by the same author. Printed are, at ``--prevalence``: the share of plants that are named, false alarms per
1,000 read messages (all worlds, and those where nothing is planted), how many busy agents without a plan are named, and
how many findings of each confidence are true; the first line is without confidence. Few people in these worlds are
busy, so further ones (``--busy``), in which nothing is planted and everybody writes four times as much in the same
days, show how many of some hundred busy agents are named. ``--noise`` adds the noise of a further reading to every
score.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.planted import rows_of
from bench.talks.score import Share
from bench.worlds.build import World, build_world
from bench.worlds.pool import load_vectors
from train.confidence import READ, names
from undersong.models import Finding, Row
from undersong.models.finding import SURE
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import detect
from undersong.patterns.significance.confidence import rule_kind, with_confidence

BUSY = 60  # read messages that make an agent busy
TALKATIVE = 4.0  # times as many messages as elsewhere, in the worlds of busy agents
NOISE = 0.0885 * (np.pi / 4) ** 0.5  # standard deviation for two readings that lie .0885 apart on average
BANDS = (0.0, 0.2, 0.4, 0.6, 0.8)


class Scored(NamedTuple):
    """A world's truth, how many messages of each agent were read, and the findings with their confidence."""

    truth: World
    read: Counter[str]
    findings: tuple[Finding, ...]


def main() -> None:
    """Build, find, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    parser.add_argument("--worlds", type=int, default=40, help="worlds with plants")
    parser.add_argument("--nothing-planted", type=int, default=40, help="further worlds without any plant")
    parser.add_argument("--busy", type=int, default=24, help="further worlds without any plant, of busy agents")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--prevalence", type=float, default=0.2)
    parser.add_argument("--noise", action="store_true", help="read every message once more, with a judge's noise")
    chosen = parser.parse_args()
    if chosen.data is None:
        sys.exit("give --data DIR or set UNDERSONG_DATA")
    planted = [number < chosen.worlds for number in range(chosen.worlds + chosen.nothing_planted)]
    scored = list(_scored(chosen, planted))
    _show("all matches", scored, 0.0)
    _show(f"confidence {SURE:g} at {chosen.prevalence:g}", scored, SURE)
    _reliability(scored)
    if chosen.busy:
        innocent = list(_scored(chosen, [False] * chosen.busy, TALKATIVE))
        matched, named = (Share(*_busy_named(innocent, least)) for least in (0.0, SURE))
        print(f"busy agents of worlds where nothing is planted: named {named}, with any match {matched}")


def _scored(chosen: argparse.Namespace, planted: Sequence[bool], talkative: float = 1.0) -> Iterator[Scored]:
    vectors = load_vectors(chosen.data)
    rules = [rule for rule in load_rules() if rule_kind(rule) != "indicators"]
    for number, plants in enumerate(planted):
        world, truth = build_world(chosen.seed, number, vectors, READ, plants, talkative)
        if chosen.noise:
            world = _read_again(world, np.random.default_rng([chosen.seed, number]))
        rows = rows_of(world)
        findings = with_confidence(detect(rows, rules).findings, rows, rules, chosen.prevalence)
        yield Scored(truth, Counter(_name(row) for row in rows if row.state == "scored"), findings)


def _read_again(world: World, rng: np.random.Generator) -> World:
    """The world with noise on every score, within 0 and 1."""
    messages = []
    for message in world["messages"]:
        traits = message["traits"] and {
            trait: None if mark is None else float(np.clip(mark + rng.normal(0, NOISE), 0, 1))
            for trait, mark in message["traits"].items()
        }
        messages.append({**message, "traits": traits})
    return {**world, "messages": messages}


def _name(item: Row | Finding) -> str:
    return item.agent.partition(":")[2]


def _show(label: str, scored: Sequence[Scored], least: float) -> None:
    """One line: of several findings about one agent and pattern the strongest counts."""
    hits: Counter[str] = Counter()
    plants: Counter[str] = Counter()
    alarms = quiet = 0
    for world in scored:
        sure = sorted((f for f in world.findings if (f.confidence or 0.0) >= least), key=lambda f: f.strength)
        best = {(_name(finding), finding.pattern): finding for finding in sure}
        for plant in world.truth["truth"]:
            finding = best.pop((plant["agent"], plant["pattern"]), None)
            plants[plant["pattern"]] += 1
            hits[plant["pattern"]] += finding is not None and names(finding, plant)
        alarms += len(best)
        quiet += len(best) * (not world.truth["truth"])
    named, busy = _busy_named(scored, least)
    read = sum(each.read.total() for each in scored)
    calm = sum(each.read.total() for each in scored if not each.truth["truth"])
    print(f"{label}: recall {Share(hits.total(), plants.total())},")
    print(f"  false alarms per 1,000 read {1000 * alarms / read:.2f}, where nothing is planted", end=" ")
    print(f"{1000 * quiet / max(1, calm):.2f}, busy agents without a plan named {named} of {busy}")
    print("  " + ", ".join(f"{pattern} {hits[pattern]}/{count}" for pattern, count in sorted(plants.items())))


def _busy_named(scored: Iterable[Scored], least: float) -> tuple[int, int]:
    """How many busy agents without a plan are named, and how many there are."""
    named = busy = 0
    for world in scored:
        often = {agent for agent, count in world.read.items() if count >= BUSY} - planned(world.truth)
        busy += len(often)
        named += len(often & {_name(finding) for finding in world.findings if (finding.confidence or 0.0) >= least})
    return named, busy


def planned(truth: World) -> set[str]:
    """The agents of a world who have a plan."""
    return {plant["agent"] for plant in truth["truth"]}


def _reliability(scored: Sequence[Scored]) -> None:
    bands: dict[float, list[bool]] = defaultdict(list)
    for world in scored:
        for finding in world.findings:
            if finding.confidence is not None:
                band = max(low for low in BANDS if finding.confidence >= low)
                bands[band].append(any(names(finding, plant) for plant in world.truth["truth"]))
    print("true of findings with a confidence")
    for low, true in sorted(bands.items()):
        print(f"  {low:.1f} to {low + 0.2:.1f}   {Share(sum(true), len(true))}")


if __name__ == "__main__":
    main()
