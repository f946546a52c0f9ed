"""Chance where rules look beyond the sequence: a shuffle is worth what ``detect`` says of it, and small is rare."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import msgspec
import numpy as np
import pytest

from undersong.models import TRAITS, Row
from undersong.patterns.catalog import all_rules
from undersong.patterns.detect import detect
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.fields import MESSAGE_ATTRIBUTES
from undersong.patterns.reference.partitions import Partition, partitions, timelines
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.estimate import chance, estimate_significance, sequential
from undersong.patterns.significance.necessary_conditions import possible_pairs
from undersong.patterns.significance.permutations import draw_permutations, key_of, looks_elsewhere
from undersong.patterns.tools.rule_tests import table
from undersong.routing.budget import clopper_pearson

ELSEWHERE = [each for each in all_rules() if looks_elsewhere(each)]
MOODS: list[dict[str, float]] = [
    {"compassion": 0.8, "goodwill": 0.8, "manipulation": 0.1, "exploitation": 0.1, "virtue": 0.8, "accuracy": 0.8},
    {"compassion": 0.1, "goodwill": 0.1, "manipulation": 0.8, "exploitation": 0.7, "dismissal": 0.7},
    {"fabrication": 0.8, "goodwill": 0.7, "compassion": 0.6, "deception": 0.8, "manipulation": 0.2},
    {"dismissal": 0.8, "broken_logic": 0.8, "recognition": 0.1, "accuracy": 0.2, "reasoning": 0.2},
]


@pytest.fixture(scope="module")
def shares() -> ModuleType:
    """The intervals of bench/calibration.py; bench/ is no package."""
    path = Path(__file__).parents[2] / "bench" / "shares.py"
    spec = importlib.util.spec_from_file_location("bench_shares", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_shares"] = module
    spec.loader.exec_module(module)
    return module


def crowd(name: str, dice: random.Random, size: int, targets: Sequence[str]) -> list[Row]:
    """An agent whose words are thrown by a die: to each target and in public, one message in ten unread."""
    to = [dice.choice(["", *(f">{target}" for target in targets)]) for _ in range(size)]
    rows = table("who day\n" + "\n".join(f"{name}{towards} {day / 3:.3f}" for day, towards in enumerate(to)))
    return [msgspec.structs.replace(row, id=f"{name}:{row.id}", **thrown(dice)) for row in rows]


def thrown(dice: random.Random) -> dict[str, object]:
    if dice.random() < 0.1:
        return {"state": "unread", "traits": None}
    mood = dict.fromkeys(TRAITS, 0.4) | dice.choice(MOODS)
    return {"traits": {trait: min(1.0, max(0.0, score + dice.gauss(0, 0.08))) for trait, score in mood.items()}}


def among_others(chosen: PatternRule) -> list[Row]:
    """What the rule finds towards one person; the same words to others at the same times, and in public after it."""
    case = chosen.file.cases.hits[0]
    rows = table(case.rows, case.base)
    times = [row.time for row in rows if row.time is not None]
    later = max(times) - min(times) + timedelta(days=1)
    dice, copies = random.Random(chosen.id), []
    for target in (None, "zed", "yan"):
        for place, source in zip(rows, dice.sample(rows, len(rows)), strict=True):
            time = place.time + later if target is None and place.time else place.time
            words = {name: getattr(source, name) for name in MESSAGE_ATTRIBUTES}
            named = {"id": f"{target}:{place.id}", "target": target, "position": place.position + 1000}
            copies.append(msgspec.structs.replace(place, time=time, **named, **words))
    return [*rows, *copies]


def rewritten(rows: Sequence[Row], partition: Partition, order: Sequence[int]) -> list[Row]:
    """The rows with the words of one sequence in another order."""
    words = {
        (at.row.conversation, at.row.id): partition.rows[said].row
        for at, said in zip(partition.rows, order, strict=True)
    }
    return [
        msgspec.structs.replace(row, **{name: getattr(words[key], name) for name in MESSAGE_ATTRIBUTES})
        if key in words
        else row
        for row in rows
        if (key := (row.conversation, row.id))
    ]


def strongest(rows: Sequence[Row], chosen: PatternRule, target: str | None) -> float:
    strengths = [each.strength for each in detect(rows, [chosen]).findings if each.target == target]
    return max(strengths, default=-np.inf)


@pytest.mark.parametrize("chosen", ELSEWHERE, ids=lambda chosen: chosen.id)
def test_chance_counts_the_orders_in_which_detect_finds_as_much(chosen: PatternRule) -> None:
    rows, draws = among_others(chosen), 25
    tested = 0
    for timeline in timelines(rows):
        for partition in partitions(timeline, chosen.file.partition_by):
            observed = strongest(rows, chosen, partition.target)
            if observed == -np.inf:
                continue
            key = key_of(3, "chance", chosen, partition)
            dealt = draw_permutations(key, 0, draws, len(partition.rows)).tolist()
            strengths = (strongest(rewritten(rows, partition, order), chosen, partition.target) for order in dealt)
            counted = sequential([value >= observed for value in strengths])
            assert chance(chosen, partition, seed=3, draws=draws) == counted, partition.target
            tested += 1
    assert tested


def test_where_an_agent_has_many_targets_a_small_chance_is_as_rare_as_it_says(shares: ModuleType) -> None:
    rules = [each for each in ELSEWHERE if each.id in ("con_game", "love_bombing", "darvo")]
    dice, targets = random.Random(5), ["al", "bo", "cy"]
    groups, limits = [], (0.05, 0.2, 0.5)
    for agent in range(60):
        rows = crowd(f"a{agent}", dice, 36, targets)
        tests = sum(possible_pairs(each, timelines(rows)) for each in rules)
        groups.append(shares.Group(tests, small(rows, rules, limits)))
    estimates = [shares.share(groups, limit) for limit in limits]
    assert [each.low <= limit for each, limit in zip(estimates, limits, strict=True)] == [True] * 3, estimates
    assert estimates[-1].value > 0.1  # and it is not so careful that it says nothing


def small(rows: Sequence[Row], rules: Sequence[PatternRule], limits: Sequence[float]) -> Counter[float]:
    """How many sequences have a chance at or under each limit."""
    detection = detect(rows, rules)
    weighed = estimate_significance(
        detection.findings, detection.outcomes, rows, rules, ResamplingConfig(draws=39, replicas=0)
    )
    values = {(each.pattern, each.target): each.chance for each in weighed.findings}
    return Counter(limit for limit in limits for value in values.values() if value is not None and value <= limit)


def test_single_tests_have_the_interval_of_a_coin(shares: ModuleType) -> None:
    groups = [shares.Group(1, {0.05: int(number < 3)}) for number in range(200)]
    estimate = shares.share(groups, 0.05)
    assert (estimate.hits, estimate.tests, estimate.value) == (3, 200, 0.015)
    assert (estimate.low, estimate.high) == pytest.approx(clopper_pearson(3, 200), rel=0.02)
    assert estimate.design_effect == pytest.approx(1, abs=0.01)


def test_tests_that_say_the_same_count_once(shares: ModuleType) -> None:
    groups = [shares.Group(5, {0.05: 5 * int(number < 8)}) for number in range(200)]
    estimate = shares.share(groups, 0.05)
    assert estimate.design_effect == pytest.approx(5, rel=0.01)
    assert (estimate.low, estimate.high) == pytest.approx(clopper_pearson(8, 200), rel=0.02)


def test_without_tests_a_share_says_nothing(shares: ModuleType) -> None:
    assert shares.share([shares.Group(0, {})], 0.05) == (0, 0, 0.0, 1.0, 1.0)
    assert shares.share([shares.Group(4, {})], 0.05).low == 0.0
    assert shares.share([shares.Group(4, {0.05: 4})], 0.05).high == 1.0
