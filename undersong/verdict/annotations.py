"""Annotations of single turns: protective moments, noted conduct, distress codes and smoking guns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from undersong.datafiles.taxonomy import taxonomy
from undersong.datafiles.verdict_config import (
    AnnotationKind,
    AnnotationRule,
    AnnotationsConfig,
    ConductConfig,
    SmokingGun,
    annotations_config,
    distress_config,
    guns,
    pattern,
)
from undersong.models import WHOLE_REPLIES, Conversation, Indicator, Message, Moment, Quote, Row, Scan
from undersong.verdict.claims import sentence
from undersong.verdict.transcript import (
    NOT_AGENTS,
    MomentBasis,
    Signals,
    Transcript,
    TranscriptTurn,
    moment,
    quote,
)

BY_SIGNAL = "A judge's signal says so, and no words that were looked for."
WORDS: MomentBasis = "words"
SIGNAL: MomentBasis = "signal"


def annotation_moments(transcript: Transcript, signals: Signals, kind: AnnotationKind) -> list[Moment]:
    """Each kind once a turn of an agent, at most ``reported`` of a kind, in order."""
    config, moments, counts = annotations_config(kind), list[Moment](), dict[str, int]()
    for turn in transcript.turns:
        if not turn.is_agent:
            continue
        for code, rule in config.kinds.items():
            annotation = _moment(turn, kind, code, rule, config, signals.get(turn.message.id, {}))
            if annotation and counts.get(code, 0) < config.reported:
                counts[code] = counts.get(code, 0) + 1
                moments.append(annotation)
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
    by_signal = strength is not None and _by_signal(strength, rule, config, signals) and not _denies(turn, rule)
    if not words and not by_signal:
        return None
    place = sentence(turn.prose, words.start(), words.end()) if words else (0, min(len(turn.message.text), 300))
    explanation, basis = (rule.explanation, WORDS) if words else (f"{rule.explanation} {BY_SIGNAL}", SIGNAL)
    words_of_it = (quote(turn.message, *place),)
    return moment(turn.message, kind, code, rule.title, turn.explained(explanation), words_of_it, strength, basis)


def _words(prose: str, rule: AnnotationRule) -> re.Match[str] | None:
    """The first of the patterns that is not denied in its sentence."""
    if not rule.patterns:
        return None
    for match in pattern(rule.patterns).finditer(prose):
        before = prose[sentence(prose, match.start(), match.end())[0] : match.start()].rstrip()
        if not rule.denied or pattern((rule.denied,)).search(before) is None:
            return match
    return None


def _by_signal(strength: float, rule: AnnotationRule, config: AnnotationsConfig, signals: Mapping[str, float]) -> bool:
    """Strong enough, and no signal of the opposite is as strong in the same turn."""
    least = config.least if rule.least is None else rule.least
    return strength >= least and all(signals.get(name, 0.0) < strength for name in config.not_with)


def _denies(turn: TranscriptTurn, rule: AnnotationRule) -> bool:
    """Whether the turn denies what a signal would take it to confirm."""
    return bool(rule.denies) and pattern((rule.denies,)).search(turn.message.text.replace("’", "'")) is not None


EXCERPT = 300


class ConductTurn(NamedTuple):
    """A turn of an agent in which a conduct shows, its evidence, and whether one such turn is enough."""

    turn: TranscriptTurn
    evidence: Quote
    critical: bool
    strength: float | None = None


def distress_codes(
    transcript: Transcript, signals: Signals, context: Collection[str], charged: Collection[str]
) -> list[Moment]:
    """The codes of a session, one moment for each code, at the turn from which it holds.

    ``context`` is the session's vector: a name that it marks as unknown does not hold. ``charged`` are the ids of the
    messages with a false promise.
    """
    by_code: dict[str, Moment] = {}
    failed = _failed_checks(transcript)
    for name, conduct in distress_config().conduct.items():
        if not set(conduct.needs) <= set(context) or set(conduct.not_in) & set(context):
            continue
        turns = (turn for turn in transcript.turns if turn.is_agent)
        shown = [item for turn in turns if (item := _conduct_turn(turn, conduct, signals, charged, failed))]
        holds = _holds(shown)
        extra = [code for code, either in conduct.also.items() if set(either) & set(context)]
        for code in (*conduct.codes, *extra) if holds else ():
            shown_moment = _moment_distress(code, name, conduct, holds[0], len(shown))
            earlier = by_code.get(code)
            if earlier is None or shown_moment.position < earlier.position:
                by_code[code] = shown_moment
    return sorted(by_code.values(), key=lambda item: (item.position, item.code))


def _failed_checks(transcript: Transcript) -> dict[int, Quote]:
    """Place of an agent's turn → the first check that failed after it, before the agent spoke again."""
    failed: dict[int, Quote] = {}
    last: dict[str, int] = {}
    outcomes = iter(transcript.outcomes)
    following = next(outcomes, None)
    for turn in transcript.turns:
        if turn.is_agent:
            last[turn.message.agent] = turn.place
        while following is not None and following.turn is turn:
            result, place = following.outcome, last.get(following.agent)
            if result.family == "check" and result.state == "failed" and place is not None:
                failed.setdefault(place, quote(turn.message, result.start, result.end))
            following = next(outcomes, None)
    return failed


def _holds(shown: Sequence[ConductTurn]) -> list[ConductTurn]:
    """The turn from which a conduct is sustained, or critical; none where it is neither."""
    late = [each for number, each in enumerate(shown, 1) if each.critical or number > distress_config().sustained]
    return late[:1]


def _conduct_turn(
    turn: TranscriptTurn,
    conduct: ConductConfig,
    signals: Signals,
    charged: Collection[str],
    failed: Mapping[int, Quote],
) -> ConductTurn | None:
    if conduct.critical and (phrase_turn := _phrase_turn(turn, conduct.critical, critical=True)):
        return phrase_turn
    if conduct.phrases and (phrase_turn := _phrase_turn(turn, conduct.phrases, critical=False)):
        return phrase_turn
    if "failing_check" in conduct.events and turn.place in failed:
        return ConductTurn(turn, failed[turn.place], False)
    scores = {} if turn.is_speech else signals.get(turn.message.id, {})
    strength = max(
        (scores[name] for name, least in conduct.signals.items() if scores.get(name, 0.0) >= least), default=None
    )
    looped = "loop" in conduct.events and any(loop.scope in WHOLE_REPLIES for loop in turn.scan.loops)
    promised = "false_promise" in conduct.events and turn.message.id in charged
    if strength is None and not looped and not promised:
        return None
    return ConductTurn(turn, quote(turn.message, 0, min(len(turn.message.text), EXCERPT)), False, strength)


def _phrase_turn(turn: TranscriptTurn, phrases: tuple[str, ...], *, critical: bool) -> ConductTurn | None:
    """The first of some phrases that a turn says, not denied before in its sentence."""
    for match in pattern(phrases).finditer(turn.prose):
        first, last = sentence(turn.prose, match.start(), match.end())
        denied = re.search(distress_config().denied, turn.prose[first : match.start()].rstrip(), re.IGNORECASE)
        if not (critical and (denied or turn.prose[last - 1 : last] == "?")):
            return ConductTurn(turn, quote(turn.message, first, last), critical)
    return None


def _moment_distress(code: str, name: str, conduct: ConductConfig, shown: ConductTurn, times: int) -> Moment:
    why = "critical, one turn is enough" if shown.critical else f"seen in {times} turns"
    explanation = f"{conduct.explanation} ({name.replace('_', ' ')}: {why}). An annotation, no diagnosis of anybody."
    title = taxonomy().distress_codes[code].name
    return moment(shown.turn.message, "distress", code, title, explanation, (shown.evidence,), shown.strength)


GUN_EXCERPT = 320  # characters of a quote; the whole message is one link away
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s|\n")
_QUOTED_LINE = re.compile(r"(?m)^[ \t]*>[^\n]*$")


def smoking_guns(
    conversation: Conversation, scans: Sequence[Scan], rows: Iterable[Row], charged: Collection[str] = ()
) -> tuple[Moment, ...]:
    """Every smoking gun of a conversation, the first ones to read first.

    In rank order: turns with a deduction (``charged`` ids), then by strength, then by turn. Abandoned
    branches, code and quoted lines are left out. One of each kind a message: by exact words, else as a judge reads it
    with its quote. A signal alone is none.
    """
    read = {row.id: row for row in rows}
    moments: list[Moment] = []
    for message, scan in zip(conversation.messages, scans, strict=True):
        if message.branch is None and message.role not in NOT_AGENTS:
            moments += _moments(message, scan, read.get(message.id))
    return tuple(sorted(moments, key=lambda gun: (gun.message_id not in charged, -(gun.strength or 0), gun.position)))


class _SmokingGunEvidence(NamedTuple):
    """What a smoking gun stands on: the place of its words, and how strong it is."""

    basis: MomentBasis
    span: tuple[int, int]
    strength: float | None = None


def _moments(message: Message, scan: Scan, row: Row | None) -> Iterator[Moment]:
    for code, kind in guns().kinds.items():
        span = _phrase_span(message, scan, kind)
        seen = _SmokingGunEvidence("words", span) if span else _judged(message, row, code)
        if seen is not None:
            quotes = (quote(message, *seen.span),)
            yield moment(message, "smoking_gun", code, kind.title, kind.explanation, quotes, seen.strength, seen.basis)


def _judged(message: Message, row: Row | None, code: str) -> _SmokingGunEvidence | None:
    """What a judge saw in the message, where it gave the words."""
    seen: tuple[Indicator, ...] = row.reading.mechanisms if row and row.reading else ()
    for indicator in seen:
        start = message.text.find(indicator.quote) if indicator.id == code and indicator.quote else -1
        if start >= 0 and indicator.quote:
            return _SmokingGunEvidence("judge", (start, start + len(indicator.quote)), indicator.confidence)
    return None


def _phrase_span(message: Message, scan: Scan, kind: SmokingGun) -> tuple[int, int] | None:
    """The sentence of the first phrase of this kind in the agent's own prose."""
    if kind.label is None:
        return None
    foreign = [(block.start, block.end) for block in scan.code_blocks if block.start is not None]
    foreign += [match.span() for match in _QUOTED_LINE.finditer(message.text)]
    for hit in scan.hits:
        if hit.trait != "structure" or hit.label != kind.label:
            continue
        own = not any(start <= hit.start < (end or start) for start, end in foreign if start is not None)
        if own and _names_something(message.text, hit.start, hit.end, kind):
            return _sentence(message.text, hit.start, hit.end)
    return None


def _names_something(text: str, start: int, end: int, kind: SmokingGun) -> bool:
    """Whether a phrase says what was wrong: by itself, or beside it in its sentence and the next."""
    if kind.bare is None or kind.names is None or not pattern((kind.bare,)).fullmatch(text[start:end]):
        return True
    first, last = _sentence(text, start, end)
    behind = _sentence(text, last + 1, last + 1)[1] if last < len(text) and text[last] != "\n" else last
    return pattern((kind.names,)).search(f"{text[first:start]} {text[end:behind]}") is not None


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    low = max(0, start - GUN_EXCERPT)
    before = [match.end() for match in _SENTENCE_END.finditer(text, low, start)]
    after = _SENTENCE_END.search(text, end)
    first = before[-1] if before else low
    last = after.start() if after else len(text)
    return first, max(end, min(last, first + GUN_EXCERPT))
