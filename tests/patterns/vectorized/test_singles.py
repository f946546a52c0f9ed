"""Patterns of a fixed length: every start that fits, and none left out that ``having`` would keep."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.patterns.rulebox import rule
from tests.patterns.vectorized.worlds import plain_result, random_rows
from undersong.patterns.language import windows
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.reference.search import search as reference
from undersong.patterns.vectorized import aggregates, jit, layout, strategies
from undersong.patterns.vectorized.environments import FrameVectors
from undersong.patterns.vectorized.row_source import search
from undersong.patterns.vectorized.strategies import FixedLengthStrategy


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large tables' ways for small ones, as they are (nothing is compiled)."""
    for module in (layout, strategies):
        monkeypatch.setattr(module, "machine", lambda _size, *_kernels: True)
    monkeypatch.setattr(jit, "machine", lambda _size, *_kernels: False)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    ("pattern", "keys"),
    [
        ("A B", {}),
        ("A ANY B", {"within": "2 days"}),
        ("{- A -} ANY B", {"max_unread": 1}),
        ("A{3}", {"until": "compassion > 0.7"}),
        ("A{3}", {"having": ["std(A.compassion) > 0.2"], "after_match": "skip to next row"}),
        ("A{4}", {"having": ["std(MATCH.compassion) >= 0.25 and slope(A.manipulation) > 0"]}),
        ("A B{2}", {"having": ["std(MATCH.compassion) > 0.1"], "partition_by": ["agent", "target"]}),
    ],
)
def test_single_rows_are_found_as_by_the_reference(pattern: str, keys: dict[str, object]) -> None:
    chosen = rule(pattern, keys, A="compassion > 0.1", B="manipulation > 0.3")
    match_count = 0
    for seed in range(40):
        row_timelines = timelines(random_rows(random.Random(seed)))
        expected = plain_result(reference(chosen, row_timelines))
        assert plain_result(search(chosen, row_timelines)) == expected
        match_count += len(expected[0])
    assert match_count


def test_no_start_is_refused_whose_spread_is_wide_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = np.random.default_rng(4)
    values = dice.choice([dice.beta(2, 8, 3000).round(3), dice.random(3000), np.full(3000, 0.5)])
    values = np.concatenate([values, np.where(dice.random(2000) < 0.1, 0.9, 0.1), np.full(200, 0.25)])
    values[dice.integers(0, len(values), 30)] = np.nan
    for size, least, again in ((2, 0.05, 64), (8, 0.3, 64), (8, 0.2, 3), (40, 0.24, 64)):
        monkeypatch.setattr(aggregates, "_AGAIN", again)
        starts = np.flatnonzero(dice.random(len(values) - size) < 0.95)
        buffer = np.empty(len(starts) + 1, dtype=np.int64)
        number = aggregates.wide_enough.plain(size, starts, values, least, buffer)
        values_by_start = {start: values[start : start + size] for start in starts.tolist()}
        wide = {
            start
            for start, own in values_by_start.items()
            if np.isnan(own).any() or (windows.over("std", own.tolist()) or 0.0) >= least
        }
        assert wide <= set(buffer[:number].tolist())
        assert number < len(wide) + 30 * (again + size)  # beside those with an unknown value, hardly any other


def test_a_screened_walker_has_the_runs_of_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[tuple[int, int]] = []
    screen = FixedLengthStrategy.screen

    def noted(walker: FixedLengthStrategy, rows: FrameVectors) -> None:
        before = len(walker.starts)
        screen(walker, rows)
        sizes.append((before, len(walker.starts)))
        assert len(walker.runs) == len(walker.starts)

    for module in (layout, strategies):
        monkeypatch.setattr(module, "machine", lambda _size, *_kernels: True)
    monkeypatch.setattr(jit, "machine", lambda _size, *_kernels: False)
    monkeypatch.setattr(FixedLengthStrategy, "screen", noted)
    chosen = rule("A{3}", {"having": ["std(A.compassion) > 0.3"]}, A="compassion >= 0")
    search(chosen, timelines(random_rows(random.Random(3))))
    assert sizes[0][1] < sizes[0][0]
