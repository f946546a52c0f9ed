"""An agent's profile: means, trend, months, targets, and its place among others."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import msgspec

from undersong.models import Row
from undersong.pipeline.agent_profile import TargetProfile, means, percentile_rank, profile
from undersong.rows.binary import pack

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def rows(*scores: float | None, every: int = 10) -> list[Row]:
    return [
        Row(
            id=str(n), agent="kira", target="bo" if n % 2 else None, time=NEW_YEAR + timedelta(days=every * n),
            state="unread" if score is None else "scored",
            traits=None if score is None else {"manipulation": score, "compassion": 1.0},
        )
        for n, score in enumerate(scores)
    ]  # fmt: skip


def test_a_trend_compares_the_last_five_scores_with_the_five_before() -> None:
    rising = profile(rows(0.9, *[0.2] * 5, *[0.4] * 5))
    assert rising.trends == {"manipulation": "rising", "compassion": "steady"}
    assert profile(rows(*[0.4] * 5, *[0.2] * 5)).trends["manipulation"] == "falling"
    assert profile(rows(*[0.2] * 5, *[0.25] * 5)).trends["manipulation"] == "steady"


def test_nine_scores_are_too_few_for_a_trend_and_unread_rows_are_none() -> None:
    assert profile(rows(*[0.4] * 9, None)).trends == {}
    assert profile(rows(None)).verdict.traits is None


def test_months_without_a_score_are_left_out() -> None:
    assert list(profile(rows(0.1, None, 0.2, every=32)).months) == ["2026-01", "2026-03"]


def test_targets_are_counted_over_scored_messages() -> None:
    assert profile(rows(0.5, 0.25, 0.5, 0.75)).aims == (
        TargetProfile(target="bo", messages=2, compassion=1.0, manipulation=0.5),
    )


def test_a_rank_is_the_share_below_with_ties_as_half() -> None:
    assert percentile_rank(0.5, [0.1, 0.5, 0.9, 0.2]) == 0.625
    assert percentile_rank(0.5, []) is None


def test_ranks_within_a_corpus_are_part_of_no_mean() -> None:
    ranked = [msgspec.structs.replace(row, scale="rank") for row in rows(*[0.5] * 12)]
    result = profile(ranked)
    assert (result.trends, result.months, result.verdict.read) == ({}, {}, 0)
    assert result.aims == (TargetProfile(target="bo", messages=6, compassion=None, manipulation=None),)


def test_means_of_packed_rows_are_those_of_the_rows() -> None:
    dice = random.Random(1)
    some = rows(*(dice.choice((None, round(dice.random(), 3))) for _ in range(300)))
    mixed = [
        msgspec.structs.replace(row, scale=dice.choice((None, None, "rank")), branch=dice.choice((None, "b")))
        for row in some
    ]
    assert means(b"".join(pack(row) or b"" for row in mixed)) == profile(mixed).verdict.traits
    assert means(b"".join(pack(row) or b"" for row in rows(None))) is None
    assert means(b"") is None
