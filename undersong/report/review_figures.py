"""What reviews say of findings: how many of them were right, with intervals, and whether confidence keeps its word.

Only what a draw came upon is counted, since what a person picks out says nothing of the rest; where all of a group is
reviewed, all of it is. Draws may prefer what is uncertain: each review has the weight that makes up for the
probability of its draw (the estimator for sampling without replacement of Farquhar, Gal and Rainforth, "On Statistical
Bias in Active Learning", 2021). Intervals are Wilson's, 95 %, over the effective number of reviews (Kish's: the square
of the sum of the weights over the sum of their squares). What was drawn with a whole conversation has the weight of
that, and its decisions are worth one: they may all be right or wrong together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from datetime import datetime

from undersong.models import LEVELS, REVIEW_KINDS, Record, Review, in_force
from undersong.models.finding import SURE

POOLS = ("likely", "unlikely", "lead", "claim")
LEAST = 10  # decisions below which nothing is said of those that nobody has decided on
DECIDED = 5  # decisions below which nothing is said of these themselves
_Z = 1.959963984540054  # of 95 %
BINS = (0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)  # of the reliability curve, each without its end but the last


class ReviewFigure(Record, frozen=True, kw_only=True):
    """How many of a group were right. ``value``, ``low`` and ``high`` are None under ten decisions that count.

    ``counted`` of the ``confirmed`` and ``rejected`` came by a draw; ``effective`` is what they are worth with their
    weights. ``whole``: all of the group is reviewed, and all decisions count. ``stated`` is the mean confidence of
    those that count, None where they have none. ``decided`` is the share of confirmed ones among all that were
    confirmed or rejected, picked ones too, with its 95 % interval; it says nothing of others. None under five.
    """

    group: str
    confirmed: int
    rejected: int
    unsure: int
    counted: int
    effective: float
    whole: bool
    value: float | None
    low: float | None
    high: float | None
    stated: float | None
    decided: tuple[float, float, float] | None = None

    @property
    def reviewed(self) -> int:
        """How many decisions there are, whether they count or not."""
        return self.confirmed + self.rejected + self.unsure


class ReviewFigures(Record, frozen=True, kw_only=True):
    """Everything that reviews say. ``disputed`` are things of which two reviewers said the opposite of each other.

    ``kinds`` are findings, leads and claims, ``patterns`` all findings by what they are about; ``rules`` and ``levels``
    are of findings with a confidence of .5 or more alone.
    """

    reviewed: int
    chosen: int
    disputed: int
    kinds: tuple[ReviewFigure, ...]
    patterns: tuple[ReviewFigure, ...]
    pools: tuple[ReviewFigure, ...]
    rules: tuple[ReviewFigure, ...]
    levels: tuple[ReviewFigure, ...]
    reliability: tuple[ReviewFigure, ...]


class UnreviewedItem(Record, frozen=True, kw_only=True):
    """Something that nobody has decided on: the pool that it is in, its rule, level and confidence."""

    pool: str
    pattern: str
    level: str | None = None
    confidence: float | None = None


class _Decision(Record, frozen=True, kw_only=True):
    """The latest review of something, its weight (None where no draw came upon it), and with what it was drawn."""

    review: Review
    pool: str
    weight: float | None
    unit: tuple[str, bool, str]


def figures(reviews: Iterable[Review], unreviewed: Iterable[UnreviewedItem] = ()) -> ReviewFigures:
    """The figures over reviews in force, in the order of time; ``unreviewed`` is what else there is to decide on."""
    every, rest = in_force(reviews), list(unreviewed)
    decisions = _decisions(every)
    likely = [each for each in decisions if each.pool == "likely"]
    left = [each for each in rest if each.pool == "likely"]
    findings = [each for each in decisions if each.review.kind == "finding"]
    others = [each for each in rest if each.pool in ("likely", "unlikely")]
    return ReviewFigures(
        reviewed=len(decisions),
        chosen=sum(each.weight is None for each in decisions),
        disputed=_disputed(every),
        kinds=_groups(decisions, rest, lambda one: one.review.kind, _kind_of, REVIEW_KINDS),
        patterns=_groups(findings, others, lambda one: one.review.pattern, lambda one: one.pattern),
        pools=_groups(decisions, rest, lambda one: one.pool, lambda one: one.pool, POOLS),
        rules=_groups(likely, left, lambda one: one.review.pattern, lambda one: one.pattern),
        levels=_groups(likely, left, lambda one: one.review.level or "", lambda one: one.level or "", LEVELS[::-1]),
        reliability=_groups(
            findings, others, lambda one: bin_of(one.review.confidence), lambda one: bin_of(one.confidence),
            [bin_of(low) for low in BINS[:-1]],
        ),
    )  # fmt: skip


def weights_of(draws: Sequence[tuple[float, int]]) -> list[float]:
    """The weight of each of a series of draws: (probability, how many were left) → its weight.

    1 for each where all were as likely as any other. ``draws`` are in the order in which they were made.
    """
    taken = len(draws)
    whole = max((left + number for number, (_, left) in enumerate(draws)), default=0)
    weights = []
    for number, (propensity, left) in enumerate(draws, start=1):
        share = (whole - taken) / (whole - number) if whole > number else 0.0
        weights.append(1 + share * (1 / (left * propensity) - 1))
    return weights


def wilson(share: float, number: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a share among a number of cases, which need not be whole.

    >>> low, high = wilson(0.9, 30)
    >>> round(low, 3), round(high, 3)
    (0.744, 0.965)
    """
    centre = share + _Z * _Z / (2 * number)
    half = _Z * math.sqrt(share * (1 - share) / number + _Z * _Z / (4 * number * number))
    scale = 1 + _Z * _Z / number
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def bin_of(confidence: float | None) -> str:
    """The part of the reliability curve that a confidence is in."""
    if confidence is None:
        return "not known"
    low = max(edge for edge in BINS[:-1] if edge <= confidence)
    return f"{low:.2f} to {BINS[BINS.index(low) + 1]:.2f}"


def _kind_of(item: UnreviewedItem) -> str:
    return item.pool if item.pool in REVIEW_KINDS else "finding"


def _pool(review: Review) -> str:
    if review.kind != "finding":
        return review.kind
    return "likely" if review.confidence is not None and review.confidence >= SURE else "unlikely"


def _decisions(reviews: Sequence[Review]) -> list[_Decision]:
    latest: dict[tuple[str, str], Review] = {}
    first: dict[tuple[str, str], Review] = {}  # by which a draw came upon it
    chosen: set[tuple[str, str, datetime]] = set()  # with the time of the decision
    for review in reviews:
        latest[review.kind, review.id] = review
        if review.drawn == "chosen":
            chosen.add((review.kind, review.id, review.at))
        elif review.propensity and review.pool:
            first.setdefault((review.kind, review.id), review)
    weights = _weights(first.values(), chosen)
    return [
        _Decision(
            review=review,
            pool=_pool(first.get(name, review)),
            weight=weights[_unit(first[name])] if name in first else None,
            unit=_unit(first.get(name, review)),
        )
        for name, review in latest.items()
    ]


def _unit(review: Review) -> tuple[str, bool, str]:
    """What a draw took: the pool, whether a whole conversation, and the name of that, or the id of the one thing."""
    whole = review.drawn == "conversation"
    return _pool(review), whole, (review.rows[0][0] if review.rows else review.id) if whole else review.id


def _weights(drawn: Iterable[Review], chosen: Set[tuple[str, str, datetime]]) -> dict[tuple[str, bool, str], float]:
    """The weight of each thing that was drawn: all that came with a conversation have that of their conversation."""
    series: dict[tuple[str, bool], dict[tuple[str, bool, str], tuple[float, int]]] = {}
    for review in _in_order_of_draws(drawn, chosen):
        unit = _unit(review)
        series.setdefault(unit[:2], {}).setdefault(unit, (review.propensity or 1.0, review.pool or 1))
    return {
        unit: weight
        for draws in series.values()
        for unit, weight in zip(draws, weights_of([*draws.values()]), strict=True)
    }


def _in_order_of_draws(drawn: Iterable[Review], chosen: Set[tuple[str, str, datetime]]) -> list[Review]:
    """Reviews as their draws were made; what was ``chosen`` before was drawn when as many were left as its pool."""
    ordered, late = list[Review](), list[Review]()
    for review in drawn:
        (late if (review.kind, review.id, review.at) in chosen else ordered).append(review)
    for review in sorted(late, key=lambda one: -(one.pool or 1)):
        series, left = _unit(review)[:2], review.pool or 1
        after = (
            place for place, other in enumerate(ordered)
            if other.at > review.at and _unit(other)[:2] == series and (other.pool or 1) < left
        )  # fmt: skip
        ordered.insert(next(after, len(ordered)), review)
    return ordered


def _disputed(reviews: Iterable[Review]) -> int:
    """Of how many things somebody's latest word is yes and somebody else's no."""
    words: dict[tuple[str, str, str], dict[str, str]] = {}
    for review in reviews:
        words.setdefault((review.kind, review.id, review.evidence), {})[review.reviewer] = review.verdict
    return sum({"confirmed", "rejected"} <= set(by.values()) for by in words.values())


def _groups(
    decisions: Sequence[_Decision],
    rest: Sequence[UnreviewedItem],
    group: Callable[[_Decision], str],
    group_of_rest: Callable[[UnreviewedItem], str],
    order: Iterable[str] = (),
) -> tuple[ReviewFigure, ...]:
    """A figure of each group with a review, in this order, else by name."""
    by_group: dict[str, list[_Decision]] = {}
    for decision in decisions:
        by_group.setdefault(group(decision), []).append(decision)
    left = {group_of_rest(each) for each in rest}
    places = {name: place for place, name in enumerate(order)}
    names = sorted(by_group, key=lambda name: (places.get(name, len(places)), name))
    return tuple(_figure(name, by_group[name], whole=name not in left) for name in names)


def _figure(group: str, decisions: Sequence[_Decision], *, whole: bool) -> ReviewFigure:
    verdicts = [each.review.verdict for each in decisions]
    decided = [each for each in decisions if each.review.verdict != "unsure"]
    counting = [each for each in decided if whole or each.weight]
    counted = [(1.0 if whole else each.weight or 0.0, each.review) for each in counting]
    total = math.fsum(weight for weight, _ in counted)
    sums: defaultdict[tuple[str, bool, str], float] = defaultdict(float)
    for (weight, _), decision in zip(counted, counting, strict=True):
        sums[decision.unit] += weight
    effective = total * total / math.fsum(weight * weight for weight in sums.values()) if counted else 0.0
    value = low = high = None
    if len(counted) >= LEAST or (counted and whole and group == "lead"):  # of leads all that there are, and no sample
        value = math.fsum(weight for weight, review in counted if review.verdict == "confirmed") / total
        low, high = (value, value) if whole else wilson(value, effective)
    stated = [(weight, review.confidence) for weight, review in counted if review.confidence is not None]
    sum_stated = math.fsum(weight for weight, _ in stated)
    return ReviewFigure(
        group=group,
        confirmed=verdicts.count("confirmed"),
        rejected=verdicts.count("rejected"),
        unsure=verdicts.count("unsure"),
        counted=len(counted),
        effective=round(effective, 2),
        whole=whole,
        value=_rounded(value),
        low=_rounded(low),
        high=_rounded(high),
        stated=_rounded(math.fsum(weight * share for weight, share in stated) / sum_stated) if sum_stated else None,
        decided=_decided(verdicts.count("confirmed"), len(decided)),
    )


def _decided(confirmed: int, decided: int) -> tuple[float, float, float] | None:
    if decided < DECIDED:
        return None
    low, high = wilson(confirmed / decided, decided)
    return round(confirmed / decided, 4), round(low, 4), round(high, 4)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
