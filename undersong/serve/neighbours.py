"""What was decided of the findings that are most like one: by the same speaker, in the same conversation."""

from __future__ import annotations

from typing import NamedTuple

from undersong.models import Finding, Review
from undersong.serve.library import Library
from undersong.stores.listing import FindingQuery
from undersong.stores.reviewing import standing

LOOKED_AT = 60  # findings of a conversation
SHOWN = 3


class DecidedNeighbour(NamedTuple):
    """A finding of the same speaker in the same conversation, and the decision on it."""

    finding: Finding
    review: Review
    same: bool  # of the same pattern
    common: int  # messages that both rest on


def decided_neighbours(library: Library, finding: Finding) -> tuple[DecidedNeighbour, ...]:
    """The decided ones, those of the same pattern and target first."""
    home = finding.conversations[0] if finding.conversations else ""
    if not home:
        return ()
    listed = library.store.list_findings(FindingQuery(conversation=home, agent=finding.agent), None, LOOKED_AT).items
    others = [each for each in listed if each.finding_id != finding.finding_id]
    others.sort(key=lambda one: (one.pattern != finding.pattern, one.target != finding.target, one.finding_id))
    standings = ((each, standing(library.store, each)) for each in others)
    own = frozenset(finding.message_ids)
    decided = [
        DecidedNeighbour(each, now.review, each.pattern == finding.pattern, len(own.intersection(each.message_ids)))
        for each, now in standings
        if now
    ]
    return tuple(decided[:SHOWN])
