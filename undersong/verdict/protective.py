"""Protective moments: pushback, de-escalation, pointing to help, by words or by a judge's signal."""

from __future__ import annotations

from collections.abc import Mapping

from undersong.models import Moment
from undersong.verdict.course import Course, Turn, quote
from undersong.verdict.prose import sentence
from undersong.verdict.words import Protection, pattern, protective_book

Signals = Mapping[str, Mapping[str, float]]


def protective_moments(course: Course, signals: Signals) -> list[Moment]:
    """Each kind once a turn of an agent, at most ``reported`` of a kind, in order."""
    book, found, counts = protective_book(), list[Moment](), dict[str, int]()
    for turn in course.turns:
        if not turn.is_agent:
            continue
        for code, kind in book.kinds.items():
            moment = _moment(turn, code, kind, signals.get(turn.message.id, {}))
            if moment and counts.get(code, 0) < book.reported:
                counts[code] = counts.get(code, 0) + 1
                found.append(moment)
    return found


def _moment(turn: Turn, code: str, kind: Protection, signals: Mapping[str, float]) -> Moment | None:
    words = pattern(kind.patterns).search(turn.prose)
    strength = signals.get(kind.signal)
    by_signal = strength is not None and _by_signal(strength, signals)
    if not words and not by_signal:
        return None
    place = sentence(turn.prose, words.start(), words.end()) if words else (0, min(len(turn.message.text), 300))
    return Moment(
        kind="protective",
        code=code,
        title=kind.title,
        message_id=turn.message.id,
        position=turn.message.position,
        agent=turn.message.agent,
        explanation=kind.explanation,
        basis="words" if words else "signal",
        quotes=(quote(turn.message, *place),),
        strength=strength,
    )


def _by_signal(strength: float, signals: Mapping[str, float]) -> bool:
    """Strong enough, and no signal of the opposite is as strong in the same turn."""
    book = protective_book()
    return strength >= book.least and all(signals.get(name, 0.0) < strength for name in book.not_with)
