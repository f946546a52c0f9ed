"""What to review next: a draw of which every probability is known, so that figures over reviews stay honest.

Everything has a clock, an exponential time by its weight, that follows from the seed and its id; what strikes first is
next. So one is drawn after another without replacement, each with a probability that is its weight over the weights of
all that are left. The order is the same for the same seed, and what is new finds its place in it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast

import msgspec

from undersong.models import (
    DrawnBy,
    Finding,
    LedgerClaim,
    Review,
    ReviewKind,
    ReviewStanding,
    ReviewVerdict,
    drawn_later,
    in_force,
)
from undersong.models.verdict import AGAINST
from undersong.patterns.leads import shown_leads
from undersong.stores.conversation_order import OrderedFinding, conversation_places
from undersong.stores.protocol import Store
from undersong.stores.reviewing import (
    CHOSEN,
    Reviewable,
    ReviewDraw,
    evidence_rows,
    kind_and_id,
    ordered_leads,
    review_of,
    reviews_of,
    standing,
)

Pool = Literal["likely", "unlikely", "lead", "claim"]  # findings from a confidence of .5 on, other findings, and so on
Order = Literal["random", "least_certain", "conversation"]
FLOOR = 0.1  # the weight of what is certain, where what is least certain has 1


class Candidate(NamedTuple):
    """Something to review: how it stands, and whether a draw has come upon it as it is now."""

    item: Reviewable
    standing: ReviewStanding | None
    drawn: bool

    @property
    def answered(self) -> bool:
        """Whether it is reviewed as it is now."""
        return self.standing is not None and not self.standing.stale


class QueuePlace(NamedTuple):
    """Something in the order in which it is to be reviewed, with how it was drawn there."""

    candidate: Candidate
    draw: ReviewDraw


def candidates(store: Store, pool: Pool) -> tuple[Candidate, ...]:
    """All of a pool: findings, leads that a person is shown, or claims with something against them."""
    kind: ReviewKind = pool if pool in ("lead", "claim") else "finding"
    reviewed = {review.id for review in store.reviews(kind)}
    return tuple(candidate_of(store, item, reviewed) for item in _items(store, pool))


def queue(store: Store, pool: Pool = "likely", seed: int = 0, order: Order = "random") -> Iterator[QueuePlace]:
    """What a draw has not come upon yet, in its order; what a person chose to review before is in it, too.

    Leads come in the order of every list of them, and count as chosen: a share is said once all are reviewed.
    """
    every = candidates(store, pool)
    if order == "conversation" and pool in ("likely", "unlikely"):
        yield from _by_conversation(every, seed)
        return
    if pool == "lead":  # they have an order, in which a person reads them, and no draw
        yield from (QueuePlace(each, CHOSEN) for each in every if not each.answered)
        return
    order = "random" if order == "conversation" else order  # claims are reviewed one by one
    left = sorted(
        (each for each in every if not (each.drawn and each.answered)),
        key=lambda candidate: clock(kind_and_id(candidate.item), weight(candidate.item, order), seed, order),
    )
    weights = math.fsum(weight(each.item, order) for each in left)
    for number, candidate in enumerate(left):
        own = weight(candidate.item, order)
        propensity = min(1.0, own / weights) if number < len(left) - 1 else 1.0
        yield QueuePlace(candidate, ReviewDraw(drawn=_drawn(order), propensity=propensity, pool=len(left) - number))
        weights -= own


def _by_conversation(every: Sequence[Candidate], seed: int) -> Iterator[QueuePlace]:
    """The same, a conversation after the other."""
    by_id = {kind_and_id(each.item)[1]: each for each in every}
    gone = {name for name, each in by_id.items() if each.drawn and each.answered}
    findings = (ordered_finding(each.item) for each in every if isinstance(each.item, Finding))
    for finding, draw in conversation_places(findings, gone, seed):
        yield QueuePlace(by_id[finding.id], draw)


def ordered_finding(finding: Finding) -> OrderedFinding:
    """A finding as its place in the order of conversations depends on it."""
    home = finding.conversations[0] if finding.conversations else ""
    return OrderedFinding(finding.finding_id, home, finding.level, finding.pattern, finding.agent, finding.target)


def next_places(
    store: Store, pool: Pool = "likely", seed: int = 0, order: Order = "random", count: int = 1
) -> list[QueuePlace]:
    """The first places of the queue that nobody has answered, at most ``count`` of them."""
    unanswered = (place for place in queue(store, pool, seed, order) if not place.candidate.answered)
    return [place for place, _ in zip(unanswered, range(count), strict=False)]


def pool_of(item: Reviewable) -> Pool:
    """The pool that something is in."""
    if isinstance(item, Finding):
        return "unlikely" if item.is_lead else "likely"
    return "claim" if isinstance(item, LedgerClaim) else "lead"


def decide(
    store: Store,
    item: Reviewable,
    verdict: ReviewVerdict,
    at: datetime,
    *,
    seed: int = 0,
    order: Order = "random",
    **facts: Any,
) -> Review:
    """Store what a person decided, and return the review.

    Where it is next in the queue it counts as drawn, and so does what the draw came upon before it and a person had
    chosen to review already: of that the same decision, at its own time, is stored again with its probability.
    ``facts`` are further arguments of ``review_of``.
    """
    name, before = kind_and_id(item), list[Review]()
    for candidate, draw in queue(store, pool_of(item), seed, order):
        if kind_and_id(candidate.item) == name:
            review = review_of(store, item, verdict, at, draw=draw, **facts)
            store.add_reviews([*before, review])
            return review
        if not candidate.answered:
            break
        earlier = cast("ReviewStanding", candidate.standing).review
        before.append(drawn_later(earlier, **msgspec.structs.asdict(draw)))
    review = review_of(store, item, verdict, at, **facts)
    store.add_review(review)
    return review


def weight(item: Reviewable, order: Order) -> float:
    """How much more often something is drawn: by how uncertain it is, 1 where nothing is known of it."""
    if order != "least_certain" or not isinstance(item, Finding) or item.confidence is None:
        return 1.0
    return max(FLOOR, 4 * item.confidence * (1 - item.confidence))


def clock(name: tuple[str, str], weight: float, seed: int, order: Order) -> tuple[float, str]:
    """When something strikes; ties are broken by its id."""
    digest = hashlib.sha256("\0".join((str(seed), "review", order, *name)).encode("utf-8", "surrogatepass")).digest()
    share = (int.from_bytes(digest[:8], "big") + 0.5) / (1 << 64)
    return -math.log(share) / weight, name[1]


def _drawn(order: Order) -> DrawnBy:
    return order


def _items(store: Store, pool: Pool) -> Iterator[Reviewable]:
    if pool == "claim":
        return (claim for claim in store.claims() if claim.state in AGAINST)
    if pool == "lead":
        return iter(shown_leads(ordered_leads(store)))
    return (finding for finding in store.findings() if pool_of(finding) == pool)


def candidate_of(store: Store, item: Reviewable, reviewed: set[str]) -> Candidate:
    """How something stands; ``reviewed`` are the ids of what has reviews."""
    _, name = kind_and_id(item)
    if name not in reviewed and not (isinstance(item, Finding) and item.replaces in reviewed):
        return Candidate(item, None, False)
    now = standing(store, item)
    if now is None:
        return Candidate(item, None, False)
    rows = evidence_rows(store, item)
    decided = in_force(reviews_of(store, item))
    drawn = any(each.drawn != "chosen" and frozenset(each.rows) == frozenset(rows) for each in decided)
    return Candidate(item, now, drawn)
