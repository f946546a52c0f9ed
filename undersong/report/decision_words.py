"""What people decided of a finding, lead or claim, in words beside it."""

from __future__ import annotations

from collections.abc import Iterator

from undersong.core.text import text_hash
from undersong.models import Case, LedgerClaim, Review, ReviewedRow, ReviewStanding, standing_review
from undersong.report.opening_choice import Point
from undersong.stores.reviewing import Reviewable, evidence_places, kind_and_id


def decision_words(case: Case, item: Reviewable) -> tuple[str, ...]:
    """A sentence for the latest verdict of each reviewer; () where nobody decided on what it rests on.

    The texts are foreign: they are to be escaped like those of messages.
    """
    reviews = [review for review in case.reviews if (review.kind, review.id) == kind_and_id(item)]
    standing = standing_review(reviews, _rows(case, item, reviews[-1])) if reviews else None
    return () if standing is None else standing_words(standing)


def standing_words(standing: ReviewStanding) -> tuple[str, ...]:
    """A sentence for the latest verdict of each reviewer, which says so where it is stale."""
    stale = "; stale: the messages have changed since" if standing.stale else ""
    return tuple(f"{_words(review)}{stale}" for review in (standing.review, *standing.others))


def point_decisions(case: Case, point: Point) -> tuple[str, ...]:
    """The same for a thing to look at."""
    items = point_items(case, point) if case.reviews else ()
    return tuple(words for item in items for words in decision_words(case, item))


def point_items(case: Case, point: Point) -> Iterator[Reviewable]:
    """What a thing to look at is made of and a person can decide on: a finding, leads, or the claims of a message."""
    place = (point.conversation, point.message_id)
    if point.kind == "finding":
        yield from (finding for finding in case.findings if finding.finding_id.startswith(point.id))
    elif point.lead_id:
        yield from (lead for lead in case.leads if lead.id == point.lead_id)
    else:
        yield from claims_at(case, *place)


def claim_decisions(case: Case, conversation: str, message_id: str) -> tuple[str, ...]:
    """The same for every claim of a message."""
    items = claims_at(case, conversation, message_id) if case.reviews else ()
    return tuple(words for item in items for words in decision_words(case, item))


def claims_at(case: Case, conversation: str, message_id: str) -> Iterator[LedgerClaim]:
    """The claims of a message."""
    sessions = (session for session in case.sessions if session.conversation == conversation)
    yield from (claim for session in sessions for claim in session.claims if claim.message_id == message_id)


def _words(review: Review) -> str:
    who = review.reviewer or "somebody without a name"
    reasons = f": {', '.join(review.reasons)}" if review.reasons else ""
    note = f" “{review.note}”" if review.note else ""
    return f"{review.verdict} by {who}, {review.at:%Y-%m-%d}{reasons}{note}"


def _rows(case: Case, item: Reviewable, last: Review) -> Iterator[ReviewedRow]:
    """The messages of something; the text of one that the case does not hold counts as that of the review."""
    places = evidence_places(item)
    hashes = {(conversation, name): digest for conversation, name, digest in last.rows}
    texts = {(message.conversation, message.id): message.text for message in case.cited}
    for place in places:
        yield *place, text_hash(texts[place]) if place in texts else hashes.get(place, "")
