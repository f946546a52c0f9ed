"""A budget holds, whatever happens on the way: what a server charged is never more than it and one reservation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from budget_runs import random_run


@pytest.mark.parametrize("seed", range(1, 26))
def test_a_budget_is_never_passed_by_more_than_one_reservation(seed: int) -> None:
    for outcome in random_run(seed):
        assert outcome.holds, outcome
