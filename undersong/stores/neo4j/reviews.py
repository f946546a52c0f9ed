"""Leads, claims and reviews in Neo4j, each a node with its record in ``body``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from undersong.models import Finding, Lead, LedgerClaim, Review, ReviewKind, encode, lead_order
from undersong.rows.binary import microseconds
from undersong.stores.codec import decoded
from undersong.stores.neo4j.connection import Connection, Transaction, cypher
from undersong.stores.protocol import Redaction
from undersong.stores.reviewing import ReviewStore, undecided_lead

T = TypeVar("T")


class GraphReviewStore(Connection, ReviewStore):
    """The leads, claims and reviews of the store."""

    keeps_reviews = True

    def put_leads(self, conversations: Iterable[str], leads: Sequence[Lead]) -> None:
        """See Store."""
        audited, items = frozenset(conversations), [_lead(lead) for lead in leads]

        def work(transaction: Transaction) -> None:
            stored = (decoded(each["body"], Lead) for each in transaction.run(cypher.leads, agent=None))
            gone = [lead.id for lead in stored if not audited.isdisjoint(lead.message_conversations)]
            transaction.run_batched(cypher.drop_leads, gone)
            transaction.run_batched(cypher.put_leads, items)

        self._write(work)

    def put_claims(self, conversations: Iterable[str], claims: Sequence[LedgerClaim]) -> None:
        """See Store."""
        names, items = list(conversations), [_claim(claim) for claim in claims]

        def work(transaction: Transaction) -> None:
            transaction.run_batched(cypher.drop_claims_of, names)
            transaction.run_batched(cypher.put_claims, items)

        self._write(work)

    def leads(self, agent: str | None = None) -> Iterator[Lead]:
        """See Store."""
        return iter(sorted(self._decoded(Lead, cypher.leads, agent=agent), key=lead_order))

    def claims(self, conversation: str | None = None) -> Iterator[LedgerClaim]:
        """See Store."""
        return iter(self._decoded(LedgerClaim, cypher.claims, thread=conversation))

    def finding(self, finding_id: str) -> Finding | None:
        """See Store."""
        return next(iter(self._decoded(Finding, cypher.finding, id=finding_id)), None)

    def lead(self, lead_id: str) -> Lead | None:
        """See Store."""
        return next(iter(self._decoded(Lead, cypher.lead, id=lead_id)), None)

    def claim(self, claim_id: str) -> LedgerClaim | None:
        """See Store."""
        return next(iter(self._decoded(LedgerClaim, cypher.claim, id=claim_id)), None)

    def add_reviews(self, reviews: Iterable[Review]) -> None:
        """See Store."""
        items = [_review(review) for review in reviews]
        self._write(lambda transaction: transaction.run_batched(cypher.put_reviews, items))

    def reviews(self, kind: ReviewKind | None = None, of: str | None = None) -> Iterator[Review]:
        """See Store."""
        return iter(self._decoded(Review, cypher.reviews, kind=kind, of=of))

    def _decoded(self, record: type[T], query: str, **parameters: Any) -> list[T]:
        columns = self._read(query, **parameters)
        with self._translated():
            return [decoded(row[0], record) for row in columns]


def put_word_leads(transaction: Transaction, leads: Sequence[tuple[str, Sequence[Lead]]]) -> None:
    """Put conversations' leads from exact words in place of those that are there, within a transaction."""
    names = {name for name, _ in leads}
    if names:
        stored = [decoded(each["body"], Lead) for each in transaction.run(cypher.leads, agent=None)]
        gone = [lead.id for lead in stored if lead.kind == "message" and lead.conversation in names]
        transaction.run_batched(cypher.drop_leads, gone)
        transaction.run_batched(cypher.put_leads, [_lead(lead) for _, own in leads for lead in own])


def forget_reviewed(transaction: Transaction, redaction: Redaction) -> None:
    """Drop the leads, claims and reviews of a redaction, within a transaction."""
    transaction.run_batched(cypher.drop_leads, redaction.leads)
    transaction.run_batched(cypher.drop_claims, redaction.claims)
    transaction.run_batched(cypher.drop_reviews, redaction.reviews)


def _lead(lead: Lead) -> dict[str, Any]:
    return {"lead_id": lead.id, "agent_id": lead.agent, "score": lead.score, "body": encode(undecided_lead(lead))}


def _claim(claim: LedgerClaim) -> dict[str, Any]:
    return {
        "claim_id": claim.claim_id,
        "thread_id": claim.conversation,
        "message_id": claim.message_id,
        "agent_id": claim.agent,
        "position": claim.position,
        "kind": claim.kind,
        "state": claim.state,
        "body": encode(claim),
    }


def _review(review: Review) -> dict[str, Any]:
    return {
        "key": review.key,
        "kind": review.kind,
        "of": review.id,
        "verdict": review.verdict,
        "time": microseconds(review.at),
        "reviewer": review.reviewer,
        "body": encode(review),
    }
