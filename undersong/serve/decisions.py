"""What a person decided, from a form or a request into the store."""

from __future__ import annotations

from datetime import UTC, datetime

from undersong.models import (
    Finding,
    LedgerClaim,
    Record,
    Review,
    ReviewKind,
    ReviewVerdict,
    evidence_hash,
)
from undersong.models.review import DrawnBy
from undersong.serve.library import Library
from undersong.serve.problems import missing
from undersong.stores.reviewing import evidence_rows, pattern_of, reviewable
from undersong.stores.sqlite.browsing import BrowsingStore

NOTE = 4_000  # characters of a note
NAME = 80  # characters of a reviewer's name
REASONS_AT_MOST = 20


class Decision(Record, frozen=True, kw_only=True):
    """A decision as it comes in: of what, which way, why, and how it came to be asked; see ``Review``."""

    kind: ReviewKind
    id: str
    verdict: ReviewVerdict
    reasons: tuple[str, ...] = ()
    note: str = ""
    reviewer: str = ""
    shown_score: bool = True
    drawn: DrawnBy = "chosen"
    propensity: float | None = None
    pool: int | None = None


def decide(library: Library, decision: Decision) -> Review:
    """Store a decision for good and return the review; raises ProblemError where there is nothing of that id."""
    return library.write(lambda store: _stored(store, decision))


def _stored(store: BrowsingStore, decision: Decision) -> Review:
    item = reviewable(store, decision.kind, decision.id)
    if item is None:
        raise missing(f"there is no such {decision.kind}", decision.id)
    rows = evidence_rows(store, item)
    is_finding = isinstance(item, Finding)
    review = Review(
        kind=decision.kind,
        id=decision.id,
        rule_hash=item.rule_hash if isinstance(item, Finding) else None,
        evidence=evidence_hash(rows),
        verdict=decision.verdict,
        reasons=tuple(reason[:NOTE] for reason in decision.reasons[:REASONS_AT_MOST]),
        note=decision.note[:NOTE],
        reviewer=decision.reviewer[:NAME],
        at=datetime.now(UTC),
        shown_score=decision.shown_score,
        drawn=decision.drawn,
        propensity=decision.propensity if decision.propensity and 0 < decision.propensity <= 1 else None,
        pool=decision.pool,
        pattern=pattern_of(item),
        level=item.level if isinstance(item, Finding) else None,
        confidence=item.confidence if isinstance(item, Finding) else None,
        agent=item.agent,
        target=item.target if is_finding and not isinstance(item, LedgerClaim) else None,  # type: ignore[union-attr]
        rows=rows,
    )
    store.add_review(review)
    return review
