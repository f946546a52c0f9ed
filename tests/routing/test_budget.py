"""Budgets and recall targets: never exceeded, most urgent first, the same whatever the order of the input."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.routing.test_route import POLICY, QUIET, flagged, thread
from undersong.models import Route, Scan, ThreadScan
from undersong.routing.budget import (
    NOTHING,
    RANKS,
    TRIAGE,
    DemandHistogram,
    for_recall,
    level_of,
    rank_of,
    within_share,
)
from undersong.routing.route import propose, route

SCORES = st.one_of(st.none(), st.integers(0, 1000).map(lambda step: step / 1000))
ASKED = st.lists(st.tuples(st.integers(0, TRIAGE), SCORES), max_size=60)


def demand_of(asked: list[tuple[int, float | None]]) -> DemandHistogram:
    demand = DemandHistogram(least=30)
    levels = np.array([level_of(rank, score) for rank, score in asked], dtype=np.int16)
    demand.add(levels, np.linspace(0, 0.5, len(asked)))
    return demand


@given(ASKED, st.floats(0, 1))
def test_a_budget_is_never_exceeded_and_spent_from_the_top(asked: list[tuple[int, float | None]], share: float) -> None:
    cut = within_share(demand_of(asked), share)
    read = [cut.reads(rank, score) for rank, score in asked]
    assert sum(read) <= share * len(asked) + 1e-6
    assert sum(read) == demand_of(asked).read(cut)
    urgency = [(rank, -(score or 0.0)) for rank, score in asked]
    countable = [not (rank == TRIAGE and score is None) for rank, score in asked]
    last = max((urgency[i] for i in range(len(asked)) if read[i]), default=(-1, 0.0))
    assert all(read[i] for i in range(len(asked)) if countable[i] and urgency[i] <= last)


@given(ASKED, st.floats(0, 1), st.randoms())
def test_the_order_of_the_input_does_not_matter(
    asked: list[tuple[int, float | None]], share: float, dice: random.Random
) -> None:
    shuffled = dice.sample(asked, len(asked))
    assert within_share(demand_of(asked), share) == within_share(demand_of(shuffled), share)


def test_a_whole_budget_reads_everything_with_text_and_none_reads_nothing() -> None:
    demand = demand_of([(0, 0.5), (TRIAGE, 0.0), (TRIAGE, None)])
    assert demand.read(within_share(demand, 1.0)) == 2
    assert demand.read(within_share(demand, 0.0)) == 0


@pytest.mark.parametrize(
    ("tier", "is_flagged", "reasons", "rank"),
    [
        ("standard", False, [], "triage"),
        ("focused", True, ["1 flags: urgency"], "focused"),
        ("focused", False, ["reading backwards from m3"], "backwards"),
        ("deep", False, ["latency drop"], "deep"),
        ("deep_with_context", False, ["thread signal: cycling"], "deep_with_context"),
    ],
)
def test_the_order_in_which_a_budget_is_spent(tier: str, is_flagged: bool, reasons: list[str], rank: str) -> None:
    assert rank_of(tier, is_flagged, reasons) == RANKS.index(rank)  # type: ignore[arg-type]


def scored(score: float) -> Scan:
    return Scan(message_id="", triage=score)


def routed(share: float | None, *lines: tuple[str, Scan], recall: float | None = None) -> tuple[Route, ...]:
    conversation, scans = thread(*lines)
    quiet = ThreadScan(conversation="c")
    ranks = propose(conversation, scans, quiet, POLICY).ranks
    demand = demand_of([(rank, scan.triage) for rank, scan in zip(ranks, scans, strict=True)])
    cut = for_recall(0.3, 0.9, recall) if recall else within_share(demand, share or 0.0)
    return route(conversation, scans, quiet, POLICY, cut=cut)


def test_triage_alone_is_read_by_itself_and_says_by_how_much() -> None:
    result = routed(0.5, ("ann", scored(0.62)), ("ben", scored(0.41)), ("cyd", scored(0.2)), ("dan", scored(0.1)))
    assert [each.tier for each in result] == ["focused", "focused", "standard", "standard"]
    assert result[0].reasons == ("triage 0.620 ≥ 0.410 (budget of 50% of the messages)",)
    assert (result[0].depth, result[0].width, result[2].depth) == ("standard", "message", "skip")


def test_flags_come_before_triage_and_what_a_budget_cuts_keeps_its_tier_and_says_so() -> None:
    lines = [("ann", scored(0.9)), ("ben", flagged(1)), ("cyd", flagged(4)), ("dan", QUIET)]
    small = routed(0.25, *lines)
    assert [each.depth for each in small] == ["skip", "skip", "thorough", "skip"]
    assert [each.tier for each in small] == ["standard", "focused", "deep", "standard"]
    assert "left out: budget of 25% of the messages" in small[1].reasons
    assert [each.depth for each in routed(0.75, *lines)] == ["standard", "standard", "thorough", "skip"]


def test_a_recall_target_reads_all_flags_and_triage_from_the_models_threshold() -> None:
    lines = [("ann", scored(0.3)), ("ben", scored(0.299)), ("cyd", flagged(1))]
    result = routed(None, *lines, recall=0.9)
    assert [each.tier for each in result] == ["focused", "standard", "focused"]
    assert result[0].reasons == ("triage 0.300 ≥ 0.300 (recall 0.90 on the triage model's labels)",)
    assert "the most it reached; 0.99 was asked for" in for_recall(0.0, 0.95, 0.99).why


def test_the_audit_sample_is_drawn_from_everything_that_is_left_out() -> None:
    conversation, scans = thread(("ann", flagged(1)), ("ben", QUIET))
    result = route(conversation, scans, ThreadScan(conversation="c"), POLICY, rate=1.0, cut=NOTHING)
    assert [(each.tier, each.sampled, each.width) for each in result] == [
        ("focused", True, "message"),
        ("standard", True, "message"),
    ]
