"""Leads that a person has decided on: they come after all others, and say so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from undersong.core.text import text_hash
from undersong.models import Lead, Review, ReviewVerdict, ranked_leads, standing_review
from undersong.patterns.detect import MessageKey
from undersong.patterns.leads import places_of


def with_decisions(
    leads: Iterable[Lead], reviews: Iterable[Review], texts: Mapping[MessageKey, str]
) -> tuple[Lead, ...]:
    """The leads with what ``reviews``, in order of time, decided of them, in their order.

    ``texts`` are those of the messages of the leads that have reviews: of changed ones nobody has decided.
    """
    by_id: dict[str, list[Review]] = {}
    for review in reviews:
        if review.kind == "lead":
            by_id.setdefault(review.id, []).append(review)
    return ranked_leads(
        msgspec.structs.replace(lead, decided=_verdict(lead, by_id.get(lead.id, ()), texts)) for lead in leads
    )


def reviewed_places(leads: Iterable[Lead], reviews: Iterable[Review]) -> list[MessageKey]:
    """The messages of the leads that have reviews."""
    ids = {review.id for review in reviews if review.kind == "lead"}
    return sorted({place for lead in leads if lead.id in ids for place in places_of(lead)})


def _verdict(lead: Lead, reviews: Iterable[Review], texts: Mapping[MessageKey, str]) -> ReviewVerdict | None:
    rows = [(*place, text_hash(texts[place]) if place in texts else "") for place in places_of(lead)]
    standing = standing_review(reviews, rows)
    return standing.review.verdict if standing is not None and not standing.stale else None
