"""Sums over all earlier rows, some rows at a time: the bits that whole arrays give."""

from __future__ import annotations

import numpy as np
import pytest

from undersong.patterns.language.expressions import Field, Window
from undersong.patterns.vectorized import jit, rolling
from undersong.patterns.vectorized.exact_sum import NotVectorizable
from undersong.patterns.vectorized.rolling import WindowEvents, over_sequences

MEAN = Window("mean", Field("x"))


@pytest.fixture
def by_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loops of large tables for small ones, as they are (nothing is compiled)."""
    monkeypatch.setattr(rolling, "machine", lambda _size, *_kernels: True)
    monkeypatch.setattr(jit, "machine", lambda _size, *_kernels: False)


def sample_sequences() -> tuple[WindowEvents, np.ndarray, np.ndarray, np.ndarray]:
    """Values of 200 rows, some of which do not count, in sequences of which some are empty and some of one row."""
    dice = np.random.default_rng(6)
    values = np.where(dice.random(200) < 0.2, np.nan, dice.random(200).round(3))
    bounds = np.array([0, 0, 1, 7, 7, 60, 64, 199, 200])
    return WindowEvents(values, ~np.isnan(values)), bounds, np.arange(200), np.ones(len(bounds) - 1, dtype=np.bool_)


@pytest.mark.parametrize("asked", [MEAN, Window("sum", Field("x")), Window("mean", Field("x"), at_least=5)])
def test_sums_that_go_along_are_those_of_arrays(asked: Window, request: pytest.FixtureRequest) -> None:
    expected = over_sequences(asked, *sample_sequences())
    request.getfixturevalue("by_loops")
    actual = over_sequences(asked, *sample_sequences())
    assert actual.tobytes() == expected.tobytes()


@pytest.mark.usefixtures("by_loops")
def test_a_value_that_the_limbs_cannot_hold_is_seen_only_where_it_counts() -> None:
    events, bounds, times, timed = sample_sequences()
    events.values[100] = 2.0**-80
    events.counted[100] = False
    over_sequences(MEAN, events, bounds, times, timed)
    events.counted[100] = True
    with pytest.raises(NotVectorizable):
        over_sequences(MEAN, events, bounds, times, timed)
