"""How many rows in a row a match passes over, and that nothing beyond such a gap is laid out."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from tests.patterns.rulebox import rule
from tests.patterns.vectorized.worlds import plain_result
from undersong.models import Row
from undersong.patterns.language.row_pattern import parse
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.reference.search import search as reference
from undersong.patterns.vectorized import start_filter, targets
from undersong.patterns.vectorized.row_source import search
from undersong.patterns.vectorized.start_filter import gap, reached

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        ("A", 0),
        ("A B", 0),
        ("A ANY{0,5}? B", 5),
        ("A ANY* B", None),
        ("A* B", 0),
        ("A ANY{0,2} {- C{0,3} -} B", 5),
        ("A (ANY{0,2} C?){3} B", 6),
        ("A (ANY{0,2} C){3} B", 2),
        ("(ANY{1,2} A ANY{0,3}){2,}", 5),
        ("A (ANY | B){2,4}", 4),
        ("A (ANY{2} | B)+ C", None),
        ("(A | ANY ANY) ANY{0,4} (B | ANY)", 7),
        ("A {- (B C){1,3} -} A", 6),
        ("(ANY?)* A", None),
    ],
)
def test_a_pattern_tells_how_many_rows_in_a_row_a_match_passes_over(pattern: str, most: int | None) -> None:
    assert gap(parse(pattern)) == most


def test_a_reach_ends_where_too_many_rows_in_a_row_fit_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    masks = np.array([1, 0, 0, 1, 0, 0, 0, 2, 1], dtype=np.uint8)
    both = [reached(masks, np.arange(9), 1, 2)]
    monkeypatch.setattr(start_filter, "machine", lambda _size, *_kernels: True)
    both.append(reached(masks, np.arange(9), 1, 2))
    for first, last in both:
        assert last.tolist() == [6, 6, 6, 6, 6, 7, 9, 9, 9, 9]
        assert first.tolist() == [0, 0, 0, 0, 0, 0, 0, 5, 6, 6]


@pytest.mark.parametrize("compiled", [True, False])
def test_only_rows_that_a_match_comes_to_are_laid_out(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(3)
    rows = [
        Row(
            id=f"m{i:05}", agent="kira", position=i, time=MONDAY + timedelta(minutes=i), state="scored",
            target=f"t{i // 40}" if i % 40 == 0 else None, traits={"manipulation": float(dice.random() < 0.2)},
        )
        for i in range(2400)
    ]  # fmt: skip
    chosen = rule(
        "HIGH (ANY{0,2}? HIGH){1,}",
        {"partition_by": ["agent", "target"], "within": "9 days"},
        HIGH="manipulation > 0.5",
    )
    sizes: list[int] = []
    merged = targets.merged

    def noted(*parts: object, **how: object) -> object:
        laid = merged(*parts, **how)  # type: ignore[arg-type]
        sizes.append(len(laid[0].rows))
        return laid

    monkeypatch.setattr(targets, "merged", noted)
    if compiled:
        for module in ("start_filter", "reach"):
            monkeypatch.setattr(f"undersong.patterns.vectorized.{module}.machine", lambda _size, *_kernels: True)
    row_timelines = timelines(rows)
    result = search(chosen, row_timelines)
    assert plain_result(result) == plain_result(reference(chosen, row_timelines))
    assert result.matches
    assert sizes[0] < 2 * 2400  # the public rows, and a few around each of 60 directed ones: not 60 times as many
