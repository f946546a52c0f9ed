"""Patterns of a fixed length: every start that fits, as the reference finds them."""

from __future__ import annotations

import random

import pytest

from tests.patterns.rulebox import rule
from tests.patterns.vectorized.worlds import plain_result, random_rows
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.reference.search import search as reference
from undersong.patterns.vectorized import jit, layout, strategies
from undersong.patterns.vectorized.row_source import search


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large tables' ways for small ones, as they are (nothing is compiled)."""
    for module in (layout, strategies):
        monkeypatch.setattr(module, "machine", lambda _size: True)
    monkeypatch.setattr(jit, "machine", lambda _size: False)


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
