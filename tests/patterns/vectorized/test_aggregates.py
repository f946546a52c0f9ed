"""Exact sums: the loops and arrays of the engine give the bits that the reference's whole numbers give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undersong.patterns.language import windows
from undersong.patterns.vectorized import aggregates, exact_sum
from undersong.patterns.vectorized.layout import ALL_BOUND

SCORE = st.one_of(st.integers(0, 1000).map(lambda n: n / 1000), st.floats(2.0**-20, 1))
VALUES = st.lists(SCORE, min_size=1, max_size=20)


def bits(value: float | None) -> str:
    return repr(float("nan") if value is None else float(value))


@given(values=VALUES, function=st.sampled_from(("mean", "sum", "std", "slope", "min", "max")))
def test_a_settled_statistic_is_the_exact_one_rounded_once(values: list[float], function: str) -> None:
    rows, given_values = np.arange(len(values)), np.array(values)
    value, sure = (
        (aggregates.average(given_values, 0, rows, len(values), False), True)
        if function == "sum"
        else aggregates.result(aggregates.FUNCTIONS[function], given_values, 0, rows, len(values))
    )
    if sure:
        assert bits(value) == bits(windows.over(function, values))


MATCHES = st.lists(
    st.lists(
        st.tuples(st.one_of(SCORE, st.sampled_from((0.0, -0.0, float("nan"), 20.0, 1e-9))), st.integers(-1, 1)),
        max_size=12,
    ),
    min_size=1,
    max_size=8,
)


@given(matches=MATCHES, function=st.integers(0, 7), variable=st.sampled_from((0, 1, -1, ALL_BOUND)))
def test_all_matches_at_once_give_the_bits_of_one_after_the_other(
    matches: list[list[tuple[float, int]]], function: int, variable: int
) -> None:
    rows = [row for match in matches for row in match]
    values, bindings = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], dtype=np.int8)
    last = np.cumsum([len(match) for match in matches])
    first = last - [len(match) for match in matches]
    results = []
    for work in (aggregates.statistic.source, aggregates.statistic.plain):
        output, hard = np.full(len(matches), np.nan), np.zeros(len(matches), dtype=np.bool_)
        work(function, variable, first, first, last, bindings, values, output, hard)
        results.append(([bits(value) for value in np.where(hard, np.nan, output)], hard.tolist()))
    assert results[0] == results[1]


def test_ties_between_two_results_are_settled_where_the_quotient_is_exact() -> None:
    values = [0.243, 0.302, 0.253, 0.175, 0.154, 0.356, 0.056, 0.113]
    value, sure = aggregates.trend(np.array(values), 0, np.arange(8), 8)
    assert sure
    assert value == windows.over("slope", values)


def test_equal_values_have_no_spread_and_no_trend() -> None:
    values, rows = np.full(7, 0.1), np.arange(7)
    assert aggregates.spread(values, 0, rows, 7) == (0.0, True)
    assert aggregates.trend(values, 0, rows, 7) == (0.0, True)


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
def test_a_single_quotient_is_that_of_the_arrays(values: list[float]) -> None:
    sums, number = exact_sum.running(np.array(values)).at(np.arange(1, len(values) + 1)), np.arange(1, len(values) + 1)
    single = [exact_sum.quotient(*parts, float(n)) for *parts, n in zip(*sums, number, strict=True)]
    assert single == exact_sum.mean(sums, number).tolist()


@pytest.mark.parametrize("value", [2.0**-80, 1e20])
def test_what_the_limbs_cannot_hold_is_left_to_the_reference(value: float) -> None:
    with pytest.raises(exact_sum.NotVectorizable):
        exact_sum.limbs(np.array([value]))
