"""What to review next, as the page and the API ask for it."""

from __future__ import annotations

from typing import NamedTuple

from undersong.models import Finding
from undersong.serve.library import Library
from undersong.serve.review_order import FindingPlace
from undersong.stores.review_queue import Pool
from undersong.stores.reviewing import ReviewDraw

POOLS: tuple[Pool, ...] = ("likely", "unlikely")  # those from a confidence of .5 on come first


class Draw(NamedTuple):
    """A finding to decide on, how it is drawn, and how many nobody has decided on."""

    finding: Finding
    drawn: ReviewDraw
    left: int


def next_draw(library: Library, skipped: tuple[str, ...] = ()) -> Draw | None:
    """The next finding that nobody has decided on, or of which the decision is stale; None where none is left.

    Those that were skipped come again when no other is left.
    """
    queue, store = library.queue, library.store
    left = sum(queue.undecided(store, pool) for pool in POOLS)
    put_off: FindingPlace | None = None
    for place in queue.in_order(store) if left else ():
        if not place.answered and place.id not in skipped:
            return _draw(library, place, left)
        put_off = put_off or (None if place.answered else place)
    return None if put_off is None else _draw(library, put_off, left)


def _draw(library: Library, place: FindingPlace, left: int) -> Draw | None:
    finding = library.store.finding(place.id)
    return None if finding is None else Draw(finding, place.draw, left)
