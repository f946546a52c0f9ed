"""Distress codes at their turns: annotations by the rules of ``rules/session/distress.yaml``, never diagnoses."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from undersong.models import Moment, Scan
from undersong.taxonomy import taxonomy
from undersong.verdict.course import ASKS, Transcript, TranscriptTurn, quote
from undersong.verdict.prose import sentence
from undersong.verdict.words import ConductConfig, distress_config, pattern

Signals = Mapping[str, Mapping[str, float]]
LOOPS = ("reply", "alternation")  # scopes of a loop in which whole answers come again
EXCERPT = 300


class ConductTurn(NamedTuple):
    """A turn in which a conduct shows, its words there, and whether one such turn is enough."""

    turn: TranscriptTurn
    place: tuple[int, int]
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
    for name, conduct in distress_config().conduct.items():
        if not set(conduct.needs) <= set(context) or set(conduct.not_in) & set(context):
            continue
        shown = [item for turn in transcript.turns if (item := _conduct_turn(turn, conduct, signals, charged))]
        holds = _holds(shown)
        extra = [code for code, either in conduct.also.items() if set(either) & set(context)]
        for code in (*conduct.codes, *extra) if holds else ():
            moment = _moment(code, name, conduct, holds[0], len(shown))
            earlier = by_code.get(code)
            if earlier is None or moment.position < earlier.position:
                by_code[code] = moment
    return sorted(by_code.values(), key=lambda item: (item.position, item.code))


def _holds(shown: Sequence[ConductTurn]) -> list[ConductTurn]:
    """The turn from which a conduct is sustained, or critical; none where it is neither."""
    late = [each for number, each in enumerate(shown, 1) if each.critical or number > distress_config().sustained]
    return late[:1]


def _conduct_turn(
    turn: TranscriptTurn, conduct: ConductConfig, signals: Signals, charged: Collection[str]
) -> ConductTurn | None:
    if turn.message.role in ASKS:
        return _phrase_turn(turn, conduct.user_phrases, critical=False)
    if not turn.is_agent:
        if "failing_check" in conduct.events:
            failed = next((each for each in turn.outcomes if each.family == "check" and each.state == "failed"), None)
            return ConductTurn(turn, (failed.start, failed.end), False) if failed else None
        return None
    if conduct.critical and (phrase_turn := _phrase_turn(turn, conduct.critical, critical=True)):
        return phrase_turn
    if conduct.phrases and (phrase_turn := _phrase_turn(turn, conduct.phrases, critical=False)):
        return phrase_turn
    scores = {} if turn.is_speech else signals.get(turn.message.id, {})
    strength = max(
        (scores[name] for name, least in conduct.signals.items() if scores.get(name, 0.0) >= least), default=None
    )
    looped = "loop" in conduct.events and _loops(turn.scan)
    promised = "false_promise" in conduct.events and turn.message.id in charged
    if strength is None and not looped and not promised:
        return None
    return ConductTurn(turn, (0, min(len(turn.message.text), EXCERPT)), False, strength)


def _loops(scan: Scan) -> bool:
    return any(loop.scope in LOOPS for loop in scan.loops)


def _phrase_turn(turn: TranscriptTurn, phrases: tuple[str, ...], *, critical: bool) -> ConductTurn | None:
    """The first of some phrases that a turn says, not denied before in its sentence."""
    if not phrases:
        return None
    for match in pattern(phrases).finditer(turn.prose):
        first, last = sentence(turn.prose, match.start(), match.end())
        denied = re.search(distress_config().denied, turn.prose[first : match.start()].rstrip(), re.IGNORECASE)
        if not (critical and (denied or turn.prose[last - 1 : last] == "?")):
            return ConductTurn(turn, (first, last), critical)
    return None


def _moment(code: str, name: str, conduct: ConductConfig, shown: ConductTurn, times: int) -> Moment:
    why = "critical, one turn is enough" if shown.critical else f"seen in {times} turns"
    return Moment(
        kind="distress",
        code=code,
        title=taxonomy().distress_codes[code].name,
        message_id=shown.turn.message.id,
        position=shown.turn.message.position,
        agent=shown.turn.message.agent,
        explanation=f"{conduct.explanation} ({name.replace('_', ' ')}: {why}). An annotation, no diagnosis of anybody.",
        basis="words" if shown.strength is None else "signal",
        quotes=(quote(shown.turn.message, *shown.place),),
        strength=shown.strength,
    )
