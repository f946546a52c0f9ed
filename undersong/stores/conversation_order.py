"""Findings conversation by conversation, so that each is read once: a draw of conversations, with its probabilities.

A conversation is the likelier to come next the more grave findings it has. All of its findings follow in a row, those
of one speaker and one pattern beside each other.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
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


class ConversationOrder:
    """The findings of a pool in the order of their conversations; it is worked out once for any number of draws."""

    def __init__(self, findings: Iterable[OrderedFinding], seed: int = 0) -> None:
        members: defaultdict[str, list[OrderedFinding]] = defaultdict(list)
        for finding in findings:
            members[finding.conversation or finding.id].append(finding)
        self._weights = {name: _weight(own) for name, own in members.items()}
        names = sorted(members, key=lambda name: (clock_of(name, self._weights[name], seed), name))
        self._members = {name: sorted(members[name], key=lambda one: (one.group, one.id)) for name in names}

    def in_conversation(self, name: str) -> Sequence[OrderedFinding]:
        """The findings of a conversation in a row."""
        return self._members.get(name, ())

    def places(self, gone: Set[str]) -> Iterator[tuple[OrderedFinding, ReviewDraw]]:
        """The findings that are not ``gone``, in order, each with the draw of its conversation.

        The probability of a draw is the weight of the conversation over the weights of all that have findings left;
        ``pool`` is how many these are. The weight of a conversation does not change as its findings are decided.
        """
        names = [name for name, own in self._members.items() if any(each.id not in gone for each in own)]
        total = math.fsum(self._weights[name] for name in names)
        for number, name in enumerate(names):
            share = min(1.0, self._weights[name] / total) if number < len(names) - 1 else 1.0
            draw = ReviewDraw(drawn="conversation", propensity=share, pool=len(names) - number)
            yield from ((each, draw) for each in self._members[name] if each.id not in gone)
            total -= self._weights[name]


def conversation_places(
    findings: Iterable[OrderedFinding], gone: Set[str], seed: int = 0
) -> Iterator[tuple[OrderedFinding, ReviewDraw]]:
    """See ``ConversationOrder.places``."""
    return ConversationOrder(findings, seed).places(gone)


def _weight(members: Iterable[OrderedFinding]) -> float:
    """1 for a finding of the lowest level, 4 for one of the highest."""
    return float(sum(WEIGHTS[each.level] for each in members))


@lru_cache(maxsize=1 << 17)
def clock_of(name: str, weight: float, seed: int) -> float:
    """When a conversation comes: an exponential time by its weight, that follows from the seed and its name."""
    digest = hashlib.sha256(f"{seed}\0review\0conversation\0{name}".encode("utf-8", "surrogatepass")).digest()
    share = (int.from_bytes(digest[:8], "big") + 0.5) / (1 << 64)
    return -math.log(share) / weight
