"""What is noted at its turn, by words or by a judge's signal: what protects a person, and what feeds a spiral."""

from __future__ import annotations

import re
from collections.abc import Mapping

from undersong.models import Moment
from undersong.verdict.course import Course, Turn, quote
from undersong.verdict.prose import sentence
from undersong.verdict.words import Noted, NotedKind, NotedKinds, noted_book, pattern

BY_SIGNAL = "A judge's signal says so, and no words that were looked for."
Signals = Mapping[str, Mapping[str, float]]


def noted_moments(course: Course, signals: Signals, kind: NotedKind) -> list[Moment]:
    """Each kind once a turn of an agent, at most ``reported`` of a kind, in order."""
    book, found, counts = noted_book(kind), list[Moment](), dict[str, int]()
    for turn in course.turns:
        if not turn.is_agent:
            continue
        for code, noted in book.kinds.items():
            moment = _moment(turn, kind, code, noted, book, signals.get(turn.message.id, {}))
            if moment and counts.get(code, 0) < book.reported:
                counts[code] = counts.get(code, 0) + 1
                found.append(moment)
    return found


def _moment(
    turn: Turn, kind: NotedKind, code: str, noted: Noted, book: NotedKinds, signals: Mapping[str, float]
) -> Moment | None:
    words = _words(turn.prose, noted)
    strength = signals.get(noted.signal) if noted.signal and not turn.is_speech else None
    by_signal = strength is not None and _by_signal(strength, book, signals)
    if not words and not by_signal:
        return None
    place = sentence(turn.prose, words.start(), words.end()) if words else (0, min(len(turn.message.text), 300))
    return Moment(
        kind=kind,
        code=code,
        title=noted.title,
        message_id=turn.message.id,
        position=turn.message.position,
        agent=turn.message.agent,
        explanation=noted.explanation if words else f"{noted.explanation} {BY_SIGNAL}",
        basis="words" if words else "signal",
        quotes=(quote(turn.message, *place),),
        strength=strength,
    )


def _words(prose: str, noted: Noted) -> re.Match[str] | None:
    """The first of the patterns that is not denied in its sentence."""
    if not noted.patterns:
        return None
    for match in pattern(noted.patterns).finditer(prose):
        before = prose[sentence(prose, match.start(), match.end())[0] : match.start()].rstrip()
        if not noted.denied or pattern((noted.denied,)).search(before) is None:
            return match
    return None


def _by_signal(strength: float, book: NotedKinds, signals: Mapping[str, float]) -> bool:
    """Strong enough, and no signal of the opposite is as strong in the same turn."""
    return strength >= book.least and all(signals.get(name, 0.0) < strength for name in book.not_with)
