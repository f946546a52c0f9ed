"""The order in which findings are reviewed, from indexes, so that it is quick in a large store.

``stores.review_queue.queue`` defines the order; this is the same without reading every finding.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from undersong.models import Finding
from undersong.stores.review_queue import Pool, candidate_of, clock
from undersong.stores.reviewing import ReviewDraw
from undersong.stores.sqlite.browsing import BrowsingStore

REMEMBERED = 60.0  # seconds after which it is looked again whether a decision is stale


class Standing(NamedTuple):
    """Of a finding: whether it is decided as it is now, and whether a draw has come upon it so."""

    answered: bool
    drawn: bool


UNDECIDED = Standing(answered=False, drawn=False)


class FindingPlace(NamedTuple):
    """A finding in the order in which it is to be reviewed, with how it is drawn there."""

    id: str
    answered: bool
    draw: ReviewDraw


class ReviewQueue:
    """The order of the findings of one store."""

    def __init__(self) -> None:
        self._standings: dict[tuple[str, int, int], tuple[float, Standing]] = {}

    def places(self, store: BrowsingStore, pool: Pool) -> Iterator[FindingPlace]:
        """What a draw has not come upon yet, in its order."""
        standings, left = self._left(store, pool)
        for number, name in enumerate(left):
            size = len(left) - number
            draw = ReviewDraw(drawn="random", propensity=1 / size, pool=size)
            yield FindingPlace(name, standings.get(name, UNDECIDED).answered, draw)

    def undecided(self, store: BrowsingStore, pool: Pool) -> int:
        """How many nobody has decided on as they are now."""
        standings, left = self._left(store, pool)
        return len(left) - sum(standings[name].answered for name in standings.keys() & left)

    def _left(self, store: BrowsingStore, pool: Pool) -> tuple[dict[str, Standing], list[str]]:
        """How the reviewed ones stand, and what is left to the draw, in its order."""
        numbers = store.finding_versions(likely=pool == "likely")
        counts = store.review_counts()
        standings = {name: self._standing(store, name, numbers[name], counts[name]) for name in counts.keys() & numbers}
        gone = {name for name, one in standings.items() if one.answered and one.drawn}
        return standings, sorted((name for name in numbers if name not in gone), key=_clock)

    def _standing(self, store: BrowsingStore, name: str, number: int, reviews: int) -> Standing:
        now, key = time.monotonic(), (name, number, reviews)
        if key not in self._standings or now - self._standings[key][0] > REMEMBERED:
            finding = store.finding(name)
            candidate = candidate_of(store, finding, {name}) if finding is not None else None
            standing = Standing(bool(candidate and candidate.answered), bool(candidate and candidate.drawn))
            self._standings[key] = now, standing
        return self._standings[key][1]


@lru_cache(maxsize=1 << 17)
def _clock(name: str) -> tuple[float, str]:
    return clock(("finding", name), 1.0, 0, "random")


def draws_until(queue: ReviewQueue, store: BrowsingStore, finding: Finding) -> list[FindingPlace]:
    """The places up to that of a finding where it is next; those before it were chosen, and are decided already.

    Empty where another one is next: then it was chosen.
    """
    before: list[FindingPlace] = []
    for place in queue.places(store, "unlikely" if finding.is_lead else "likely"):
        before.append(place)
        if place.id == finding.finding_id:
            return before
        if not place.answered:
            break
    return []
