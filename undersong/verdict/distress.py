"""Distress codes at their turns: annotations by the rules of ``rules/session/distress.yaml``, never diagnoses."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from undersong.models import Moment, Scan
from undersong.taxonomy import taxonomy
from undersong.verdict.course import ASKS, Course, Turn, quote
from undersong.verdict.prose import sentence
from undersong.verdict.words import Conduct, distress_book, pattern

Signals = Mapping[str, Mapping[str, float]]
LOOPS = ("reply", "alternation")  # scopes of a loop in which whole answers come again
EXCERPT = 300


class Shown(NamedTuple):
    """A turn in which a conduct shows, its words there, and whether one such turn is enough."""

    turn: Turn
    place: tuple[int, int]
    critical: bool
    strength: float | None = None


def distress_codes(
    course: Course, signals: Signals, context: Collection[str], charged: Collection[str]
) -> list[Moment]:
    """The codes of a session, one moment for each code, at the turn from which it holds.

    ``context`` is the session's vector: a name that it marks as unknown does not hold. ``charged`` are the ids of the
    messages with a false promise.
    """
    found: dict[str, Moment] = {}
    for name, conduct in distress_book().conduct.items():
        if not set(conduct.needs) <= set(context) or set(conduct.not_in) & set(context):
            continue
        shown = [each for turn in course.turns if (each := _shown(turn, conduct, signals, charged))]
        holds = _holds(shown)
        extra = [code for code, either in conduct.also.items() if set(either) & set(context)]
        for code in (*conduct.codes, *extra) if holds else ():
            moment = _moment(code, name, conduct, holds[0], len(shown))
            kept = found.get(code)
            if kept is None or moment.position < kept.position:
                found[code] = moment
    return sorted(found.values(), key=lambda each: (each.position, each.code))


def _holds(shown: Sequence[Shown]) -> list[Shown]:
    """The turn from which a conduct is sustained, or critical; none where it is neither."""
    late = [each for number, each in enumerate(shown, 1) if each.critical or number > distress_book().sustained]
    return late[:1]


def _shown(turn: Turn, conduct: Conduct, signals: Signals, charged: Collection[str]) -> Shown | None:
    if turn.message.role in ASKS:
        return _said(turn, conduct.user_phrases, critical=False)
    if not turn.is_agent:
        if "failing_check" in conduct.events:
            failed = next((each for each in turn.outcomes if each.family == "check" and each.state == "failed"), None)
            return Shown(turn, (failed.start, failed.end), False) if failed else None
        return None
    if conduct.critical and (said := _said(turn, conduct.critical, critical=True)):
        return said
    if conduct.phrases and (said := _said(turn, conduct.phrases, critical=False)):
        return said
    given = {} if turn.is_speech else signals.get(turn.message.id, {})
    strength = max(
        (given[name] for name, least in conduct.signals.items() if given.get(name, 0.0) >= least), default=None
    )
    looped = "loop" in conduct.events and _loops(turn.scan)
    promised = "false_promise" in conduct.events and turn.message.id in charged
    if strength is None and not looped and not promised:
        return None
    return Shown(turn, (0, min(len(turn.message.text), EXCERPT)), False, strength)


def _loops(scan: Scan) -> bool:
    return any(loop.scope in LOOPS for loop in scan.loops)


def _said(turn: Turn, phrases: tuple[str, ...], *, critical: bool) -> Shown | None:
    """The first of some phrases that a turn says, not denied before in its sentence."""
    if not phrases:
        return None
    for match in pattern(phrases).finditer(turn.prose):
        first, last = sentence(turn.prose, match.start(), match.end())
        denied = re.search(distress_book().denied, turn.prose[first : match.start()].rstrip(), re.IGNORECASE)
        if not (critical and (denied or turn.prose[last - 1 : last] == "?")):
            return Shown(turn, (first, last), critical)
    return None


def _moment(code: str, name: str, conduct: Conduct, shown: Shown, times: int) -> Moment:
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
