"""What was read of an agent before a message, from a snapshot that a run fixes at its start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import msgspec

from undersong.judges import EvaluationHistory
from undersong.models import TRAITS

RECENT = 5  # readings that a trend compares with the as many before: the width of the seed's window
STEADY = 0.1  # a mean that moves less does not count as moving: the size of a judge's own noise (rules/noise.yaml)


class Past(msgspec.Struct, frozen=True):
    """All that a snapshot holds of an agent, in order of time: (microseconds UTC, twelve scores), (end, pattern)."""

    readings: tuple[tuple[int, tuple[float, ...]], ...] = ()
    findings: tuple[tuple[int, str], ...] = ()


def history(past: Past, before: datetime | None) -> EvaluationHistory:
    """The part of the past that lies before a message; a message without a time has none."""
    if before is None:
        return EvaluationHistory()
    moment = round(before.timestamp() * 1_000_000)
    scores = [each for time, each in past.readings if time < moment]
    finding_counts = Counter(name for end, name in past.findings if end < moment)
    return EvaluationHistory(
        evaluations=len(scores),
        averages=dict(zip(TRAITS, map(_mean, zip(*scores, strict=True)), strict=True)) if scores else {},
        trends=dict(zip(TRAITS, map(_trend, zip(*scores, strict=True)), strict=True)) if scores else {},
        findings=dict(sorted(finding_counts.items())),
    )


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 3)


def _trend(values: Sequence[float]) -> str:
    if len(values) < 2 * RECENT:
        return "steady"
    change = _mean(values[-RECENT:]) - _mean(values[-2 * RECENT : -RECENT])
    return "steady" if abs(change) < STEADY else "rising" if change > 0 else "falling"
