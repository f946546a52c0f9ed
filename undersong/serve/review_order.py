"""The order in which findings are reviewed, from indexes, so that it is quick in a large store.

``stores.review_queue.queue`` defines the order of a pool, by conversations; this is the same without reading every
finding. After the likely findings of a conversation come its others, so that it is read once.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import zip_longest
from typing import NamedTuple

from undersong.models import Finding
from undersong.stores.conversation_order import OrderedFinding, conversation_places
from undersong.stores.review_queue import Pool, candidate_of
from undersong.stores.reviewing import CHOSEN, ReviewDraw
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
    conversation: str


class ReviewQueue:
    """The order of the findings of one store."""

    def __init__(self) -> None:
        self._standings: dict[tuple[str, int, int], tuple[float, Standing]] = {}
        self._findings: dict[int, OrderedFinding] = {}

    def places(self, store: BrowsingStore, pool: Pool) -> Iterator[FindingPlace]:
        """What a draw has not come upon yet, in its order."""
        numbers, standings = self._stored(store, pool)
        gone = {name for name, one in standings.items() if one.answered and one.drawn}
        for finding, draw in conversation_places(self._facts(store, numbers.values()), gone):
            yield FindingPlace(finding.id, standings.get(finding.id, UNDECIDED).answered, draw, finding.conversation)

    def undecided(self, store: BrowsingStore, pool: Pool) -> int:
        """How many nobody has decided on as they are now."""
        numbers, standings = self._stored(store, pool)
        return len(numbers) - sum(one.answered for one in standings.values())

    def in_order(self, store: BrowsingStore) -> Iterator[FindingPlace]:
        """Every place, a conversation after the other: the likely findings of each, then its others.

        Those others come for their conversation, and not by a draw. What is left of conversations that somebody has
        begun to decide on comes first; what is in no conversation with a likely finding comes last, as it is drawn.
        """
        others = self._others(store)
        numbers, standings = self._stored(store, "likely")
        facts = self._facts(store, numbers.values())
        begun = {each.conversation for each in facts if standings.get(each.id, UNDECIDED).answered}
        places = list(self.places(store, "likely"))
        left = {place.conversation for place in places if not place.answered}
        for name in sorted(begun - left):
            yield from others.pop(name, ())
        for place, after in zip_longest(places, places[1:]):
            yield place
            if after is None or after.conversation != place.conversation:
                yield from others.pop(place.conversation, ())
        yield from self.places(store, "unlikely")

    def _others(self, store: BrowsingStore) -> dict[str, list[FindingPlace]]:
        """Conversation → its findings that are not likely."""
        numbers, standings = self._stored(store, "unlikely")
        by_conversation: defaultdict[str, list[FindingPlace]] = defaultdict(list)
        for finding in sorted(self._facts(store, numbers.values()), key=lambda one: (one.group, one.id)):
            answered = standings.get(finding.id, UNDECIDED).answered
            place = FindingPlace(finding.id, answered, CHOSEN, finding.conversation)
            by_conversation[finding.conversation].append(place)
        return by_conversation

    def _stored(self, store: BrowsingStore, pool: Pool) -> tuple[dict[str, int], dict[str, Standing]]:
        """The numbers of the findings of a pool, and how the reviewed ones stand."""
        numbers = store.finding_versions(likely=pool == "likely")
        counts = store.review_counts()
        return numbers, {
            name: self._standing(store, name, numbers[name], counts[name]) for name in counts.keys() & numbers
        }

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
