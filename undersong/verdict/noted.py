"""What is noted at its turn, by words or by a judge's signal: what protects a person, and what feeds a spiral."""

from __future__ import annotations

import re
from collections.abc import Mapping

from undersong.models import Moment
from undersong.verdict.course import Transcript, TranscriptTurn, quote
from undersong.verdict.prose import sentence
from undersong.verdict.words import AnnotationKind, AnnotationRule, AnnotationsConfig, annotations_config, pattern

BY_SIGNAL = "A judge's signal says so, and no words that were looked for."
Signals = Mapping[str, Mapping[str, float]]


def annotation_moments(transcript: Transcript, signals: Signals, kind: AnnotationKind) -> list[Moment]:
    """Each kind once a turn of an agent, at most ``reported`` of a kind, in order."""
    config, moments, counts = annotations_config(kind), list[Moment](), dict[str, int]()
    for turn in transcript.turns:
        if not turn.is_agent:
            continue
        for code, rule in config.kinds.items():
            moment = _moment(turn, kind, code, rule, config, signals.get(turn.message.id, {}))
            if moment and counts.get(code, 0) < config.reported:
                counts[code] = counts.get(code, 0) + 1
                moments.append(moment)
    return moments


def _moment(
    turn: TranscriptTurn,
    kind: AnnotationKind,
    code: str,
    rule: AnnotationRule,
    config: AnnotationsConfig,
    signals: Mapping[str, float],
) -> Moment | None:
    words = _words(turn.prose, rule)
    strength = signals.get(rule.signal) if rule.signal and not turn.is_speech else None
    by_signal = strength is not None and _by_signal(strength, config, signals)
    if not words and not by_signal:
        return None
    place = sentence(turn.prose, words.start(), words.end()) if words else (0, min(len(turn.message.text), 300))
    return Moment(
        kind=kind,
        code=code,
        title=rule.title,
        message_id=turn.message.id,
        position=turn.message.position,
        agent=turn.message.agent,
        explanation=rule.explanation if words else f"{rule.explanation} {BY_SIGNAL}",
        basis="words" if words else "signal",
        quotes=(quote(turn.message, *place),),
        strength=strength,
    )


def _words(prose: str, rule: AnnotationRule) -> re.Match[str] | None:
    """The first of the patterns that is not denied in its sentence."""
    if not rule.patterns:
        return None
    for match in pattern(rule.patterns).finditer(prose):
        before = prose[sentence(prose, match.start(), match.end())[0] : match.start()].rstrip()
        if not rule.denied or pattern((rule.denied,)).search(before) is None:
            return match
    return None


def _by_signal(strength: float, config: AnnotationsConfig, signals: Mapping[str, float]) -> bool:
    """Strong enough, and no signal of the opposite is as strong in the same turn."""
    return strength >= config.least and all(signals.get(name, 0.0) < strength for name in config.not_with)
