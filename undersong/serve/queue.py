"""What to review next, as the page and the API ask for it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from undersong.models import Finding, Lead, LedgerClaim
from undersong.serve.library import Library
from undersong.serve.review_order import FindingPlace
from undersong.stores.review_queue import Candidate, candidates, next_places
from undersong.stores.reviewing import ReviewDraw, kind_and_id

Others = Literal["lead", "claim"]  # what can be decided on beside findings


class Draw(NamedTuple):
    """A finding to decide on, how it is drawn, and how many nobody has decided on."""

    finding: Finding
    drawn: ReviewDraw
    left: int


def next_draw(library: Library, skipped: tuple[str, ...] = (), conversation: str = "") -> Draw | None:
    """The next finding that nobody has decided on, or of which the decision is stale; None where none is left.

    With a ``conversation``, of those that begin there. Those that were skipped come again when no other is left, in
    the order in which they were skipped.
    """
    now = library.queue.undecided(library.store)
    here = now.of(conversation) if conversation else ()
    left = len(here) if conversation else now.left
    put_off: list[FindingPlace] = []
    for place in here if conversation else now.in_order():
        if place.id not in skipped:
            return _draw(library, place, left)
        put_off.append(place)
    return _draw(library, min(put_off, key=lambda place: skipped.index(place.id)), left) if put_off else None


def _draw(library: Library, place: FindingPlace, left: int) -> Draw | None:
    finding = library.store.finding(place.id)
    return None if finding is None else Draw(finding, place.draw, left)


class ItemDraw(NamedTuple):
    """A lead or claim to decide on, and how many nobody has decided on."""

    item: Lead | LedgerClaim
    left: int


def next_item(library: Library, pool: Others, skipped: tuple[str, ...] = ()) -> ItemDraw | None:
    """The next lead or claim that nobody has decided on; None where none is left; skipped ones come last."""
    places = next_places(library.store, pool, count=len(skipped) + 1)
    items = [place.candidate.item for place in places if not isinstance(place.candidate.item, Finding)]
    if not items:
        return None
    return ItemDraw(next((each for each in items if _id(each) not in skipped), items[0]), undecided(library, pool))


def undecided(library: Library, pool: Others) -> int:
    """How many of the leads that are shown, or of the claims with something against them, nobody has decided on."""
    return sum(not each.answered for each in _candidates(library, pool))


def shown_count(library: Library, pool: Others) -> int:
    """How many there are."""
    return len(_candidates(library, pool))


def _candidates(library: Library, pool: Others) -> tuple[Candidate, ...]:
    return library.cached(f"candidates {pool}", lambda: candidates(library.store, pool))


def _id(item: Lead | LedgerClaim) -> str:
    return kind_and_id(item)[1]
