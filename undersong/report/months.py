"""A history over its months: how many sessions, how low they went, what was found in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from undersong.models import Case, SessionVerdict

LEAST = 2  # months with sessions before there is a trend to show
WIDTH, HEIGHT, LEFT, TOP = 760.0, 150.0, 66.0, 22.0


@dataclass(frozen=True)
class Month:
    """One month: sessions that began in it; ``lowest`` and ``mean`` score are None where none has a score."""

    name: str
    sessions: int
    messages: int
    lowest: int | None
    mean: float | None
    scored: int
    deductions: int
    findings: int
    moments: Mapping[str, int]


@dataclass(frozen=True)
class Bar:
    """A month in the picture; ``height`` None where no session of it has a score."""

    x: float
    y: float | None
    width: float
    label: str
    title: str


def months(case: Case, spans: Mapping[str, tuple[datetime, datetime]]) -> tuple[Month, ...]:
    """The months in which dated sessions began, in order; () below LEAST of them. Untimed sessions are in none."""
    by_month: dict[str, list[SessionVerdict]] = {}
    for session in case.sessions:
        if session.conversation in spans:
            by_month.setdefault(f"{spans[session.conversation][0]:%Y-%m}", []).append(session)
    finding_counts = Counter(name for finding in case.findings for name in finding.conversations[:1])
    history = tuple(_month(name, sessions, finding_counts) for name, sessions in sorted(by_month.items()))
    return history if len(history) >= LEAST else ()


def _month(name: str, sessions: list[SessionVerdict], finding_counts: Counter[str]) -> Month:
    scores = [session.score for session in sessions if session.score is not None]
    return Month(
        name=name,
        sessions=len(sessions),
        messages=sum(session.messages for session in sessions),
        lowest=min(scores, default=None),
        mean=round(sum(scores) / len(scores), 1) if scores else None,
        scored=len(scores),
        deductions=sum(len(session.deductions) for session in sessions),
        findings=sum(finding_counts[session.conversation] for session in sessions),
        moments=Counter(moment.kind for session in sessions for moment in session.moments),
    )


def bars(history: tuple[Month, ...]) -> tuple[Bar, ...]:
    """The lowest score of each month as a bar from 0 to 100; every twelfth label or so where there are many."""
    step = (WIDTH - LEFT) / max(len(history), 1)
    every = max(1, len(history) // 12)
    return tuple(
        Bar(
            x=round(LEFT + index * step + step * 0.15, 2),
            y=None if month.lowest is None else round(TOP + (HEIGHT - TOP - 24) * (100 - month.lowest) / 100, 2),
            width=round(step * 0.7, 2),
            label=month.name if index % every == 0 else "",
            title=f"{month.name}: "
            + ("no score" if month.lowest is None else f"lowest score {month.lowest} of {month.scored} scored"),
        )
        for index, month in enumerate(history)
    )
