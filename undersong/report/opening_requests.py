"""What a first screen says of requests that are worth a look together: a sentence for each speaker, and the words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from undersong.models import Case, Lead, Moment, SessionVerdict
from undersong.patterns.request_leads import (
    counted_to_one,
    request_kind,
    request_lead_id,
    requests_of_speakers,
    what_is_asked,
)
from undersong.report.opening_choice import DatedLine
from undersong.report.opening_phrases import name_of
from undersong.report.opening_sentences import sentences
from undersong.report.order import order_sessions

LINES = 8  # sentences of a speaker that a first screen shows


class RequestsTogether(NamedTuple):
    """The requests of one speaker: ``does`` says all of it, ``lines`` are the sentences that do, in their order, with
    what was counted of the same speaker: ``counted`` says that, "" where it is nothing. ``gravest`` is one of them."""

    session: SessionVerdict
    does: str
    counted: Lead | None
    gravest: DatedLine
    lines: tuple[DatedLine, ...]
    lead: Lead


def requests_together(case: Case) -> Iterator[RequestsTogether]:
    """Every speaker whose requests are noted, in the order of the leads."""
    leads = {lead.id: lead for lead in case.leads}
    counted = counted_to_one(case.leads)
    places = {(message.conversation, message.id): message.position for message in case.cited}
    every = []
    for session in order_sessions(case):
        for agent, own in requests_of_speakers(session.moments):
            lead = leads[request_lead_id(session.conversation, agent)]
            every.append(_together(session, own, lead, counted.get((agent, session.conversation)), places))
    yield from sorted(every, key=lambda asks: asks.lead.rank)


def _together(
    session: SessionVerdict,
    own: Sequence[Moment],
    lead: Lead,
    counted: Lead | None,
    places: Mapping[tuple[str, str], int],
) -> RequestsTogether:
    asked = _lines(own, session)
    noted = {item.message_id for item in own}
    why, who = sentences().how_sure["wording"], asked[0].speaker
    quotes = (quote for quote in lead.quotes if quote.message_id not in noted)
    beside = [DatedLine(quote.message_id, who, quote.text, why) for quote in quotes]
    lines = sorted([*asked, *beside], key=lambda line: places.get((session.conversation, line.message_id), 0))
    return RequestsTogether(session, what_is_asked(own), counted, asked[0], tuple(lines), lead)


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
