"""The confidence of what a reader of sequences names."""

from __future__ import annotations

import pytest

from undersong.patterns.significance.confidence import ReadingCounts, confidence, reading_counts

COUNTS = ReadingCounts(planted=40, innocent=254, right=(1, 4, 15, 20), wrong=(6, 2, 1, 0))


@pytest.mark.parametrize("prevalence", [0.01, 0.05, 0.2, 0.5])
def test_more_certain_is_never_less_confident(prevalence: float) -> None:
    values = [confidence(certainty, prevalence, COUNTS) for certainty in range(1, 5)]
    assert values == sorted(value for value in values if value is not None)
    assert all(value is not None and 0 < value < 1 for value in values)


def test_confidence_is_the_share_of_true_ones_where_the_counts_stand() -> None:
    share = COUNTS.planted / (COUNTS.planted + COUNTS.innocent)
    counted = (20 + 0.5) / (20 + 0.5 + (254 + 1) / 255 * 0.5)
    assert confidence(4, share, COUNTS) == pytest.approx(counted, abs=0.01)


def test_rarer_is_less_confident() -> None:
    values = [confidence(3, prevalence, COUNTS) or 0.0 for prevalence in (0.001, 0.01, 0.1, 0.5)]
    assert values == sorted(values)
    assert values[0] < 0.5 < values[-1]


def test_what_was_never_seen_has_no_confidence() -> None:
    unseen = ReadingCounts(planted=40, innocent=254, right=(0, 1, 1, 1), wrong=(0, 0, 0, 0))
    assert confidence(1, 0.2, unseen) is None


def test_the_shipped_counts_are_those_of_the_benchmark() -> None:
    from bench.talks.__main__ import HERE
    from train.confidence import counted

    assert counted(HERE / "dev") == reading_counts()
