"""Findings conversation by conversation, so that each is read once: a draw of conversations, with its probabilities.

A conversation is the likelier to come next the more grave findings it has. All of its findings follow in a row, those
of one speaker and one pattern beside each other.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from functools import lru_cache
from typing import NamedTuple

from undersong.models import LEVELS, Level
from undersong.stores.reviewing import ReviewDraw

WEIGHTS = {level: place for place, level in enumerate(LEVELS, 1)}  # of a finding, by its level


class OrderedFinding(NamedTuple):
    """What the place of a finding in the order depends on; ``conversation`` is that in which it begins."""

    id: str
    conversation: str
    level: Level
    pattern: str
    agent: str
    target: str | None

    @property
    def group(self) -> tuple[str, str, str]:
        """Who did what to whom: findings that share it are next to each other."""
        return self.agent, self.pattern, self.target or ""


def conversation_places(
    findings: Iterable[OrderedFinding], gone: Set[str], seed: int = 0
) -> Iterator[tuple[OrderedFinding, ReviewDraw]]:
    """The findings of a pool that are not ``gone``, in order, each with the draw of its conversation.

    The probability of a draw is the weight of the conversation over the weights of all that have findings left;
    ``pool`` is how many these are. The weight of a conversation does not change as its findings are decided.
    """
    by_conversation: defaultdict[str, list[OrderedFinding]] = defaultdict(list)
    for finding in findings:
        by_conversation[finding.conversation or finding.id].append(finding)
    weights = {name: _weight(members) for name, members in by_conversation.items()}
    names = [name for name, members in by_conversation.items() if any(each.id not in gone for each in members)]
    names.sort(key=lambda name: (clock_of(name, weights[name], seed), name))
    total = math.fsum(weights[name] for name in names)
    for number, name in enumerate(names):
        share = min(1.0, weights[name] / total) if number < len(names) - 1 else 1.0
        draw = ReviewDraw(drawn="conversation", propensity=share, pool=len(names) - number)
        members = (each for each in by_conversation[name] if each.id not in gone)
        for finding in sorted(members, key=lambda one: (one.group, one.id)):
            yield finding, draw
        total -= weights[name]


def _weight(members: Iterable[OrderedFinding]) -> float:
    """1 for a finding of the lowest level, 4 for one of the highest."""
    return float(sum(WEIGHTS[each.level] for each in members))


@lru_cache(maxsize=1 << 17)
def clock_of(name: str, weight: float, seed: int) -> float:
    """When a conversation comes: an exponential time by its weight, that follows from the seed and its name."""
    digest = hashlib.sha256(f"{seed}\0review\0conversation\0{name}".encode("utf-8", "surrogatepass")).digest()
    share = (int.from_bytes(digest[:8], "big") + 0.5) / (1 << 64)
    return -math.log(share) / weight
