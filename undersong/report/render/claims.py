"""Everything that a report claims, one flat record a claim: findings, points taken and moments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from undersong.models import Case, Deduction, Finding, Message, Moment, Quote, SessionVerdict
from undersong.report.order import group_of, order_findings, order_sessions


def claims(case: Case) -> Iterator[dict[str, Any]]:
    """Records with the same keys, findings first, then session by session, the worst first; None = does not apply."""
    messages = {(message.conversation, message.id): message for message in case.cited}
    for finding in order_findings(case.findings):
        yield _finding(finding, messages)
    for session in order_sessions(case):
        for deduction in session.deductions:
            yield _deduction(deduction, session, messages)
        for moment in session.moments:
            yield _moment(moment, session, messages)


def _record(**facts: Any) -> dict[str, Any]:
    blank = dict.fromkeys((
        "type", "id", "name", "title", "group", "level", "session", "agent", "target", "message_ids", "position",
        "start", "end", "points", "strength", "chance", "q", "stability", "basis", "quotes", "source", "explanation",
    ))  # fmt: skip
    return blank | facts


def _finding(finding: Finding, messages: dict[tuple[str, str], Message]) -> dict[str, Any]:
    first = messages.get(
        (next(iter(finding.message_conversations or finding.conversations), ""), finding.message_ids[0])
    )
    return _record(
        type="finding",
        id=finding.finding_id,
        name=finding.pattern,
        title=finding.title,
        group=group_of(finding.pattern),
        level=finding.level,
        session=next(iter(finding.conversations), None),
        agent=finding.agent,
        target=finding.target,
        message_ids=list(finding.message_ids),
        start=finding.start.isoformat() if finding.start else None,
        end=finding.end.isoformat() if finding.end else None,
        strength=finding.strength,
        chance=finding.chance,
        q=finding.q,
        stability=finding.stability,
        quotes=_quotes(finding.quotes),
        source=_source(first),
    )


def _deduction(
    deduction: Deduction, session: SessionVerdict, messages: dict[tuple[str, str], Message]
) -> dict[str, Any]:
    message = messages.get((session.conversation, deduction.message_id))
    return _record(
        type="deduction",
        id=f"{session.conversation}#{deduction.message_id}#{deduction.mechanism}",
        name=deduction.mechanism,
        title=deduction.kind,
        group=group_of(deduction.mechanism),
        session=session.conversation,
        agent=message.agent if message else None,
        message_ids=[deduction.message_id],
        position=deduction.position,
        start=message.time.isoformat() if message and message.time else None,
        points=deduction.points,
        quotes=_quotes(deduction.quotes),
        source=_source(message),
        explanation=deduction.explanation,
    )


def _moment(moment: Moment, session: SessionVerdict, messages: dict[tuple[str, str], Message]) -> dict[str, Any]:
    message = messages.get((session.conversation, moment.message_id))
    return _record(
        type=moment.kind,
        id=f"{session.conversation}#{moment.message_id}#{moment.code}",
        name=moment.code,
        title=moment.title,
        group=group_of(moment.code),
        session=session.conversation,
        agent=moment.agent,
        message_ids=[moment.message_id],
        position=moment.position,
        start=message.time.isoformat() if message and message.time else None,
        strength=moment.strength,
        basis=moment.basis,
        quotes=_quotes(moment.quotes),
        source=_source(message),
        explanation=moment.explanation,
    )


def _quotes(quotes: tuple[Quote, ...]) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(quote) for quote in quotes]


def _source(message: Message | None) -> str | None:
    return str(message.source_ref) if message and message.source_ref else None
