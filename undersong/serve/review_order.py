"""The order in which findings are reviewed, from indexes, so that it is quick in a large store.

``stores.review_queue.queue`` defines the order of a pool, by conversations; this is the same without reading every
finding. After the likely findings of a conversation come its others, so that it is read once.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from undersong.models import Finding
from undersong.stores.conversation_order import ConversationOrder, OrderedFinding
from undersong.stores.review_queue import Pool, candidate_of
from undersong.stores.reviewing import CHOSEN, ReviewDraw
from undersong.stores.sql.browsing import BrowsingStore

REMEMBERED = 60.0  # seconds after which it is looked again whether a decision is stale


class Standing(NamedTuple):
    """Of a finding: whether it is decided as it is now, and whether a draw has come upon it so."""

    answered: bool
    drawn: bool


class FindingPlace(NamedTuple):
    """A finding in the order in which it is to be reviewed, with how it is drawn there."""

    id: str
    answered: bool
    draw: ReviewDraw
    conversation: str


class StoredPool(NamedTuple):
    """The findings of a pool, and how those stand that were reviewed."""

    findings: Sequence[OrderedFinding]
    order: ConversationOrder  # of these
    answered: frozenset[str]  # decided as they are now
    gone: frozenset[str]  # and a draw has come upon them so

    @property
    def left(self) -> int:
        """How many are not decided."""
        return len(self.findings) - len(self.answered)


class Undecided(NamedTuple):
    """What nobody has decided on, as a store has it at one time."""

    likely: StoredPool
    unlikely: StoredPool

    @property
    def left(self) -> int:
        """How many."""
        return self.likely.left + self.unlikely.left

    def of(self, conversation: str) -> list[FindingPlace]:
        """Those that begin in a conversation: the likely ones, then the others. They come for it, and not by a draw."""
        return [
            FindingPlace(finding.id, False, CHOSEN, conversation)
            for pool in self
            for finding in pool.order.in_conversation(conversation)
            if finding.id not in pool.answered
        ]

    def in_order(self) -> Iterator[FindingPlace]:
        """All of them, a conversation after the other: the likely findings of each, then its others.

        Those others come for their conversation, and not by a draw. What is left of conversations that somebody has
        begun to decide on comes first; what is in no conversation with a likely finding comes last, as it is drawn.
        """
        answered = self.likely.answered
        begun = {each.conversation for each in self.likely.findings if each.id in answered} if answered else set[str]()
        left = {each.conversation for each in self.likely.findings if each.id not in answered} if begun else set[str]()
        read = begun - left
        for name in sorted(read):
            yield from self._others(name)
        for conversation, places in groupby(_places(self.likely), key=lambda place: place.conversation):
            yield from (place for place in places if not place.answered)
            if conversation not in read:
                yield from self._others(conversation)
        yield from (place for place in _places(self.unlikely) if not place.answered)

    def _others(self, conversation: str) -> Iterator[FindingPlace]:
        for finding in self.unlikely.order.in_conversation(conversation):
            if finding.id not in self.unlikely.answered:
                yield FindingPlace(finding.id, False, CHOSEN, finding.conversation)


def _places(pool: StoredPool) -> Iterator[FindingPlace]:
    for finding, draw in pool.order.places(pool.gone):
        yield FindingPlace(finding.id, finding.id in pool.answered, draw, finding.conversation)


class ReviewQueue:
    """The order of the findings of one store."""

    def __init__(self) -> None:
        self._standings: dict[tuple[str, int, int], tuple[float, Standing]] = {}
        self._findings: dict[int, OrderedFinding] = {}
        self._pools: dict[Pool, tuple[dict[str, int], tuple[OrderedFinding, ...], ConversationOrder]] = {}

    def places(self, store: BrowsingStore, pool: Pool) -> Iterator[FindingPlace]:
        """What a draw has not come upon yet, in its order."""
        return _places(self._stored(store, pool))

    def undecided(self, store: BrowsingStore) -> Undecided:
        """What nobody has decided on as it is now."""
        return Undecided(self._stored(store, "likely"), self._stored(store, "unlikely"))

    def _stored(self, store: BrowsingStore, pool: Pool) -> StoredPool:
        """The findings of a pool, and how the reviewed ones stand."""
        numbers = store.finding_versions(likely=pool == "likely")
        counts = store.review_counts()
        standings = {name: self._standing(store, name, numbers[name], counts[name]) for name in counts.keys() & numbers}
        if pool not in self._pools or self._pools[pool][0] != numbers:
            made = tuple(self._facts(store, numbers.values()))
            self._pools[pool] = numbers, made, ConversationOrder(made)
        _, findings, order = self._pools[pool]
        answered = frozenset(name for name, one in standings.items() if one.answered)
        return StoredPool(findings, order, answered, frozenset(name for name in answered if standings[name].drawn))

    def _facts(self, store: BrowsingStore, numbers: Collection[int]) -> list[OrderedFinding]:
        """What the order depends on; it is read once of each finding."""
        missing = [number for number in numbers if number not in self._findings]
        if missing:
            self._findings |= store.ordered_findings(missing)
        return [self._findings[number] for number in numbers if number in self._findings]

    def _standing(self, store: BrowsingStore, name: str, number: int, reviews: int) -> Standing:
        now, key = time.monotonic(), (name, number, reviews)
        if key not in self._standings or now - self._standings[key][0] > REMEMBERED:
            finding = store.finding(name)
            candidate = candidate_of(store, finding, {name}) if finding is not None else None
            standing = Standing(bool(candidate and candidate.answered), bool(candidate and candidate.drawn))
            self._standings[key] = now, standing
        return self._standings[key][1]


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
