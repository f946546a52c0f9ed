"""The audit sample: the same whatever else is in the run, and never fewer than the least where there are as many."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undersong.models import Message
from undersong.routing.budget import (
    BACKWARDS,
    NEVER,
    NOTHING,
    TRIAGE,
    UNSCORED,
    DemandHistogram,
    draws,
    level_of,
    within_share,
)

LEAST, RATE = 30, 0.01


def make_message(conversation: str, text: str = "hello") -> Message:
    return Message(id="1", conversation=conversation, position=0, author="ann", role="agent", text=text)


def demand_of(levels: list[int], numbers: np.ndarray, *, pieces: int = 3) -> DemandHistogram:
    """A demand that was told in pieces, as batches tell it."""
    demand = DemandHistogram(LEAST)
    for part in np.array_split(np.arange(len(levels)), pieces):
        demand.add(np.array(levels, dtype=np.int16)[part], numbers[part])
    return demand


def test_equal_ids_in_many_threads_are_drawn_apart_and_evenly() -> None:
    numbers = draws(0, [make_message(f"c{n}") for n in range(2000)])
    assert 140 < (numbers < 0.1).sum() < 260
    assert 0.47 < numbers.mean() < 0.53


def test_a_draw_is_the_hash_of_seed_conversation_and_id() -> None:
    digest = hashlib.sha256(b"7\0c\x001").digest()
    assert draws(7, [make_message("other"), make_message("c")])[1] == pytest.approx(
        int.from_bytes(digest[:8], "big") / 2**64
    )
    assert draws(8, [make_message("c")])[0] != draws(7, [make_message("c")])[0]


def test_a_message_without_text_is_never_drawn() -> None:
    assert draws(0, [make_message("a", " \n")]).tolist() == [NEVER]
    assert draws(0, []).tolist() == []


@pytest.mark.parametrize("unflagged", [1, 29, 30, 31, 300, 2_900, 20_000])
@pytest.mark.parametrize("seed", range(5))
def test_thirty_are_drawn_wherever_there_are_as_many(unflagged: int, seed: int) -> None:
    numbers = np.random.default_rng(seed).random(unflagged)
    rate = demand_of([UNSCORED] * unflagged, numbers).sample_rate(NOTHING, RATE)
    taken = int((numbers < rate).sum())
    assert taken == max(min(LEAST, unflagged), int((numbers < RATE).sum()))
    assert rate >= RATE


@given(st.integers(0, 2**32), st.integers(0, 400), st.floats(0, 1))
def test_the_rate_is_the_one_of_a_plain_sort_of_what_is_left_out(seed: int, size: int, share: float) -> None:
    dice = np.random.default_rng(seed)
    levels = dice.choice([level_of(0, 0.5), level_of(1, None), level_of(TRIAGE, 0.3), UNSCORED], size).tolist()
    numbers = np.where(dice.random(size) < 0.1, NEVER, dice.random(size))
    demand = demand_of(levels, numbers)
    cut = within_share(demand, share)
    left_out = np.sort(numbers[(np.array(levels, dtype=int) > cut.level) & (numbers < NEVER)])
    wanted = min(LEAST, len(left_out))
    assert (left_out < demand.sample_rate(cut, 0.0)).sum() == wanted


def test_what_another_thread_may_call_for_counts_where_it_ends_up() -> None:
    numbers = np.linspace(0.2, 0.9, 100)
    levels = [level_of(TRIAGE, 0.5)] * 100
    demand = demand_of(levels, np.full(100, NEVER))
    demand.resolve([0.5] * 60, numbers[:60], backwards=True)
    demand.resolve([0.5] * 40, numbers[60:], backwards=False)
    cut = within_share(demand, 0.6)
    assert (cut.rank, demand.read(cut)) == (BACKWARDS, 60)
    assert (numbers[60:] < demand.sample_rate(cut, RATE)).sum() == LEAST
