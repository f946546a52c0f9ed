"""Windows that keep nothing but sums give what a window that keeps every value gives."""

from __future__ import annotations

from copy import deepcopy
from random import Random

import pytest

from undersong.patterns.incremental.windows import live_window
from undersong.patterns.language.expressions import Window, parse
from undersong.patterns.reference.columns import Sliding

USUAL = (0.0, 0.1, 0.25, 0.5, 0.733, 1.0)
ODD = (1e-300, 5e-324, -1e300, 1e300, 2.0**-65, 1e18, 1.7e308)


def window(text: str) -> Window:
    tree = parse(text)
    assert isinstance(tree, Window)
    return tree


@pytest.mark.parametrize("function", ["mean", "sum", "std", "slope"])
@pytest.mark.parametrize("least", ["", ", at least 3"])
@pytest.mark.parametrize("values", [USUAL, USUAL + ODD], ids=["usual", "odd"])
def test_sums_so_far_are_those_of_all_values(function: str, least: str, values: tuple[float, ...]) -> None:
    chance = Random(7)
    asked = window(f"{function}(manipulation, so far, over agent{least})")
    for _ in range(40):
        live, sliding = live_window(asked), Sliding(asked)
        for row in range(12):
            assert live.at(row) == sliding.at(row)
            value = chance.choice(values)
            live.take(row, value)
            sliding.take(row, value)


def test_a_count_is_of_what_held() -> None:
    chance, asked = Random(8), window("count(manipulation > 0.5, so far, over agent)")
    live, sliding = live_window(asked), Sliding(asked)
    for row in range(50):
        assert live.at(row) == sliding.at(row)
        is_met = chance.random() < 0.4
        live.take(row, is_met)
        sliding.take(row, is_met)


@pytest.mark.parametrize("text", ["mean(manipulation, so far)", "count(directed, so far)", "std(manipulation, so far)"])
def test_a_copy_goes_on_by_itself(text: str) -> None:
    first = live_window(window(text))
    for value in (1.0, 1e-300, 0.0):
        first.take(None, value)
    before, other = first.at(None), deepcopy(first)
    assert other.at(None) == before
    other.take(None, 1.0)
    assert first.at(None) == before
    assert other.at(None) != before
