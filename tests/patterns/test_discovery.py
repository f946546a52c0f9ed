"""q: Benjamini and Hochberg against a slow reference, and which pairs count as tests."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.patterns.rulebox import rule
from undersong.patterns.cases import table
from undersong.patterns.discovery import false_discovery, pairs
from undersong.patterns.partitions import timelines

VALUES = st.lists(st.sampled_from([0.001, 0.002, 0.01, 0.04, 0.04, 0.3, 1.0]), max_size=12)


def slow(values: list[float], family: int) -> list[float]:
    """The least level at which the step-up procedure rejects each value, tried at every level that can matter."""
    every = [*values, *[1.0] * (family - len(values))]
    levels = sorted({1.0, *(value * family / rank for value in every for rank in range(1, family + 1))})

    def rejected(level: float) -> float:
        ranked = sorted(every)
        passing = [v for rank, v in enumerate(ranked, 1) if v * family / rank <= level]
        return max(passing, default=-1.0)

    return [min(1.0, next(level for level in levels if rejected(level) >= value)) for value in values]


@given(values=VALUES, more=st.integers(0, 8))
def test_q_is_the_least_level_at_which_the_procedure_rejects(values: list[float], more: int) -> None:
    family = len(values) + more
    assert false_discovery(values, family) == pytest.approx(slow(values, family))


def test_pairs_without_a_match_count_as_one() -> None:
    assert false_discovery([0.01, 0.02], 2) == [0.02, 0.02]
    assert false_discovery([0.01, 0.02], 10) == pytest.approx([0.1, 0.1])
    assert false_discovery([0.5, 0.001], 100) == pytest.approx([1.0, 0.1])
    assert false_discovery([], 5) == []
    with pytest.raises(ValueError, match="3 p-values for 2 tests"):
        false_discovery([0.1, 0.1, 0.1], 2)


def test_acting_on_q_keeps_the_false_share_where_nothing_is_true() -> None:
    dice, runs = random.Random(4), 1500
    false = sum(min(false_discovery([dice.random() for _ in range(20)], 20)) <= 0.1 for _ in range(runs))
    assert false / runs <= 0.1 + 3 * (0.1 * 0.9 / runs) ** 0.5


ROWS = """
    who     day manipulation
    kira>bo 0   .5
    kira    1   .5
    kira    2   .5
    kira>bo 3   ?
    kira>al 4   ?
    kira>cy 5   .5
    dan>bo  6   .5
"""


@pytest.mark.parametrize(
    ("pattern", "by", "count"),
    [
        ("A", ("agent", "target"), 4),  # kira in public, to bo, to cy; dan to bo; nothing of al was read
        ("A A", ("agent", "target"), 3),  # dan wrote once
        ("A{3}", ("agent", "target"), 2),  # two public rows and one to bo, or to cy
        ("A{4}", ("agent", "target"), 0),
        ("A{4}", ("agent",), 1),
        ("A", ("agent",), 2),
    ],
)
def test_a_pair_is_a_test_where_the_rule_could_match(pattern: str, by: tuple[str, ...], count: int) -> None:
    probe = rule(pattern, {"partition_by": list(by)}, A="manipulation > 0.9")
    assert pairs(probe, timelines(table(ROWS))) == count


def test_rows_that_the_rule_leaves_out_make_no_test() -> None:
    probe = rule("A", {"where": "directed"}, A="manipulation > 0.9")
    assert pairs(probe, timelines(table("who manipulation\nkira .5\n"))) == 0
