"""What to review next: a draw among the findings that nobody has decided on."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from undersong.models import Finding
from undersong.models.review import DrawnBy
from undersong.serve.library import Library
from undersong.stores.listing import FindingQuery

PAGE = 1_000  # undecided findings among which one is drawn


class Draw(NamedTuple):
    """A finding to decide on, how it was drawn, and from how many."""

    finding: Finding
    drawn: DrawnBy
    propensity: float
    pool: int


def next_draw(library: Library, skipped: tuple[str, ...] = ()) -> Draw | None:
    """The next finding: each of the undecided ones has the same probability. None where none is left."""
    listed = library.store.list_findings(FindingQuery(reviewed=("none",), sort="id"), None, PAGE)
    left = [each for each in listed.items if each.finding_id not in skipped] or list(listed.items)
    if not left:
        return None
    decided = sum(1 for _ in library.store.reviews("finding"))
    drawn = min(left, key=lambda one: hashlib.sha256(f"{decided} {one.finding_id}".encode()).digest())
    return Draw(drawn, "random", 1 / len(left), listed.total)
