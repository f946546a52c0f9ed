"""What to review next: a draw with known probabilities, the same for one seed, which no choice of a person bends."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import msgspec
import pytest

from undersong.models import Finding, decisions_of
from undersong.stores.protocol import Store
from undersong.stores.review_queue import Order, clock, decide, next_places, queue
from undersong.stores.reviewing import kind_and_id

from .deeds import NOON, make_finding
from .test_reviews import grown, make_claim, make_lead


def fill(store: Store, number: int = 12) -> list[Finding]:
    findings = [
        msgspec.structs.replace(make_finding(f"f{n:02}", "c1"), confidence=0.5 + n / 24, message_ids=(f"m{n}", "x"))
        for n in range(number)
    ]
    low = msgspec.structs.replace(make_finding("low", "c1"), confidence=0.2)
    store.put_findings([], [*findings, low, make_finding("none", "c1")])
    return findings


def names(store: Store, **options: object) -> list[str]:
    return [kind_and_id(place.candidate.item)[1] for place in queue(store, **options)]  # type: ignore[arg-type]


def test_each_pool_has_its_own_and_the_order_follows_from_the_seed(store: Store) -> None:
    findings = fill(store)
    store.put_claims([], [make_claim(), make_claim("m1", state="backed")])
    store.put_leads([], [make_lead(score=99.0)])
    assert sorted(names(store)) == [each.finding_id for each in findings]
    assert names(store) == names(store)
    assert names(store) != names(store, seed=1)
    assert sorted(names(store, pool="unlikely")) == ["low", "none"]
    assert names(store, pool="claim") == [make_claim().claim_id]
    assert names(store, pool="lead") == ["lead-kira"]


def test_probabilities_are_the_weights_over_those_that_are_left(store: Store) -> None:
    fill(store)
    places = list(queue(store))
    assert [place.draw.pool for place in places] == list(range(12, 0, -1))
    assert [place.draw.propensity for place in places] == pytest.approx([1 / left for left in range(12, 0, -1)])
    uncertain = list(queue(store, order="least_certain"))
    assert {place.draw.drawn for place in uncertain} == {"least_certain"}
    assert uncertain[-1].draw.propensity == 1
    assert max(place.draw.propensity or 0 for place in uncertain[:6]) > 1 / 6


@pytest.mark.parametrize("order", ["random", "least_certain"])
def test_what_strikes_first_does_so_as_often_as_its_weight_says(order: Order) -> None:
    weights = {"a": 1.0, "b": 0.5, "c": 0.1}
    first = Counter(
        min(weights, key=lambda name: clock(("finding", name), weights[name], seed, order)) for seed in range(4_000)
    )
    for name, weight in weights.items():
        assert first[name] / 4_000 == pytest.approx(weight / 1.6, abs=0.03)


def test_the_next_one_counts_as_drawn_and_another_as_chosen(store: Store) -> None:
    findings = {each.finding_id: each for each in fill(store)}
    first, second, *_, last = names(store)
    assert decide(store, findings[first], "confirmed", NOON).drawn == "random"
    review = decide(store, findings[last], "rejected", NOON + timedelta(minutes=1), note="a play", reviewer="ann")
    assert (review.drawn, review.propensity, review.pool) == ("chosen", None, None)
    assert (review.note, review.reviewer, review.agent, review.confidence) == (
        "a play", "ann", "kira", findings[last].confidence,
    )  # fmt: skip
    assert names(store)[0] == second
    assert last in names(store)
    assert last not in [kind_and_id(place.candidate.item)[1] for place in next_places(store, count=20)]


def test_what_was_chosen_before_the_draw_came_upon_it_counts_from_then_on(store: Store) -> None:
    findings = {each.finding_id: each for each in fill(store)}
    order = names(store)
    decide(store, findings[order[0]], "rejected", NOON)
    decide(store, findings[order[2]], "confirmed", NOON + timedelta(minutes=1))
    decide(store, findings[order[1]], "confirmed", NOON + timedelta(minutes=2))
    assert [each.drawn for each in store.reviews("finding", order[2])] == ["chosen"]
    decide(store, findings[order[3]], "rejected", NOON + timedelta(minutes=3))
    again = list(store.reviews("finding", order[2]))
    assert {(each.drawn, each.verdict, each.pool, each.at) for each in again} == {
        ("chosen", "confirmed", None, NOON + timedelta(minutes=1)),  # and the draw does not move its time
        ("random", "confirmed", 10, NOON + timedelta(minutes=1)),
    }
    assert len(decisions_of(again)) == 1
    assert names(store) == order[4:]


def test_a_finding_that_grew_is_asked_again(store: Store) -> None:
    finding = msgspec.structs.replace(grown(make_finding("f", "c1"), "m0", "m1"), confidence=0.9)
    store.put_findings([], [finding])
    decide(store, finding, "confirmed", NOON)
    assert next_places(store) == []
    more = msgspec.structs.replace(finding, message_ids=("m0", "m1", "m2"), message_conversations=("c1",) * 3)
    store.put_findings([], [more])
    (place,) = next_places(store)
    assert place.candidate.standing
    assert place.candidate.standing.stale
    assert decide(store, more, "rejected", NOON + timedelta(days=1)).drawn == "random"
    assert next_places(store) == []
    assert len(list(store.reviews())) == 2
