"""What people decided of a finding, lead or claim, in words beside it."""

from __future__ import annotations

from collections.abc import Iterator

from undersong.core.text import text_hash
from undersong.models import Case, Review, ReviewedRow, standing_review
from undersong.stores.reviewing import Reviewable, evidence_places, kind_and_id


def decision_words(case: Case, item: Reviewable) -> tuple[str, ...]:
    """A sentence for the latest verdict of each reviewer; () where nobody decided on what it rests on.

    The texts are foreign: they are to be escaped like those of messages.
    """
    reviews = [review for review in case.reviews if (review.kind, review.id) == kind_and_id(item)]
    standing = standing_review(reviews, _rows(case, item, reviews[-1])) if reviews else None
    if standing is None:
        return ()
    stale = "; stale: the messages have changed since" if standing.stale else ""
    return tuple(f"{_words(review)}{stale}" for review in (standing.review, *standing.others))


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
