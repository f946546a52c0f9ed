"""Exact sums: the loops and arrays of the engine give the bits that the reference's whole numbers give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undersong.patterns.language import windows
from undersong.patterns.vectorized import exact_sum, statistics
from undersong.patterns.vectorized.paths import sized

SCORE = st.one_of(st.integers(0, 1000).map(lambda n: n / 1000), st.floats(2.0**-20, 1))
VALUES = st.lists(SCORE, min_size=1, max_size=20)


def bits(value: float | None) -> str:
    return repr(float("nan") if value is None else float(value))


@given(values=VALUES, function=st.sampled_from(("mean", "sum", "std", "slope", "min", "max")))
def test_a_settled_statistic_is_the_exact_one_rounded_once(values: list[float], function: str) -> None:
    rows, given_values = np.arange(len(values)), np.array(values)
    value, sure = (
        (statistics.average(given_values, 0, rows, len(values), False), True)
        if function == "sum"
        else statistics.result(statistics.FUNCTIONS[function], given_values, 0, rows, len(values))
    )
    if sure:
        assert bits(value) == bits(windows.over(function, values))


def test_ties_between_two_results_are_settled_where_the_quotient_is_exact() -> None:
    values = [0.243, 0.302, 0.253, 0.175, 0.154, 0.356, 0.056, 0.113]
    value, sure = statistics.trend(np.array(values), 0, np.arange(8), 8)
    assert sure
    assert value == windows.over("slope", values)


def test_equal_values_have_no_spread_and_no_trend() -> None:
    values, rows = np.full(7, 0.1), np.arange(7)
    assert statistics.spread(values, 0, rows, 7) == (0.0, True)
    assert statistics.trend(values, 0, rows, 7) == (0.0, True)


@given(values=VALUES, size=st.integers(1, 5))
def test_running_sums_give_every_window_exactly(values: list[float], size: int) -> None:
    running_sums = exact_sum.running(np.array(values))
    last = np.arange(size, len(values) + 1)
    within = running_sums.at(last) - running_sums.at(last - size)
    expected = [values[i - size : i] for i in last.tolist()]
    assert exact_sum.mean(within, np.full(len(last), size)).tolist() == [
        windows.over("mean", each) for each in expected
    ]
    assert exact_sum.total(within).tolist() == [windows.over("sum", each) for each in expected]


@given(values=VALUES)
def test_the_loops_and_the_arrays_are_the_same(values: list[float]) -> None:
    parts = [np.zeros(len(values) + 1, dtype=np.int64) for _ in range(3)]
    assert exact_sum._running(np.array(values), *parts)
    by_arrays = exact_sum.running(np.array(values))
    assert all((one == other).all() for one, other in zip(parts, by_arrays, strict=True))
    number = np.arange(len(values) + 1)
    assert np.array_equal(exact_sum._quotients(*parts, number), exact_sum.mean(by_arrays, number), equal_nan=True)


@pytest.mark.parametrize("value", [2.0**-80, 1e20])
def test_what_the_limbs_cannot_hold_is_left_to_the_reference(value: float) -> None:
    with pytest.raises(exact_sum.NotVectorizable):
        exact_sum.limbs(np.array([value]))


@given(values=VALUES, function=st.sampled_from(("mean", "std", "slope")))
def test_a_rough_statistic_says_between_what_the_exact_one_lies(values: list[float], function: str) -> None:
    size = len(values)
    low, high = np.full(1, np.nan), np.full(1, np.nan)
    path = sized(np.zeros(1, dtype=np.int64), np.array([size]))
    path.bindings[:] = 0
    statistics.rough.plain(statistics.FUNCTIONS[function], 0, *path, np.array(values), low, high)
    if size == 1:
        assert np.isnan(low[0])
        return
    exact = windows.over(function, values)
    assert exact is not None
    assert low[0] <= exact <= high[0]
    assert high[0] - low[0] < (1e-4 if function == "std" else 1e-8)


def test_nothing_rough_is_said_of_large_values() -> None:
    low, high = np.full(1, np.nan), np.full(1, np.nan)
    path = sized(np.zeros(1, dtype=np.int64), np.array([3]))
    path.bindings[:] = 0
    statistics.rough.plain(statistics.STD, 0, *path, np.array([0.5, 1e200, 1]), low, high)
    assert np.isnan(low[0])


@given(values=st.lists(st.floats(0, 1), min_size=2, max_size=12), function=st.sampled_from(("mean", "std", "slope")))
def test_matches_of_one_length_are_rough_alike(values: list[float], function: str) -> None:
    low, high = np.full(2, np.nan), np.full(2, np.nan)
    padded = np.array([*values, np.nan])
    statistics.rough_whole.plain(statistics.FUNCTIONS[function], len(values), np.array([0, 1]), padded, low, high)
    exact = windows.over(function, values)
    assert exact is not None
    assert low[0] <= exact <= high[0]
    assert high[0] - low[0] < (1e-4 if function == "std" else 1e-8)
    assert np.isnan(low[1])  # a value in it is unknown


def test_nothing_rough_is_said_of_large_values_in_matches_of_one_length() -> None:
    low, high = np.full(1, np.nan), np.full(1, np.nan)
    statistics.rough_whole.plain(statistics.STD, 3, np.zeros(1, dtype=np.int64), np.array([0.5, 1e200, 1]), low, high)
    assert np.isnan(low[0])
