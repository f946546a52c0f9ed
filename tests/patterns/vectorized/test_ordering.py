"""Rows come into order by loops as they do by sorting."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from undersong.patterns.vectorized import jit

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))
from bench import columns as ordering


@pytest.mark.parametrize("positions", [None, "rising", "mixed"])
@pytest.mark.parametrize("sorted_", [True, False])
def test_the_order_of_time_is_the_same_by_loops(
    positions: str | None, sorted_: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = np.random.default_rng(2)
    times = dice.integers(0, 50, 300)
    times = np.sort(times) if sorted_ else times
    places = {"rising": np.arange(300), "mixed": dice.integers(0, 9, 300)}.get(positions or "")
    expected = ordering.in_time(times, places)
    monkeypatch.setattr(ordering, "machine", lambda _size, *_kernels: True)
    monkeypatch.setattr(jit, "machine", lambda _size, *_kernels: False)
    actual = ordering.in_time(times, places)
    assert (actual is None) == (expected is None) == (sorted_ and positions != "mixed")
    assert actual is None or (actual == expected).all()


def test_rows_of_agents_that_have_no_name_are_never_written_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "machine", lambda _size, *_kernels: True)
    monkeypatch.setattr(jit, "machine", lambda _size, *_kernels: False)
    agents = np.array([1, 0, 1, 2], dtype=np.int32)
    order, counts = ordering.by_agent(agents, 3)
    assert (order.tolist(), counts.tolist()) == ([1, 0, 2, 3], [1, 2, 1])
    assert ordering.by_agent(agents, 2)[1].tolist() == [1, 2, 1]
    with pytest.raises(ValueError, match="negative"):
        ordering.by_agent(agents - 1, 3)
