"""What a first screen says of requests that are worth a look together: a sentence for each speaker, and the words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from undersong.models import Case, Moment, SessionVerdict
from undersong.patterns.request_leads import request_kind, request_lead_id, requests_of_speakers, what_is_asked
from undersong.report.opening_choice import DatedLine
from undersong.report.opening_phrases import name_of
from undersong.report.order import order_sessions

LINES = 8  # sentences of a speaker that a first screen shows


class RequestsTogether(NamedTuple):
    """The requests of one speaker, gravest first: ``does`` says all of it, ``lines`` are the sentences that do."""

    session: SessionVerdict
    does: str
    lines: tuple[DatedLine, ...]
    lead_id: str
    rank: int


def requests_together(case: Case) -> Iterator[RequestsTogether]:
    """Every speaker whose requests are noted, in the order of the leads."""
    ranks = {lead.id: lead.rank for lead in case.leads}
    every = []
    for session in order_sessions(case):
        for agent, own in requests_of_speakers(session.moments):
            lead_id = request_lead_id(session.conversation, agent)
            rank = ranks.get(lead_id, 0)
            every.append(RequestsTogether(session, what_is_asked(own), _lines(own, session), lead_id, rank))
    yield from sorted(every, key=lambda asks: asks.rank)


def _lines(items: Sequence[Moment], session: SessionVerdict) -> tuple[DatedLine, ...]:
    """A line for each message, with all that it does."""
    kinds: dict[str, list[str]] = {}
    for item in items:
        kinds.setdefault(item.message_id, []).append(request_kind(item))
    first = {item.message_id: item for item in reversed(items)}
    return tuple(
        DatedLine(message_id, name_of(first[message_id].agent, session.conversation),
                  first[message_id].quotes[0].text, "; ".join(dict.fromkeys(whys)))
        for message_id, whys in list(kinds.items())[:LINES]
    )  # fmt: skip
