"""The sentences that a lead is shown with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from undersong.models import Lead, Message, Quote, Row
from undersong.patterns.detect import MessageKey, Span, verbatim
from undersong.patterns.lead_weights import lead_weights
from undersong.patterns.leads import places_of, shown_leads

TRIVIAL = 5  # words of a sentence that says nothing by itself


def with_quotes(leads: Sequence[Lead], rows: Iterable[Row], messages: Mapping[MessageKey, Message]) -> tuple[Lead, ...]:
    """The leads, those that are shown with a sentence of each message that has none yet: that of a signal which the
    reason names, else of the strongest one, else its beginning. What has TRIVIAL words or fewer says nothing by itself,
    and is no quote.
    """
    shown = {lead.id for lead in shown_leads(leads)}
    places = {place for lead in leads if lead.id in shown for place in places_of(lead)}
    by_place = {place: row for row in rows if (place := (row.conversation, row.id)) in places}
    return tuple(
        msgspec.structs.replace(lead, quotes=(*lead.quotes, *_quotes(lead, by_place, messages)))
        if lead.id in shown
        else lead
        for lead in leads
    )


def _quotes(lead: Lead, rows: Mapping[MessageKey, Row], messages: Mapping[MessageKey, Message]) -> Iterator[Quote]:
    strongest: dict[MessageKey, Span] = {}
    quoted = {quote.message_id for quote in lead.quotes}  # of exact words, which are of one conversation
    places = [place for place in places_of(lead) if place[1] not in quoted]
    for place in places:
        if place in rows and place in messages:
            span = _strongest_span(rows[place], messages[place].text, lead.reason)
            if span is not None:
                strongest[place] = span
    for quote in verbatim(places, messages, strongest=strongest):
        if not _is_trivial(quote.text):
            yield quote


def _is_trivial(text: str) -> bool:
    return len(text.split()) <= TRIVIAL


def _strongest_span(row: Row, text: str, reason: str) -> Span | None:
    if row.absolute_scores is not None:  # a level is of the whole message: it is quoted from its beginning
        return None
    signals = lead_weights().signals
    names = [name for name in signals if name in row.spans and not _is_trivial(text[slice(*row.spans[name])])]
    best = min(names, key=lambda name: (signals[name] not in reason, -row.signals.get(name, 0.0), name), default=None)
    return None if best is None else row.spans[best]
