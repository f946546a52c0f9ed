"""Columns: windows over earlier rows, compared with plain sums over lists."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.patterns.rulebox import match_ids, rule
from undersong.models import Row
from undersong.patterns.detect import detect
from undersong.patterns.language.windows import over
from undersong.patterns.live.detector import LiveDetector
from undersong.patterns.reference.columns import derive
from undersong.patterns.reference.partitions import partitions, timelines
from undersong.patterns.tools.rule_tests import table

SCORES = st.lists(st.floats(0, 1).map(lambda score: round(score, 3)), min_size=1, max_size=12)


def column(text: str, rows: list[Row] | str, target: str | None = None) -> list[object]:
    """The values of one column, row by row, in kira's sequence to ``target``."""
    by = ["agent", "target"] if target else ["agent"]
    chosen = rule("X", {"columns": {"c": text}, "partition_by": by}, X="c > 0 or manipulation >= 0")
    (timeline,) = (each for each in timelines(table(rows) if isinstance(rows, str) else rows) if each.agent == "kira")
    partition = next(each for each in partitions(timeline, by) if each.target == target)
    return [cells["c"] for cells in derive(partition, chosen.columns, {})]


def scores(values: list[float]) -> list[Row]:
    return [
        Row(id=str(i), agent="kira", position=i, state="scored", traits={"manipulation": value})
        for i, value in enumerate(values)
    ]


def slope(values: list[float]) -> float:
    return statistics.linear_regression(range(len(values)), values).slope


PLAIN = {
    "mean": statistics.fmean,
    "std": statistics.pstdev,
    "sum": math.fsum,
    "min": min,
    "max": max,
    "slope": slope,
    "delta": lambda values: values[-1] - values[0],
    "count_distinct": lambda values: len(set(values)),
}


@given(values=SCORES, size=st.integers(2, 5), function=st.sampled_from(sorted(PLAIN)))
def test_a_window_of_rows_is_the_plain_statistic_of_the_rows_before(
    values: list[float], size: int, function: str
) -> None:
    column_values = column(f"{function}(manipulation, last {size} rows)", scores(values))
    for i, value in enumerate(column_values):
        if i < size:
            assert value is None
        else:
            assert value == pytest.approx(PLAIN[function](values[i - size : i]), abs=1e-12)


@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=8), size=st.integers(1, 4))
def test_a_sliding_mean_forgets_exactly_what_left_it(values: list[float], size: int) -> None:
    sliding = column(f"mean(manipulation, last {size})", scores(values))
    fresh = [over("mean", values[i - size : i]) if i >= size else None for i in range(len(values))]
    assert sliding == fresh


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mean(manipulation, so far)", [None, 0.1, 0.2, 0.3]),
        ("mean(manipulation, so far, at least 2)", [None, None, 0.2, 0.3]),
        ("mean(manipulation, last 2, lag 1)", [None, None, None, 0.2]),
        ("mean(manipulation, last 1, where manipulation < 0.2)", [None, 0.1, 0.1, 0.1]),
        ("mean(manipulation, last 1 day)", [None, 0.1, 0.3, 0.5]),
        ("count(manipulation > 0.2, so far)", [0, 0, 1, 2]),
        ("count(manipulation > 0.2, last 2)", [None, None, 1, 2]),
        ("rank(manipulation, last 3)", [None, None, None, 1.0]),
        ("ewma(manipulation, last 1)", [None, 0.1, 0.3, 0.5]),
        ("ewma(manipulation, last 3)", [None, None, None, 0.35]),
        ("manipulation - mean(manipulation, last 1)", [None, 0.2, 0.2, 0.2]),
        ("gap_hours", [None, 24, 24, 24]),
    ],
)
def test_columns_see_earlier_rows_only(text: str, expected: list[object]) -> None:
    rows = """
        id who  day manipulation
        1  kira 0   .1
        2  kira 1   .3
        3  kira 2   .5
        4  kira 3   .7
    """
    assert column(text, rows) == pytest.approx(expected)


def test_unread_rows_and_missing_scores_are_not_in_a_window() -> None:
    rows = """
        id who  manipulation compassion
        1  kira .1 .5
        2  kira ?  ?
        3  kira -  .5
        4  kira .3 .5
        5  kira .5 .5
    """
    assert column("mean(manipulation, last 2)", rows) == pytest.approx([None, None, None, 0.2])


ELSEWHERE = """
    id who     day manipulation
    1  kira>al 0   .8
    2  kira    1   .6
    3  bo>al   2   .9
    4  kira>bo 3   .2
    5  kira>al 4   .4
    6  kira>bo 5   .3
"""


@pytest.mark.parametrize(
    ("scope", "expected"),
    [("partition", [None, 0.6, 0.4]), ("agent", [0.8, 0.7, 0.5]), ("others", [0.8, 0.8, 0.6])],
)
def test_a_window_ranges_over_partition_agent_or_others(scope: str, expected: list[object]) -> None:
    assert column(f"mean(manipulation, so far, over {scope})", ELSEWHERE, target="bo") == pytest.approx(expected)


def test_a_column_may_use_an_earlier_one() -> None:
    rows = scores([0.1, 0.3, 0.6, 1.0])
    chosen = rule(
        "X",
        {"columns": {"step": "manipulation - mean(manipulation, last 1)", "steps": "mean(step, last 2)"}},
        X="steps > 0",
    )
    (partition,) = partitions(timelines(rows)[0], ["agent"])
    derived = derive(partition, chosen.columns, {})
    assert [cells["steps"] for cells in derived] == pytest.approx([None, None, None, 0.25])


def test_so_far_over_ten_thousand_rows_is_quick_enough_to_be_a_test() -> None:
    column_values = column("std(manipulation, so far)", scores([0.25, 0.75] * 5000))
    assert column_values[-2] == 0.25


@pytest.mark.parametrize("function", ["mean", "std", "min", "sum", "slope", "delta", "ewma"])
def test_a_result_that_no_number_can_hold_is_unknown_in_a_batch_and_live(function: str) -> None:
    rows = scores([0.5, 1.0, 0.25, 0.75])
    text = f"{function}((manipulation - 0.6) * 1e308 * 1.7, last 3)"
    chosen = rule("X+", {"columns": {"c": text, "d": f"{function}(c * 1e308, last 2)"}}, X="c is null or d is null")
    assert len(detect(rows, [chosen]).findings) == 1
    live = LiveDetector([chosen])
    live.extend(rows)
    live.finish(settle=False)
    assert live.findings() == detect(rows, [chosen]).findings


def test_absent_says_that_no_row_of_the_window_fits() -> None:
    rows = """
        id who  manipulation
        1  kira .9
        2  kira .1
        3  kira .1
        4  kira .1
    """
    quiet = rule("A", {"columns": {"quiet": "absent(manipulation > 0.5, last 2 rows)"}}, A="quiet")
    assert match_ids(quiet, rows) == ["4"]
    alone = rule("A B?", {"having": ["absent(B)"]}, A="manipulation < 0.5", B="manipulation < 0.5")
    assert match_ids(alone, rows) == ["4"]
