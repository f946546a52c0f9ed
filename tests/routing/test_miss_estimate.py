"""What the router left out: the interval is exact, covers in simulation, and says when it is a count or unknown."""

from __future__ import annotations

import random

import msgspec
import pytest

from undersong.models import Missed, Row, decode, encode
from undersong.report.narrative import missed_words
from undersong.routing.budget import Census, Stratum, clopper_pearson, estimate, is_harmful


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 30, 0.0, 0.1157), (1, 30, 0.0008, 0.1722), (5, 10, 0.1871, 0.8129), (30, 30, 0.8843, 1.0), (0, 1, 0.0, 0.975)],
)
def test_the_interval_is_the_textbook_one(successes: int, trials: int, low: float, high: float) -> None:
    assert clopper_pearson(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_the_interval_stays_finite_for_large_samples() -> None:
    low, high = clopper_pearson(1_200, 10_000)
    assert 0.113 < low < 0.12 < high < 0.127


@pytest.mark.parametrize(("messages", "rate", "share"), [(600, 0.1, 0.03), (2000, 0.05, 0.1)])
def test_the_interval_of_the_number_covers_at_least_as_often_as_it_says(
    messages: int, rate: float, share: float
) -> None:
    dice, covered, runs = random.Random(7), 0, 300
    for _ in range(runs):
        harmful = [dice.random() < share for _ in range(messages)]
        drawn = [each for each in harmful if dice.random() < rate]
        estimated = estimate(Stratum(messages, len(drawn), sum(drawn)), routed_harmful=5)
        assert estimated.number
        covered += estimated.number[1] <= sum(harmful) <= estimated.number[2]
    assert covered / runs >= 0.95


def test_what_was_read_is_certain() -> None:
    estimated = estimate(Stratum(20, 15, 3), 4)
    assert estimated.number
    value, low, high = estimated.number
    assert value == 4
    assert low >= 3
    assert high <= 8
    assert estimated.share
    assert estimated.share[0] == 0.5


def row(number: int, *, width: str = "none", sampled: bool = False, bad: float | None = None) -> Row:
    traits = None if bad is None else {"manipulation": bad, "virtue": 0.9}
    state = "unread" if bad is None else "scored"
    return Row(id=f"m{number}", width=width, sampled=sampled, traits=traits, state=state)  # type: ignore[arg-type]


def census(*rows: Row) -> Census:
    counted = Census()
    for entry in rows:
        counted.add(entry)
    return counted


def test_where_everything_was_read_it_is_a_count() -> None:
    estimated = census(row(0, bad=0.7), row(1, bad=0.1), row(2, width="message", bad=0.8)).missed()
    assert (estimated.exact, estimated.left_out, estimated.harmful, estimated.routed_harmful) == (True, 2, 1, 1)
    assert estimated.number == (1.0, 1.0, 1.0)
    assert "an exact count" in missed_words(estimated)[0]


def test_where_nothing_of_it_was_read_nothing_is_claimed() -> None:
    estimated = census(row(0), row(1)).missed()
    assert (estimated.exact, estimated.number, estimated.rate, estimated.share) == (False, None, None, None)
    assert "not known" in missed_words(estimated)[0]


def test_what_the_router_called_for_and_nobody_scored_is_told_as_neither_harmful_nor_harmless() -> None:
    read = row(0, width="message", bad=0.1)
    refused = msgspec.structs.replace(row(1, width="message"), state="refused")
    estimated = census(read, refused, row(2, width="message"), row(3, width="message", sampled=True, bad=0.1)).missed()
    assert (estimated.routed_unread, estimated.routed_harmful) == (2, 0)
    assert missed_words(estimated)[-1].startswith("Beside these, 2 messages that the router called for got no scores")
    assert not any("got no scores" in each for each in missed_words(census(read).missed()))


def test_a_sample_gives_an_estimate_with_its_interval_in_words() -> None:
    rows = [row(n) for n in range(90)] + [row(n, width="message", sampled=True, bad=0.1) for n in range(90, 100)]
    estimated = census(*rows).missed()
    assert (estimated.left_out, estimated.sampled, estimated.harmful, estimated.exact) == (100, 10, 0, False)
    assert estimated.number
    assert estimated.number[0] == estimated.number[1] == 0
    assert 25 < estimated.number[2] < 31
    assert "Estimated harmful among all of these: 0 [0, " in missed_words(estimated)[1]


def test_a_blank_message_is_nobodys_and_a_good_trait_is_no_harm() -> None:
    counted = Census()
    counted.add(row(0), blank=True)
    assert counted.missed().left_out == 0
    assert not is_harmful(row(1, bad=0.49))
    assert is_harmful(row(1, bad=0.5))


@pytest.mark.parametrize("stratum", [Stratum(0, 0, 0), Stratum(112, 97, 1), Stratum(40, 30, 30), Stratum(3, 3, 1)])
def test_an_estimate_that_was_read_back_is_written_as_it_was(stratum: Stratum) -> None:
    written = encode(estimate(stratum, routed_harmful=0))
    assert encode(decode(written, Missed)) == written
