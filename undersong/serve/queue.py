"""What to review next: the draw that `undersong review` makes, too, over findings alone."""

from __future__ import annotations

from typing import NamedTuple, cast

from undersong.models import Finding
from undersong.models.review import DrawnBy
from undersong.serve.library import Library
from undersong.stores.review_queue import Pool, next_places

POOLS: tuple[Pool, ...] = ("likely", "unlikely")  # those from a confidence of .5 on come first
MOST = 1_000_000  # findings of a pool


class Draw(NamedTuple):
    """A finding to decide on, how it was drawn, and from how many; ``left`` are all that nobody has decided on."""

    finding: Finding
    drawn: DrawnBy
    propensity: float
    pool: int
    left: int


def next_draw(library: Library, skipped: tuple[str, ...] = ()) -> Draw | None:
    """The next finding that nobody has decided on, or of which the decision is stale; None where none is left.

    Those that were skipped come again when no other is left.
    """
    places = [place for pool in POOLS for place in next_places(library.store, pool, count=MOST)]
    fresh = [place for place in places if cast("Finding", place.candidate.item).finding_id not in skipped]
    for place in (fresh or places)[:1]:
        draw, finding = place.draw, cast("Finding", place.candidate.item)
        return Draw(finding, draw.drawn, draw.propensity or 1.0, draw.pool or 1, len(places))
    return None
