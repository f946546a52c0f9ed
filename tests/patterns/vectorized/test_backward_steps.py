"""How far back a match may begin that ends with a row, from what the rows before fit."""

import pytest

from tests.patterns.rulebox import rule
from undersong.patterns.vectorized.backward_steps import BackwardSteps

A, B = 1, 2


@pytest.mark.parametrize(
    ("pattern", "masks", "longest"),
    [
        ("A B", [A, B], 2),
        ("A B", [A, 0, B], 0),
        ("A B", [A, B, A], 0),
        ("A ANY{0,2}? B", [A, 0, 0, B], 4),
        ("A ANY{0,2}? B", [A, 0, 0, 0, B], 0),
        ("A ANY{0,2}? B", [A, 0, A, B], 4),
        ("A+ B", [A, A, A, B], 4),
        ("A+ B", [A, A, 0, A, B], 2),
        ("A (ANY{0,1}? B){2,3}", [A, B, 0, B, B, B], 6),
        ("A (ANY{0,1}? B){2,3}", [A, A | B, 0, B, B], 5),
        ("A (ANY{0,1}? B){2,3}", [A, 0, B], 0),
    ],
)
def test_the_longest_match_that_may_end_with_the_last_row(pattern: str, masks: list[int], longest: int) -> None:
    steps = BackwardSteps(rule(pattern, A="manipulation > .5", B="deception > .5").program)
    assert steps.longest(masks) == steps.longest([0, *masks]) == longest
    assert steps.longest(masks, most=longest or None) == longest
    assert steps.longest(masks, most=1) == 0
