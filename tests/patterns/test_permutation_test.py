"""Chance: exact on small sequences, valid under an early stop, blind to everything but the sequence itself."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.patterns.rulebox import rule
from undersong.models import Row
from undersong.patterns.catalog import all_rules, load_rules, named
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.reference.partitions import Partition, partitions, timelines
from undersong.patterns.reference.search import search_partition
from undersong.patterns.significance import REPLICAS
from undersong.patterns.significance.estimate import (
    ALL_DRAWS,
    ENOUGH,
    FEWEST,
    MOST,
    Chance,
    chance,
    draws_for,
    sequential,
)
from undersong.patterns.significance.permutations import draw_permutations, key_of, permuted, scope, strength_of
from undersong.patterns.tools.rule_tests import table
from undersong.patterns.vectorized.start_filter import shortest

RISE = rule(
    "LOW{2,} HIGH",
    {"measures": {"strength": "last(HIGH.manipulation)"}},
    LOW="manipulation < 0.3",
    HIGH="manipulation > 0.5",
)


def only(rows: list[Row] | str, by: Sequence[str] = ("agent",), target: str | None = None) -> Partition:
    rows = table(rows) if isinstance(rows, str) else rows
    return next(each for timeline in timelines(rows) for each in partitions(timeline, by) if each.target == target)


def column(*scores: float, head: str = "who day manipulation") -> str:
    return head + "\n" + "\n".join(f"kira {day} {score}" for day, score in enumerate(scores))


def exact(chosen: PatternRule, partition: Partition) -> Fraction:
    """The share of all orders whose strongest match is at least as strong as what is there."""
    observed = max(map(strength_of, search_partition(chosen, partition).matches))
    every = list(itertools.permutations(range(len(partition.rows))))
    strong = 0
    for order in every:
        matches = search_partition(chosen, permuted(scope(chosen, partition), order)).matches
        strong += any(strength_of(match) >= observed for match in matches)
    return Fraction(strong, len(every))


def test_the_share_of_all_orders_is_what_a_pencil_gives() -> None:
    # two low, one high, at .9 and .6: LOW LOW HIGH needs the high one last; of 4 rows see below
    assert exact(RISE, only(column(0.1, 0.2, 0.9))) == Fraction(1, 3)
    # LOW LOW .9 with a .4 anywhere that does not part them: 0.4 first or last, and the two low ones swapped
    assert exact(RISE, only(column(0.1, 0.2, 0.9, 0.4))) == Fraction(4, 24)
    # two high rows: LOW LOW must stand before .9 itself, or .6 takes the match and is weaker
    assert exact(RISE, only(column(0.1, 0.2, 0.9, 0.6))) == Fraction(4, 24)
    # the weaker one was found: whichever is last, or first, is at least as strong
    assert exact(RISE, only(column(0.1, 0.2, 0.6, 0.9))) == Fraction(8, 24)


@pytest.mark.parametrize("scores", [(0.1, 0.2, 0.9), (0.1, 0.2, 0.9, 0.4), (0.1, 0.2, 0.6, 0.9)])
def test_many_draws_come_near_the_exact_share(scores: tuple[float, ...]) -> None:
    partition = only(column(*scores))
    wanted = float(exact(RISE, partition))
    key = key_of(5, "chance", RISE, partition)
    observed = max(map(strength_of, search_partition(RISE, partition).matches))
    hits = 0
    for order in draw_permutations(key, 0, 3000, len(scores)).tolist():
        matches = search_partition(RISE, permuted(scope(RISE, partition), order)).matches
        hits += any(strength_of(m) >= observed for m in matches)
    assert hits / 3000 == pytest.approx(wanted, abs=4 * (wanted * (1 - wanted) / 3000) ** 0.5)


def test_chance_counts_the_order_that_was_found() -> None:
    result = chance(RISE, only(column(0.1, 0.2, 0.9, *[0.4] * 30)), seed=0, draws=99)
    assert result is not None
    assert result.value == (1 + result.as_strong) / (1 + result.draws)
    assert Chance(3, 999).value == 0.004


def test_the_tenth_as_strong_ends_the_draws() -> None:
    assert sequential([True] * 50) == Chance(ENOUGH, ENOUGH)
    assert sequential([False, True] * 50) == Chance(ENOUGH, 2 * ENOUGH)
    assert sequential([False] * 99) == Chance(0, 99)
    assert sequential([]) == Chance(0, 0)
    assert sequential([True] * 5, Chance(7, 40)) == Chance(ENOUGH, 43)
    assert sequential([False, True], Chance(7, 40)) == Chance(8, 42)
    assert sequential([], Chance(7, 40)) == Chance(7, 40)


def test_with_the_early_stop_a_small_chance_is_as_rare_as_it_says() -> None:
    # under the null the observed order is one more draw: its rank among infinitely many is uniform
    dice, runs, draws = random.Random(11), 6000, 199
    values = []
    for _ in range(runs):
        rank = dice.random()
        values.append(sequential([dice.random() < rank for _ in range(draws)]).value)
    for alpha in (0.01, 0.05, 0.2, 0.5):
        share = sum(value <= alpha for value in values) / runs
        assert share <= alpha + 3 * (alpha * (1 - alpha) / runs) ** 0.5, alpha
        assert share >= 0.7 * alpha, alpha  # and it is not so careful that it says nothing


CLIMB = rule("^ A+ $", {"measures": {"strength": "0.5 + slope(A.manipulation)"}}, A="manipulation >= 0")


def test_where_every_order_matches_chance_is_as_even_as_the_null_is() -> None:
    dice, runs, values = random.Random(2), 240, []
    for _ in range(runs):
        result = chance(CLIMB, only(column(*[round(dice.random(), 3) for _ in range(7)])), seed=0, draws=99)
        assert result is not None
        values.append(result.value)
    for alpha in (0.05, 0.2, 0.5):
        # a little below α: (1 + b) / (1 + B) is careful where the draws stop early
        share, room = sum(value <= alpha for value in values) / runs, 3 * (alpha * (1 - alpha) / runs) ** 0.5
        assert 0.7 * alpha - room <= share <= alpha + room, alpha


def test_where_nothing_matched_there_is_no_chance() -> None:
    assert chance(RISE, only(column(0.1, 0.9, 0.2)), seed=0, draws=99) is None


def test_long_sequences_get_fewer_draws_and_it_is_known_beforehand() -> None:
    assert [draws_for(rows, 999) for rows in (3, 500, 1000, 10**6)] == [999, 999, 499, FEWEST]
    assert draws_for(3, 10) == draws_for(10**6, 10) == 10
    assert draws_for(3, 10**9) == MOST


def test_what_was_said_moves_together_and_the_place_stays() -> None:
    rows = table("""
        id who     day tier     observed manipulation deception indicators   flags
        1  kira>bo 0   deep     yes      .1           .2        -            demand
        2  kira    1   standard no       .3           .4        MAN-URGENCY  -
        3  kira>bo 2   focused  unknown  ?            ?         -            -
        4  kira>bo 5   focused  unknown  .5           .6        MAN-X        urgency
    """)
    looks = rule("A+", {"partition_by": ["agent", "target"]}, A='tier != "deep_with_context" and manipulation > 0')
    scoped = scope(looks, only(rows, ("agent", "target"), "bo"))
    dealt = permuted(scoped, [2, 0, 1])
    assert [(e.row.traits or {})["manipulation"] for e in dealt.rows] == [0.5, 0.1, 0.3]
    assert [(e.row.traits or {})["deception"] for e in dealt.rows] == [0.6, 0.2, 0.4]
    assert [tuple(i.id for i in e.row.indicators or ()) for e in dealt.rows] == [("MAN-X",), (), ("MAN-URGENCY",)]
    assert [dict(e.row.flags) for e in dealt.rows] == [{"urgency": 1}, {"demand": 1}, {}]
    assert [e.row.tier for e in dealt.rows] == ["deep", "standard", "focused"]
    assert [e.row.target for e in dealt.rows] == ["bo", None, "bo"]
    assert [e.time for e in dealt.rows] == [e.time for e in scoped.rows]
    assert dealt.holes == scoped.holes == ((), (), ("3",))


def test_a_key_gives_the_same_orders_on_every_machine() -> None:
    assert draw_permutations(b"key", 0, 3, 6).tolist() == ORDERS
    assert draw_permutations(b"key", 2, 1, 6).tolist() == ORDERS[2:]


ORDERS = [[0, 3, 2, 5, 4, 1], [4, 3, 1, 0, 2, 5], [5, 2, 4, 0, 1, 3]]


def test_every_order_is_equally_likely() -> None:
    counts = np.unique(draw_permutations(b"even", 0, 6000, 3), axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert abs(counts - 1000).max() < 4 * 1000**0.5


def test_blocks_keep_their_inner_order_and_the_oldest_rows_that_fill_none_stay() -> None:
    seen = set()
    for order in draw_permutations(b"blocks", 0, 200, 8, block=3).tolist():
        assert order[:2] == [0, 1]
        seen.add(tuple(order[2:]))
    assert seen == {(2, 3, 4, 5, 6, 7), (5, 6, 7, 2, 3, 4)}
    assert draw_permutations(b"blocks", 0, 2, 2, block=5).tolist() == [[0, 1]] * 2


def test_bursts_that_come_as_they_are_weigh_less_in_blocks() -> None:
    burst = (0.1, 0.2, 0.9)
    partition = only(column(*burst * 3, 0.4, 0.4, 0.4))
    single = chance(RISE, partition, seed=0, draws=400)
    blocks = chance(RISE, partition, seed=0, draws=400, block=3)
    assert single is not None
    assert blocks is not None
    assert blocks.value == 1.0  # in whole bursts every order has the match
    assert single.value < blocks.value


def test_the_seed_decides_and_nothing_else_does() -> None:
    rows = table(column(0.1, 0.2, 0.9, *[0.4] * 20))
    first = chance(RISE, only(rows), seed=1, draws=300)
    others = [msgspec.structs.replace(row, agent="bo", id=f"b{row.id}") for row in rows]
    renamed = [msgspec.structs.replace(row, id=f"z{row.id}") for row in rows]
    together = next(p for t in timelines([*others, *rows]) for p in partitions(t, ["agent"]) if t.agent == "kira")
    assert chance(RISE, together, seed=1, draws=300) == first
    assert chance(RISE, only(renamed), seed=1, draws=300) == first
    assert chance(RISE, only(rows), seed=1, draws=300) == first
    assert len({chance(RISE, only(rows), seed=seed, draws=300) for seed in range(6)}) > 1


def test_the_worked_example_of_the_page_is_what_it_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text(encoding="utf-8")
    rows, share = re.findall(r"<!-- example: \w+ -->\n```text\n(.*?)```", page, re.DOTALL)
    partition = only(rows)
    (match,) = search_partition(RISE, partition).matches
    assert [entry.row.id for _, entry in match.named] == ["1", "2", "3"]
    assert f"{exact(RISE, partition) * 24} of 24 orders\n" == share
    for number in (999, MOST, ALL_DRAWS, FEWEST, REPLICAS):
        assert f" {number:,}" in page


START = table(column(0.1))[0].time
assert START is not None


def test_only_columns_that_look_elsewhere_keep_the_rest_of_the_timeline() -> None:
    rows = table("who day manipulation\nkira>al 0 .5\nkira>bo 1 .1\nkira>bo 2 .9\n")
    partition = only(rows, ("agent", "target"), "bo")
    assert len(scope(RISE, partition).timeline.entries) == 2
    assert scope(named(all_rules(), "love_bombing"), partition) is partition


@pytest.mark.parametrize(
    ("pattern", "least"),
    [("A", 1), ("A{3,} B", 4), ("A | B B", 1), ("A (ANY{2,5}? B)+", 4), ("A? B* A{2}", 2), ("^ (A | B){2,4} $", 2)],
)
def test_the_shortest_match_of_a_pattern(pattern: str, least: int) -> None:
    assert shortest(rule(pattern, A="manipulation > 0.5", B="manipulation < 0.5").program) == least


def test_the_shipped_rules_know_their_shortest_match() -> None:
    lengths = {each.id: shortest(each.program) for each in load_rules()}
    assert lengths["love_bombing"] == 3
    assert lengths["alignment_faking"] == 9


def test_where_every_place_is_its_own_kind_each_draw_is_searched() -> None:
    partition = only(column(0.1, 0.2, 0.9, *[0.4] * 317))
    placed = rule("LOW{2,} HIGH", LOW="manipulation < 0.3 and position >= 0", HIGH="manipulation > 0.5")
    assert chance(placed, partition, seed=0, draws=20) == Chance(0, 20)
