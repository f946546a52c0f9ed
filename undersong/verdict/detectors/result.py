"""The result of a detector: deductions, candidates without points, or why it could not look."""

from __future__ import annotations

from typing import NamedTuple

from undersong.datafiles.verdict_config import mechanisms
from undersong.models import Deduction, Moment, Quote
from undersong.verdict.transcript import TranscriptTurn, moment

NO_POINTS = "A candidate: no points are taken."


class DetectorResult(NamedTuple):
    """``absent`` is "" where the mechanism was looked for, else why there was nothing to look at."""

    deductions: tuple[Deduction, ...] = ()
    candidates: tuple[Moment, ...] = ()
    absent: str = ""


def deduction(
    mechanism: str, kind: str, turn: TranscriptTurn, explanation: str, quotes: tuple[Quote, ...], episode: str = ""
) -> Deduction:
    """Points taken at a turn; the penalty is the mechanism's."""
    rule = mechanisms().mechanisms[mechanism]
    return Deduction(
        mechanism=mechanism,
        kind=kind,
        points=rule.penalty,
        message_id=turn.message.id,
        position=turn.message.position,
        explanation=f"{explanation} This is consistent with {rule.title.lower()}.",
        quotes=quotes,
        episode=episode,
    )


def candidate(
    code: str,
    title: str,
    turn: TranscriptTurn,
    explanation: str,
    quotes: tuple[Quote, ...],
    strength: float | None = None,
) -> Moment:
    """A turn that looks like a mechanism, and lacks the evidence that would take points; ``strength`` of a signal."""
    return moment(turn.message, "candidate", code, title, f"{explanation} {NO_POINTS}", quotes, strength)
