"""Profiles of agents from their histories: means, trends, months, targets, ranks among the others; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from undersong.models import DIMENSIONS, TRAITS, AgentVerdict, Finding, Record, Row
from undersong.patterns.vectorized.packed import CELLS, SCORED
from undersong.rows.binary import NO_SCORE, RANK, THOUSAND
from undersong.verdict import agent_verdicts
from undersong.verdict.alignment import DIGITS

RECENT = 5  # rows that a trend compares with as many before them: the recent trend
STEADY = 0.1  # a smaller difference of means is within a judge's noise (.06 to .12 per trait)
Trend = Literal["rising", "falling", "steady"]


class TargetProfile(Record, frozen=True, kw_only=True):
    """A target of an agent: how many scored messages, and the means of warmth and manipulation of those with levels."""

    target: str
    messages: int
    compassion: float | None
    manipulation: float | None


class Profile(Record, frozen=True, kw_only=True):
    """An agent over its whole history.

    Scores that are ranks within a corpus are part of no mean, and a trait that does not apply to a message has none
    there. ``verdict`` holds means per trait and dimension; ``trends`` compares the last five scored rows with the five
    before; ``months`` maps each month with scores to its mean per dimension; ``aims`` are its targets, the most
    frequent first.
    """

    verdict: AgentVerdict
    trends: dict[str, Trend]
    months: dict[str, dict[str, float]]
    aims: tuple[TargetProfile, ...]


def profile(rows: Sequence[Row], findings: Iterable[Finding] = ()) -> Profile:
    """The profile of one agent from its rows in order; at least one row."""
    scored = [row for row in rows if row.state == "scored" and row.traits]
    levels = [row for row in scored if row.scale != "rank"]
    return Profile(
        verdict=agent_verdicts(rows, findings=findings)[0],
        trends=_trends(levels),
        months=_months(levels),
        aims=_aims(scored),
    )


def means(cells: bytes) -> dict[str, float] | None:
    """The mean per trait of the verdict, from a packed history (``rows.binary``); None without levels."""
    rows = np.frombuffer(cells, dtype=CELLS)
    levels = rows["traits"][(rows["state"] == SCORED) & (rows["bits"] & RANK == 0)]
    result: dict[str, float] = {}
    for trait, scores in zip(TRAITS, levels.T, strict=True):
        valid = scores[scores != NO_SCORE] / THOUSAND
        if len(valid):
            result[trait] = round(float(np.cumsum(valid)[-1]) / len(valid), DIGITS)  # summed one after the other
    return result or None


def percentile_rank(value: float, others: Iterable[float]) -> float | None:
    """The share of the others below a value, 0-1, ties as half; None without others."""
    values = list(others)
    if not values:
        return None
    return sum(1.0 if other < value else 0.5 if other == value else 0.0 for other in values) / len(values)


def _trends(scored: Sequence[Row]) -> dict[str, Trend]:
    before, recent = scored[-2 * RECENT : -RECENT], scored[-RECENT:]
    if len(before) < RECENT:
        return {}
    trends: dict[str, Trend] = {}
    for trait in TRAITS:
        then, now = _mean(before, trait), _mean(recent, trait)
        if then is not None and now is not None:
            trends[trait] = "steady" if abs(now - then) < STEADY else "rising" if now > then else "falling"
    return trends


def _months(scored: Sequence[Row]) -> dict[str, dict[str, float]]:
    months: dict[str, list[Row]] = {}
    for row in scored:
        if row.time is not None:
            months.setdefault(f"{row.time:%Y-%m}", []).append(row)
    means = {month: agent_verdicts(members)[0].dimensions for month, members in sorted(months.items())}
    return {month: {name: mean[name] for name in DIMENSIONS if name in mean} for month, mean in means.items() if mean}


def _aims(scored: Sequence[Row]) -> tuple[TargetProfile, ...]:
    aimed: dict[str, list[Row]] = {}
    for row in scored:
        if row.target is not None:
            aimed.setdefault(row.target, []).append(row)
    aims = [
        TargetProfile(
            target=target,
            messages=len(members),
            compassion=_mean(members, "compassion"),
            manipulation=_mean(members, "manipulation"),
        )
        for target, members in aimed.items()
    ]
    return tuple(sorted(aims, key=lambda aim: (-aim.messages, aim.target)))


def _mean(rows: Sequence[Row], trait: str) -> float | None:
    scores = ((row.traits or {}).get(trait) for row in rows if row.scale != "rank")
    values = [score for score in scores if score is not None]
    return sum(values) / len(values) if values else None
