"""Stability: a match far from every limit survives a second reading, one at the limit does not."""

from __future__ import annotations

import math
from statistics import fmean

import pytest

from tests.patterns.rulebox import rule
from tests.patterns.test_permutation_test import column, only
from undersong.models import TRAITS
from undersong.patterns.reference.search import search_partition
from undersong.patterns.significance.noise_resampling import (
    ALL_REPLICAS,
    FEWEST,
    Noise,
    alike,
    noise,
    replicas_for,
    survivals,
)
from undersong.patterns.tools.rule_tests import table

PAIR = rule("LOW HIGH", LOW="manipulation < 0.5", HIGH="manipulation > 0.5")
QUIET = Noise(known={}, others=0.0)


def share(scores: tuple[float, ...], table_of_noise: Noise, replicas: int = 200, seed: int = 0) -> float:
    partition = only(column(*scores))
    ids = [[entry.row.id for _, entry in match.named] for match in search_partition(PAIR, partition).matches]
    (result,) = survivals(PAIR, [partition], [ids], seed=seed, replicas=replicas, table=table_of_noise)
    assert result.replicas == replicas
    return result.shares[0]


def test_the_table_holds_what_is_known_and_one_assumption_for_the_rest() -> None:
    noise_table = noise()
    assert noise_table.known == {"exploitation": 0.055, "deception": 0.122}
    assert noise_table.others == pytest.approx((0.055 + 0.122) / 2)
    assert noise_table.spread("exploitation") == pytest.approx(0.055 * math.sqrt(math.pi / 2))
    assert noise_table.spread("virtue") == noise_table.spread("manipulation") > noise_table.spread("exploitation")
    assert set(noise_table.known) < set(TRAITS)


def test_a_match_far_from_the_limits_survives_and_one_at_them_hardly() -> None:
    assert share((0.05, 0.95), noise()) == 1.0
    assert share((0.05, 0.95), QUIET) == share((0.499, 0.501), QUIET) == 1.0
    middle = share((0.4999, 0.5001), noise(), replicas=1000)
    assert middle == pytest.approx(0.25, abs=4 * (0.25 * 0.75 / 1000) ** 0.5)  # each side holds every second time


def test_the_noise_has_the_size_of_the_table() -> None:
    # HIGH holds where the difference is above -x; at one standard deviation that is 84 in 100 times
    spread = noise().spread("manipulation")
    high = rule("HIGH", HIGH="manipulation > 0.5")
    partition = only(column(0.5 + spread))
    (result,) = survivals(high, [partition], [[["1"]]], seed=3, replicas=2000, table=noise())
    assert result.shares[0] == pytest.approx(0.8413, abs=4 * (0.84 * 0.16 / 2000) ** 0.5)


def test_the_same_seed_gives_the_same_share() -> None:
    assert share((0.45, 0.6), noise(), seed=1) == share((0.45, 0.6), noise(), seed=1)
    assert len({share((0.45, 0.6), noise(), seed=seed) for seed in range(5)}) > 1


def test_a_match_of_other_messages_is_another_match() -> None:
    assert alike(frozenset("abcd"), frozenset("bcd"))
    assert alike(frozenset("ab"), frozenset("a"))
    assert not alike(frozenset("abc"), frozenset("cde"))


def test_unread_rows_and_missing_scores_stay_what_they_are() -> None:
    rows = table("id who day manipulation deception\n1 kira 0 .1 -\n2 kira 1 ? ?\n3 kira 2 .9 -\n")
    lacks = rule("LOW HIGH", LOW="manipulation < 0.5 and deception is null", HIGH="manipulation > 0.5")
    (result,) = survivals(lacks, [only(rows)], [[["1", "3"]]], seed=0, replicas=20, table=noise())
    assert result.shares == (1.0,)


def test_noise_is_even_handed() -> None:
    low = fmean(share((0.5 - x, 0.9), noise(), replicas=400) for x in (0.05, 0.1))
    high = fmean(share((0.1, 0.5 + x), noise(), replicas=400) for x in (0.05, 0.1))
    assert low == pytest.approx(high, abs=0.06)


def test_very_long_timelines_get_fewer_replicas() -> None:
    assert [replicas_for(rows, 50) for rows in (100, ALL_REPLICAS, 2 * ALL_REPLICAS, 10**6)] == [50, 50, 25, FEWEST]
    assert replicas_for(10**6, 5) == 5
