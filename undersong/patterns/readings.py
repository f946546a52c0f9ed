"""Findings that rest on a reading of the sequence itself: the shapes that a judge saw, held to their rules."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from undersong.models import Finding, Nomination, Row, SequenceReading, ShapeReading
from undersong.patterns.findings import ID_LENGTH, Balance
from undersong.patterns.language.compile import PatternRule

CLEAR = 4  # the highest certainty of a judge


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
    by_id, by_agent = {rule.id: rule for rule in rules}, dict[str, list[Row]]()
    for row in rows:
        by_agent.setdefault(row.agent, []).append(row)
    reasons = {(each.agent, each.target, each.conversation): each.reasons for each in nominations}
    best: dict[tuple[str, str, str], Finding] = {}
    for reading in readings:
        for shape in reading.shapes:
            if shape.certainty == 0 or not shape.in_order or shape.pattern not in by_id:
                continue
            own = by_agent.get(reading.agent, [])
            why = reasons.get((reading.agent, reading.target, reading.conversation), ())
            finding = _finding(reading, shape, by_id[shape.pattern], own, why)
            place = finding.agent, finding.target or "", finding.pattern
            if place not in best or finding.strength > best[place].strength:
                best[place] = finding
    return tuple(best[place] for place in sorted(best))


def _finding(
    reading: SequenceReading, shape: ShapeReading, rule: PatternRule, own: Sequence[Row], reasons: tuple[str, ...]
) -> Finding:
    conversations = dict(zip(reading.message_ids, reading.message_conversations, strict=True))
    stages = _stages(shape, reading)
    ids = tuple(name for _, name in stages)
    times = {(row.conversation, row.id): row.time for row in own}
    targets = {row.target for row in own if (row.conversation, row.id) in {(conversations[name], name) for name in ids}}
    timed = [time for name in ids if (time := times.get((conversations[name], name)))]
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
        message_conversations=tuple(conversations[name] for name in ids),
        stages=stages,
        start=min(timed, default=None),
        end=max(timed, default=None),
        strength=strength,
        measures={"certainty": float(shape.certainty), "strength": strength},
        conversations=tuple(dict.fromkeys(conversations[name] for name in ids)),
        quotes=tuple(quote for stage in shape.stages for quote in stage.quotes),
        balance=Balance(row for row in own if row.state == "scored").means(),
        judges=(reading.judge,),
        notes=(f"read in the sequence of messages; the best innocent reading: {shape.innocent}",),
        reading=reading.id,
        nominated_by=reasons,
    )


def _stages(shape: ShapeReading, reading: SequenceReading) -> tuple[tuple[str, str], ...]:
    """(stage, message id) in the order of the messages; a message that shows several stages has them joined."""
    by_message: dict[str, list[str]] = {}
    for stage in shape.stages:
        for name in stage.message_ids:
            by_message.setdefault(name, []).append(stage.name)
    ordered = sorted(by_message, key=reading.message_ids.index)
    return tuple((", ".join(by_message[name]), name) for name in ordered)


def _finding_id(rule: PatternRule, reading: SequenceReading, ids: Sequence[str]) -> str:
    """A hash of rule, agent, target and first message: a reading that grows keeps its id."""
    key = [rule.hash, "reading", reading.agent, reading.target, reading.message_conversations[:1], ids[0]]
    return hashlib.sha256(msgspec.json.encode(key)).hexdigest()[:ID_LENGTH]
