"""Figures over reviews: weighted by the draw, honest about what is not known, and right on average."""

from __future__ import annotations

import random
from statistics import mean
from typing import Any

import pytest

from tests.stores.test_reviews import make_review
from undersong.models import Review
from undersong.report.review_figures import ReviewFigure, UnreviewedItem, figures, weights_of, wilson
from undersong.stores.conversation_order import OrderedFinding, conversation_places


def drawn(id_: str, verdict: str, minute: int, pool: int, share: float | None = None, **other: Any) -> Review:
    fields: dict[str, Any] = {"drawn": "random", "confidence": 0.9, "pattern": "darvo", "level": "high"} | other
    return make_review(id_, minute, verdict, propensity=share or 1 / pool, pool=pool, **fields)


def likely(reviews: list[Review], left: int = 1) -> ReviewFigure:
    (figure,) = figures(
        reviews, [UnreviewedItem(pool="likely", pattern="darvo", level="high", confidence=0.9)] * left
    ).pools
    return figure


def test_under_ten_decisions_nothing_is_known() -> None:
    reviews = [drawn(f"f{n}", "confirmed", n, 40 - n) for n in range(9)] + [drawn("u", "unsure", 9, 31)]
    figure = likely(reviews)
    assert (figure.confirmed, figure.unsure, figure.counted, figure.value, figure.low) == (9, 1, 9, None, None)
    ten = likely([*reviews, drawn("x", "rejected", 10, 30)])
    assert (ten.counted, ten.value) == (10, 0.9)
    assert (ten.low, ten.high) == pytest.approx(wilson(0.9, 10), abs=1e-4)


def test_figures_are_as_if_what_was_withdrawn_had_not_been_decided() -> None:
    reviews = [drawn(f"f{n}", "confirmed", n, 40 - n, reviewer="ann") for n in range(11)]
    back = make_review("f3", 20, "withdrawn", reviewer="ann", confidence=0.9)
    assert figures([*reviews, back]) == figures([each for each in reviews if each.id != "f3"])
    other = make_review("f3", 20, "withdrawn", reviewer="bo", confidence=0.9)
    assert figures([*reviews, other]) == figures(reviews)
    again = drawn("f3", "rejected", 21, 29, reviewer="ann")
    assert likely([*reviews, back, again]).rejected == 1


def test_what_was_chosen_does_not_count_until_all_is_reviewed() -> None:
    reviews = [make_review(f"f{n}", n, "confirmed", confidence=0.9, pattern="darvo") for n in range(12)]
    assert likely(reviews).counted == 0
    whole = likely(reviews, left=0)
    assert (whole.counted, whole.value, whole.low, whole.high, whole.whole) == (12, 1.0, 1.0, 1.0, True)


def test_the_latest_word_on_a_thing_counts_with_the_weight_of_its_draw() -> None:
    reviews = [drawn(f"f{n}", "confirmed", n, 40 - n) for n in range(10)]
    changed = make_review("f0", 99, "rejected", confidence=0.9, pattern="darvo", reviewer="bo")
    figure = figures([*reviews, changed], [UnreviewedItem(pool="likely", pattern="darvo")])
    assert (figure.pools[0].value, figure.disputed, figure.chosen, figure.reviewed) == (0.9, 1, 0, 10)


def test_groups_are_by_rule_level_and_confidence() -> None:
    reviews = [
        drawn(f"f{n}", ("confirmed", "rejected")[n % 2], n, 40 - n, pattern=("darvo", "con_game")[n // 12],
              level=("high", "low")[n // 12], confidence=(0.97, 0.6)[n // 12])
        for n in range(24)
    ]  # fmt: skip
    made = figures([*reviews, drawn("low", "rejected", 30, 9, confidence=0.1)])
    assert [(each.group, each.counted) for each in made.rules] == [("con_game", 12), ("darvo", 12)]
    assert [each.group for each in made.levels] == ["high", "low"]
    assert [(each.group, each.stated) for each in made.reliability] == [
        ("0.00 to 0.25", 0.1), ("0.50 to 0.70", 0.6), ("0.95 to 1.00", 0.97),
    ]  # fmt: skip
    assert [each.group for each in made.pools] == ["likely", "unlikely"]


def test_equal_draws_have_equal_weights() -> None:
    assert weights_of([(1 / left, left) for left in range(20, 10, -1)]) == pytest.approx([1.0] * 10)
    assert weights_of([]) == []
    assert all(weight >= 0 for weight in weights_of([(0.9, 20), (0.01, 19), (0.3, 18)]))


@pytest.mark.parametrize("favour", [1.0, 9.0])
def test_the_figure_is_right_on_average_and_its_interval_holds_what_it_says(favour: float) -> None:
    """200 findings of which half is uncertain and .4 true, half .9: drawn alike, or the uncertain ones more often."""
    truth = [(random.Random(n).random() < (0.4 if n < 100 else 0.9)) for n in range(200)]
    share, values, held_true = mean(truth), [], 0
    for seed in range(150):
        rng, left, reviews = random.Random(seed), list(range(200)), []
        for minute in range(60):
            weights = [favour if n < 100 else 1.0 for n in left]
            place = rng.choices(range(len(left)), weights)[0]
            n = left[place]
            verdict = "confirmed" if truth[n] else "rejected"
            reviews.append(drawn(f"f{n}", verdict, minute, len(left), weights[place] / sum(weights)))
            del left[place]
        figure = likely(reviews)
        assert figure.value is not None
        assert figure.low is not None
        assert figure.high is not None
        values.append(figure.value)
        held_true += figure.low <= share <= figure.high
    assert mean(values) == pytest.approx(share, abs=0.015)
    assert held_true / 150 > 0.9


def test_figures_over_draws_of_whole_conversations_are_right_on_average_and_their_intervals_hold() -> None:
    """80 conversations of 1 to 5 findings, right more often where there are more; the larger ones come sooner."""
    rng = random.Random(7)
    sizes = [1 + n % 5 for n in range(80)]
    truth = [[rng.random() < (0.3 if size < 3 else 0.85) for _ in range(size)] for size in sizes]
    share, values, wide = mean(right for talk in truth for right in talk), [], 0
    findings = [
        OrderedFinding(f"{n} {m}", f"c{n}", ("low", "critical")[n % 2], "darvo", "a", None)  # type: ignore[arg-type]
        for n, size in enumerate(sizes)
        for m in range(size)
    ]
    for seed in range(150):
        reviews = []
        for minute, (one, draw) in enumerate(conversation_places(findings, set(), seed)):
            if minute == 90:
                break
            number, place = (int(part) for part in one.id.split())
            verdict = "confirmed" if truth[number][place] else "rejected"
            rows = ((one.conversation, "m0", "h"),)
            reviews.append(drawn(one.id, verdict, minute, draw.pool or 0, draw.propensity, drawn=draw.drawn, rows=rows))
        figure = likely(reviews)
        assert figure.counted == 90
        assert figure.effective < 45  # what comes together is worth one
        values.append(figure.value or 0.0)
        wide += (figure.low or 0.0) <= share <= (figure.high or 0.0)
    assert mean(values) == pytest.approx(share, abs=0.02)
    assert wide / 150 > 0.9


def test_of_leads_there_is_a_share_once_all_are_decided_however_few() -> None:
    reviews = [make_review(f"l{n}", n, verdict, kind="lead") for n, verdict in enumerate(["confirmed", "rejected"])]
    (figure,) = figures(reviews, [UnreviewedItem(pool="lead", pattern="")]).pools
    assert (figure.counted, figure.value) == (0, None)
    (figure,) = figures(reviews).pools
    assert (figure.counted, figure.value, figure.whole) == (2, 0.5, True)
