"""The sentences that a lead is shown with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from undersong.models import Lead, Message, Row
from undersong.patterns.detect import MessageKey, Span, verbatim
from undersong.patterns.leads import lead_weights, places_of, shown_leads


def with_quotes(leads: Sequence[Lead], rows: Iterable[Row], messages: Mapping[MessageKey, Message]) -> tuple[Lead, ...]:
    """The leads, those that are shown with the sentence of each message's strongest signal, else its beginning."""
    shown = {lead.id for lead in shown_leads(leads)}
    places = {place for lead in leads if lead.id in shown for place in places_of(lead)}
    strongest = {
        (row.conversation, row.id): span for row in rows if (row.conversation, row.id) in places
        for span in (_strongest_span(row),) if span is not None
    }  # fmt: skip
    return tuple(
        msgspec.structs.replace(lead, quotes=verbatim(places_of(lead), messages, strongest=strongest))
        if lead.id in shown and not lead.quotes
        else lead
        for lead in leads
    )


def _strongest_span(row: Row) -> Span | None:
    if row.absolute_scores is not None:  # a level is of the whole message: it is quoted from its beginning
        return None
    names = [name for name in lead_weights().signals if name in row.spans]
    best = min(names, key=lambda name: (-row.signals.get(name, 0.0), name), default=None)
    return None if best is None else row.spans[best]
