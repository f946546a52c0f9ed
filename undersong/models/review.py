"""Reviews: what a person decided of a finding, a lead or a claim, and of what evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, TypeAlias, get_args

import msgspec

from undersong.models.message import Level, Record

ReviewKind = Literal["finding", "lead", "claim"]
ReviewVerdict = Literal["confirmed", "rejected", "unsure", "withdrawn"]
DrawnBy = Literal["random", "least_certain", "conversation", "chosen"]
REVIEW_KINDS: tuple[ReviewKind, ...] = get_args(ReviewKind)
REVIEW_VERDICTS: tuple[ReviewVerdict, ...] = ("confirmed", "rejected", "unsure")  # what can be decided
REASONS = (  # offered, in this order; any other words are taken too
    "innocent reading", "joke or fiction", "out of context", "wrong person", "another pattern", "too little",
    "right, but some quotes are wrong", "we knew this already", "a test, or agreed beforehand", "already dealt with",
)  # fmt: skip
ReviewedRow: TypeAlias = tuple[str, str, str]  # conversation, message id, SHA-256 of the text; "" without a text


class Review(Record, frozen=True, kw_only=True):
    """What a person decided; it is never changed, a later one of the same ``kind`` and ``id`` takes its place.

    The verdict ``withdrawn`` takes back what the same ``reviewer`` decided of the same ``kind`` and ``id`` before.

    ``rows`` are the messages that it was about, ``evidence`` is the hash over them. What the finding said then stands
    beside it: ``pattern`` (a rule's id, the kind of a claim or lead), ``rule_hash`` (None of leads and claims),
    ``level``, ``confidence``, ``agent`` and ``target``. ``shown_score``: whether the reviewer saw the confidence.
    ``drawn`` is why it was reviewed: by a ``random`` draw, by one in which ``least_certain`` ones come more often, by
    one of a whole ``conversation``, or ``chosen`` by a person. ``propensity`` (above 0, at most 1) is the probability
    with which the draw took it, or its conversation, of the ``pool`` findings or conversations that were not reviewed
    yet; None where it was chosen. Where a draw comes upon a chosen one later, the same decision is stored again with
    that, with the time at which it was made: ``decisions_of`` has it once.
    """

    kind: ReviewKind
    id: str
    rule_hash: str | None = None
    evidence: str
    verdict: ReviewVerdict
    reasons: tuple[str, ...] = ()
    note: str = ""
    reviewer: str = ""
    at: datetime
    shown_score: bool = False
    drawn: DrawnBy = "chosen"
    propensity: float | None = None
    pool: int | None = None
    pattern: str = ""
    level: Level | None = None
    confidence: float | None = None
    agent: str = ""
    target: str | None = None
    rows: tuple[ReviewedRow, ...] = ()

    @property
    def key(self) -> str:
        """SHA-256 over all of it: the same review twice is one."""
        return _sha256(self)


class ReviewStanding(Record, frozen=True, kw_only=True):
    """The latest review of something as it is now.

    ``stale``: the messages are others than those that were reviewed, though at least half of them are the same. ``by``
    counts the latest verdict of each reviewer of these messages; ``others`` are those of all reviewers but that of
    ``review``, the latest first, so that two of them who disagree can be seen.
    """

    review: Review
    stale: bool
    by: dict[ReviewVerdict, int]
    others: tuple[Review, ...] = ()


def evidence_hash(rows: Iterable[ReviewedRow]) -> str:
    """SHA-256 over the messages that something rests on: their places and the hashes of their texts."""
    return _sha256(sorted(rows))


def in_force(reviews: Iterable[Review]) -> list[Review]:
    """Reviews, in order of time, without those that their reviewer has withdrawn since, and without withdrawals."""
    every = list(reviews)
    withdrawn = {_whose(review): place for place, review in enumerate(every) if review.verdict == "withdrawn"}
    return [review for place, review in enumerate(every) if place > withdrawn.get(_whose(review), -1)]


def drawn_later(review: Review, drawn: DrawnBy, propensity: float | None, pool: int | None) -> Review:
    """The decision of a review, with the probability of a draw that came upon it later; its time stays."""
    return msgspec.structs.replace(review, drawn=drawn, propensity=propensity, pool=pool)


def decisions_of(reviews: Iterable[Review]) -> list[Review]:
    """What people decided, in order of time, each decision once though a draw came upon it later."""
    return list({drawn_later(review, "chosen", None, None): review for review in reviews}.values())


def withdrawals(reviews: Sequence[Review], reviewer: str, at: datetime, note: str = "") -> tuple[Review, ...]:
    """What takes back all that a reviewer decided in ``reviews``, in order of time; () where nothing is in force.

    Each is over the messages of the decision that it takes back, so that whatever forgets one forgets both.
    """
    own = (review for review in in_force(reviews) if review.reviewer == reviewer)
    latest = {(review.kind, review.id, review.evidence): review for review in own}
    back = {"verdict": "withdrawn", "at": at, "note": note, "reasons": (), "drawn": "chosen"}
    return tuple(msgspec.structs.replace(review, propensity=None, pool=None, **back) for review in latest.values())


def _whose(review: Review) -> tuple[str, str, str]:
    return review.kind, review.id, review.reviewer


def standing_review(reviews: Iterable[Review], rows: Iterable[ReviewedRow]) -> ReviewStanding | None:
    """How the ``reviews`` of something, in order of time, apply to it now that it rests on ``rows``.

    None where none is in force, or fewer than half of the messages are those of the latest one: it is another then.
    """
    every, now = in_force(reviews), frozenset(rows)
    if not every or 2 * len(now.intersection(every[-1].rows)) < len(now):
        return None
    last, *others = _latest(review for review in every if review.evidence == every[-1].evidence)
    verdicts = [review.verdict for review in (last, *others)]
    by = {verdict: verdicts.count(verdict) for verdict in REVIEW_VERDICTS}
    return ReviewStanding(review=last, stale=last.evidence != evidence_hash(now), by=by, others=tuple(others))


def _latest(reviews: Iterable[Review]) -> list[Review]:
    """The last of each reviewer, of ``reviews`` in order of time; the latest first."""
    of: dict[str, Review] = {}
    for review in reviews:
        of.pop(review.reviewer, None)
        of[review.reviewer] = review
    return list(of.values())[::-1]


def _sha256(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()
