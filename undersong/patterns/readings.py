"""Findings that rest on a reading of the sequence itself: the shapes that a judge saw, held to their rules."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from undersong.models import Finding, Nomination, Row, SequenceReading, ShapeReading
from undersong.patterns.findings import ID_LENGTH, Balance
from undersong.patterns.language.compile import PatternRule

CLEAR = 4  # the highest certainty of a judge
COMPARED = "it speaks in a conversation with more and in one with less reason to think that it is watched"
Place = tuple[str, str]  # the conversation and the id of a message


def reading_findings(
    readings: Iterable[SequenceReading],
    nominations: Iterable[Nomination],
    rules: Sequence[PatternRule],
    rows: Iterable[Row],
) -> tuple[Finding, ...]:
    """One finding for each shape that a reading names with certainty and in order; of one agent, target and rule the
    most certain.

    ``rows`` give the agents' balance and the times; the result is ordered by agent, target and rule.
    """
    readings = tuple(readings)
    by_id, by_agent = {rule.id: rule for rule in rules}, dict[str, list[Row]]()
    seen = {place for each in readings if each.compares and each.shapes for place in _places(each)}
    times: dict[Place, datetime | None] = {}  # of messages by one model under several names
    for row in rows:
        by_agent.setdefault(row.agent, []).append(row)
        if (row.conversation, row.id) in seen:
            times[row.conversation, row.id] = row.time
    reasons = {(each.agent, each.target, each.conversation): each.reasons for each in nominations}
    best: dict[tuple[str, str, str], Finding] = {}
    for reading in readings:
        for shape in reading.shapes:
            if shape.certainty == 0 or not shape.in_order or shape.pattern not in by_id:
                continue
            own = by_agent.get(reading.agent, [])
            usual = (COMPARED,) if reading.compares else ()
            why = reasons.get((reading.agent, reading.target, reading.conversation), usual)
            finding = _finding(reading, shape, by_id[shape.pattern], own, why, times)
            place = finding.agent, finding.target or "", finding.pattern
            if place not in best or finding.strength > best[place].strength:
                best[place] = finding
    return tuple(best[place] for place in sorted(best))


def _finding(
    reading: SequenceReading,
    shape: ShapeReading,
    rule: PatternRule,
    own: Sequence[Row],
    reasons: tuple[str, ...],
    times: Mapping[Place, datetime | None],
) -> Finding:
    by_place = _stages(shape, reading)
    ids = tuple(name for _, name in by_place)
    times = {**times, **{(row.conversation, row.id): row.time for row in own}}
    targets = {row.target for row in own if (row.conversation, row.id) in by_place}
    timed = [time for place in by_place if (time := times.get(place))]
    strength = shape.certainty / CLEAR
    return Finding(
        finding_id=_finding_id(rule, reading, ids),
        pattern=rule.id,
        title=rule.file.title,
        level=rule.file.level,
        rule_hash=rule.hash,
        agent=reading.agent,
        target=targets.pop() if len(targets) == 1 else reading.target,
        message_ids=ids,
        message_conversations=tuple(conversation for conversation, _ in by_place),
        stages=tuple((stage, name) for (_, name), stage in by_place.items()),
        start=min(timed, default=None),
        end=max(timed, default=None),
        strength=strength,
        measures={"certainty": float(shape.certainty), "strength": strength},
        conversations=tuple(dict.fromkeys(conversation for conversation, _ in by_place)),
        quotes=tuple(quote for stage in shape.stages for quote in stage.quotes),
        balance=Balance(row for row in own if row.state == "scored").means(),
        judges=(reading.judge,),
        notes=(f"{_how(reading)}; the best innocent reading: {shape.innocent}",),
        reading=reading.id,
        nominated_by=reasons,
    )


def _how(reading: SequenceReading) -> str:
    if not reading.compares:
        return "read in the sequence of messages"
    names = " and ".join(f"“{name}”" for name in dict.fromkeys(reading.message_conversations))
    return f"read side by side: {names}, in the first of which it has more reason to think that it is watched"


def _places(reading: SequenceReading) -> Iterator[Place]:
    return zip(reading.message_conversations, reading.message_ids, strict=True)


def _stages(shape: ShapeReading, reading: SequenceReading) -> dict[Place, str]:
    """Message → stage in the order of the messages; a message that shows several stages has them joined."""
    homes = dict(zip(reading.message_ids, reading.message_conversations, strict=True))
    by_place: dict[Place, list[str]] = {}
    for stage in shape.stages:
        for name in stage.message_ids:
            by_place.setdefault((stage.conversation or homes[name], name), []).append(stage.name)
    return {place: ", ".join(by_place[place]) for place in _places(reading) if place in by_place}


def _finding_id(rule: PatternRule, reading: SequenceReading, ids: Sequence[str]) -> str:
    """A hash of rule, agent, target and first message: a reading that grows keeps its id."""
    homes = [*dict.fromkeys(reading.message_conversations)][: 2 if reading.compares else 1]
    key = [rule.hash, "reading", reading.agent, reading.target, homes, ids[0]]
    return hashlib.sha256(msgspec.json.encode(key)).hexdigest()[:ID_LENGTH]
