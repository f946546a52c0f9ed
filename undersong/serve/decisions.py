"""What a person decided, from a form or a request into the store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from undersong.models import Finding, Record, Review, ReviewKind, ReviewVerdict, drawn_later
from undersong.serve.library import Library
from undersong.serve.problems import missing
from undersong.serve.review_order import ReviewQueue, draws_until
from undersong.stores import review_queue
from undersong.stores.reviewing import CHOSEN, ReviewDraw, review_of, reviewable, standing, withdraw
from undersong.stores.sql.browsing import BrowsingStore

NOTE = 4_000  # characters of a note
NAME = 80  # characters of a reviewer's name
REASONS_AT_MOST = 20


class Decision(Record, frozen=True, kw_only=True):
    """A decision as it comes in: of what, which way, and why; ``withdrawn`` takes back what this reviewer decided.

    ``shown_score``: whether the reviewer saw how sure the program is. Whether it was drawn is worked out here: it was
    where it is next in the queue.
    """

    kind: ReviewKind
    id: str
    verdict: ReviewVerdict
    reasons: tuple[str, ...] = ()
    note: str = ""
    reviewer: str = ""
    shown_score: bool = True


def decide(library: Library, decision: Decision) -> Review:
    """Store a decision for good and return the review; raises ProblemError where there is nothing of that id."""
    return library.write(lambda store: _stored(store, library.queue, decision))


def _stored(store: BrowsingStore, queue: ReviewQueue, decision: Decision) -> Review:
    item = reviewable(store, decision.kind, decision.id)
    if item is None:
        raise missing(f"there is no such {decision.kind}", decision.id)
    at = datetime.now(UTC)
    if decision.verdict == "withdrawn":
        return withdraw(store, item, decision.reviewer[:NAME], at, decision.note[:NOTE])
    facts: dict[str, Any] = {
        "reasons": tuple(reason[:NOTE] for reason in decision.reasons[:REASONS_AT_MOST]),
        "note": decision.note[:NOTE],
        "reviewer": decision.reviewer[:NAME],
        "shown_score": decision.shown_score,
    }
    if not isinstance(item, Finding):
        return review_queue.decide(store, item, decision.verdict, at, **facts)
    places = draws_until(queue, store, item)
    again = [_drawn_now(store, place.id, place.draw) for place in places[:-1]]
    review = review_of(store, item, decision.verdict, at, draw=places[-1].draw if places else CHOSEN, **facts)
    store.add_reviews([*(each for each in again if each is not None), review])
    return review


def _drawn_now(store: BrowsingStore, name: str, draw: ReviewDraw) -> Review | None:
    """The decision on a finding that somebody chose before the draw came upon it, now with its probability."""
    finding = store.finding(name)
    earlier = standing(store, finding) if finding is not None else None
    return None if earlier is None else drawn_later(earlier.review, **msgspec.structs.asdict(draw))
