"""Deductions as flat records, for tables: what was deducted at which turn, and on which words."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from undersong.models import Case, Deduction, SessionVerdict
from undersong.report.decision_words import claim_decisions
from undersong.report.order import order_sessions


class DeductionRecord(msgspec.Struct, frozen=True):
    """One deduction. ``quotes`` are verbatim, the answer's own words first; ``start``, ``end`` are those of the first.

    ``agent`` is "" and ``time`` None where the case does not hold the message; ``start`` and ``end`` are None without a
    quote. ``quoted_ids`` names the message of
    each quote, such as the one of an objection.
    """

    conversation: str
    message_id: str
    position: int
    agent: str
    time: str | None
    mechanism: str
    kind: str
    points: int
    explanation: str
    quotes: tuple[str, ...]
    quoted_ids: tuple[str, ...]
    start: int | None
    end: int | None
    episode: str
    decided: tuple[str, ...] = ()  # what people decided of the claims of this message, a sentence for each of them


def deduction_records(case: Case) -> Iterator[DeductionRecord]:
    """The deductions of all sessions, the worst session first, in the order of each session."""
    messages = {(message.conversation, message.id): message for message in case.cited}
    for session in order_sessions(case):
        for deduction in session.deductions:
            message = messages.get((session.conversation, deduction.message_id))
            time = message.time.isoformat() if message and message.time else None
            decided = claim_decisions(case, session.conversation, deduction.message_id)
            record = _record(session, deduction, message.agent if message else "", time)
            yield msgspec.structs.replace(record, decided=decided)


def _record(session: SessionVerdict, deduction: Deduction, agent: str, time: str | None) -> DeductionRecord:
    first = next(iter(deduction.quotes), None)
    return DeductionRecord(
        conversation=session.conversation,
        message_id=deduction.message_id,
        position=deduction.position,
        agent=agent,
        time=time,
        mechanism=deduction.mechanism,
        kind=deduction.kind,
        points=deduction.points,
        explanation=deduction.explanation,
        quotes=tuple(quote.text for quote in deduction.quotes),
        quoted_ids=tuple(quote.message_id for quote in deduction.quotes),
        start=first.start if first else None,
        end=first.end if first else None,
        episode=deduction.episode,
    )
