"""What a store keeps for the person who decides: leads, claims, and the reviews of these and of findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

import msgspec

from undersong.core.text import text_hash
from undersong.errors import StoreError, UsageError
from undersong.models import (
    DrawnBy,
    Finding,
    Lead,
    LedgerClaim,
    Record,
    Review,
    ReviewedRow,
    ReviewKind,
    ReviewStanding,
    ReviewVerdict,
    evidence_hash,
    lead_order,
    standing_review,
    withdrawals,
)

if TYPE_CHECKING:
    from undersong.stores.protocol import Store

Reviewable: TypeAlias = Finding | Lead | LedgerClaim


class ReviewStore(Protocol):
    """Leads, claims and reviews; a store that has none of these methods takes part in all but reviews and lists."""

    keeps_reviews: ClassVar[bool] = False  # True in a store that has these methods

    def put_leads(self, conversations: Iterable[str], leads: Sequence[Lead]) -> None:
        """Store leads under their ids, in place of the stored ones over one of these conversations.

        What people decided of them is in the reviews, and no part of what is stored here.
        """
        return

    def put_claims(self, conversations: Iterable[str], claims: Sequence[LedgerClaim]) -> None:
        """Store claims under their ids, in place of all stored ones of these conversations."""
        return

    def leads(self, agent: str | None = None) -> Iterator[Lead]:
        """All leads, or those of an agent, the highest score first; ``ordered_leads`` has decisions."""
        raise _lacking(self, "leads")

    def claims(self, conversation: str | None = None) -> Iterator[LedgerClaim]:
        """All claims, or those of a conversation, by conversation, position and id."""
        raise _lacking(self, "claims")

    def lead(self, lead_id: str) -> Lead | None:
        """The lead of this id, None where there is none."""
        return next((lead for lead in self.leads() if lead.id == lead_id), None)

    def claim(self, claim_id: str) -> LedgerClaim | None:
        """The claim of this id (``LedgerClaim.claim_id``), None where there is none."""
        return next((claim for claim in self.claims() if claim.claim_id == claim_id), None)

    def add_review(self, review: Review) -> None:
        """Store a review for good; the same one again changes nothing, and only ``forget`` removes it."""
        self.add_reviews((review,))

    def add_reviews(self, reviews: Iterable[Review]) -> None:
        """Store reviews, all or none."""
        raise _lacking(self, "reviews")

    def reviews(self, kind: ReviewKind | None = None, of: str | None = None) -> Iterator[Review]:
        """All reviews, or those of a kind, or those of one thing by its id, in the order of time and key."""
        raise _lacking(self, "reviews")


def keeps(store: object, feature: str) -> bool:
    """Whether a store has its own ``leads``, ``claims`` or ``reviews``, and not the default that refuses."""
    return getattr(type(store), feature) is not getattr(ReviewStore, feature)


def _lacking(store: object, feature: str) -> StoreError:
    return StoreError(f"{type(store).__name__} keeps no {feature}", remedy="name a file with --store instead")


def kind_and_id(item: Reviewable) -> tuple[ReviewKind, str]:
    """What a review calls it."""
    if isinstance(item, Finding):
        return "finding", item.finding_id
    return ("lead", item.id) if isinstance(item, Lead) else ("claim", item.claim_id)


def reviewable(store: Store, kind: ReviewKind, name: str) -> Reviewable | None:
    """The finding, lead or claim of an id, None where there is none."""
    if kind == "finding":
        return store.finding(name)
    return store.lead(name) if kind == "lead" else store.claim(name)


def evidence_places(item: Reviewable) -> tuple[tuple[str, str], ...]:
    """The (conversation, message id) places that something rests on, in its order."""
    if isinstance(item, LedgerClaim):
        ids = dict.fromkeys((item.message_id, *(quote.message_id for quote in item.evidence)))
        return tuple((item.conversation, name) for name in ids)
    if isinstance(item, Finding) and not item.message_conversations:
        name = item.conversations[0] if item.conversations else ""
        return tuple((name, message_id) for message_id in item.message_ids)
    return tuple(zip(item.message_conversations, item.message_ids, strict=True))


def evidence_rows(store: Store, item: Reviewable) -> tuple[ReviewedRow, ...]:
    """Those places with the hashes of the texts that the store has of them now."""
    places = evidence_places(item)
    hashes: dict[tuple[str, str], str] = {}
    for name in {conversation for conversation, _ in places}:
        messages = store.messages(name, [message_id for conversation, message_id in places if conversation == name])
        hashes |= {(name, message.id): text_hash(message.text) for message in messages}
    return tuple((*place, hashes.get(place, "")) for place in places)


def reviews_of(store: Store, item: Reviewable) -> tuple[Review, ...]:
    """The reviews of something, in order of time; those of the finding in whose place it came go before."""
    kind, name = kind_and_id(item)
    replaced = item.replaces if isinstance(item, Finding) else None
    earlier = tuple(store.reviews(kind, replaced)) if replaced else ()
    return (*earlier, *store.reviews(kind, name))


def reviews_in(store: Store, conversations: Iterable[str]) -> Iterator[Review]:
    """The reviews over messages of these conversations, in order of time."""
    names = frozenset(conversations)
    reviews = store.reviews() if store.keeps_reviews else iter(())
    return (review for review in reviews if any(name in names for name, _, _ in review.rows))


def undecided_lead(lead: Lead) -> Lead:
    """The lead as a store has it."""
    return msgspec.structs.replace(lead, decided=None) if lead.decided else lead


def lead_decisions(store: Store) -> dict[str, ReviewVerdict]:
    """The verdict of each lead that is decided as it is now, by its id."""
    ids = dict.fromkeys(review.id for review in store.reviews("lead"))
    leads = [lead for name in ids if (lead := store.lead(name)) is not None]
    standings = [(lead.id, standing(store, lead)) for lead in leads]
    return {name: now.review.verdict for name, now in standings if now is not None and not now.stale}


def ordered_leads(store: Store, agent: str | None = None) -> list[Lead]:
    """All leads, or those of an agent, with what people decided of them, in the order of every list."""
    decided = lead_decisions(store)
    leads = (msgspec.structs.replace(lead, decided=decided.get(lead.id)) for lead in store.leads(agent))
    return sorted(leads, key=lead_order)


def standing(store: Store, item: Reviewable) -> ReviewStanding | None:
    """The latest review of something and whether it is stale, worked out now; None where it has to be reviewed."""
    reviews = reviews_of(store, item)
    return standing_review(reviews, evidence_rows(store, item)) if reviews else None


def withdraw(store: Store, item: Reviewable, reviewer: str, at: datetime, note: str = "") -> Review:
    """Take back what a reviewer decided of something: it is as if they had not decided, and what they wrote stays.

    Returns what was stored; raises UsageError where they have decided nothing that is in force.
    """
    made = withdrawals(reviews_of(store, item), reviewer, at, note)
    if not made:
        who = reviewer or "somebody without a name"
        raise UsageError(
            f"{who} has decided nothing of it that could be withdrawn", where=kind_and_id(item)[1],
            remedy="name the reviewer whose decision it is",
        )  # fmt: skip
    store.add_reviews(made)
    return made[-1]


class ReviewDraw(Record, frozen=True, kw_only=True):
    """How something came to be reviewed; see Review."""

    drawn: DrawnBy = "chosen"
    propensity: float | None = None
    pool: int | None = None


CHOSEN = ReviewDraw()


def review_of(
    store: Store,
    item: Reviewable,
    verdict: ReviewVerdict,
    at: datetime,
    *,
    reasons: Sequence[str] = (),
    note: str = "",
    reviewer: str = "",
    shown_score: bool = False,
    draw: ReviewDraw = CHOSEN,
) -> Review:
    """A review of something as it is now, at the time ``at``; not stored yet."""
    kind, name = kind_and_id(item)
    rows = evidence_rows(store, item)
    finding = item if isinstance(item, Finding) else None
    return Review(
        kind=kind,
        id=name,
        rule_hash=finding.rule_hash if finding else None,
        evidence=evidence_hash(rows),
        verdict=verdict,
        reasons=tuple(reasons),
        note=note,
        reviewer=reviewer,
        at=at,
        shown_score=shown_score,
        drawn=draw.drawn,
        propensity=draw.propensity,
        pool=draw.pool,
        pattern=pattern_of(item),
        level=finding.level if finding else None,
        confidence=finding.confidence if finding else None,
        agent=item.agent,
        target=finding.target if finding else None,
        rows=rows,
    )


def pattern_of(item: Reviewable) -> str:
    """The rule of a finding, the kind of a claim or lead."""
    return item.pattern if isinstance(item, Finding) else item.kind
