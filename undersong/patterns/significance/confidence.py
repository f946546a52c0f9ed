"""Confidence: of findings like this one in the reference conversations, how many were true, at a stated prevalence."""

from __future__ import annotations

from functools import cache

import msgspec

from undersong.datafiles.yaml_loader import RULES, file_hash, read

FILE = "confidence.yaml"
PLATFORM, OWN = 0.01, 0.2  # one bad agent in a hundred on a platform, one speaker in five in a person's own export


class ReadingCounts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``confidence.yaml``: what a reader of sequences said of the speakers of the reference conversations.

    ``planted`` and ``innocent`` count the speakers; ``right`` and ``wrong`` how often a shape that was named with
    certainty 1, 2, 3 and 4 was so.
    """

    planted: int
    innocent: int
    right: tuple[int, int, int, int]
    wrong: tuple[int, int, int, int]

    def times(self, certainty: int) -> int:
        """How often a shape was named with this certainty, 1 to 4."""
        return self.right[certainty - 1] + self.wrong[certainty - 1]

    def ratio(self, certainty: int) -> float:
        """How much likelier this certainty is of a planted speaker than of an innocent one."""
        planted = (self.right[certainty - 1] + 0.5) / (self.planted + 1)
        return planted / ((self.wrong[certainty - 1] + 0.5) / (self.innocent + 1))


@cache
def reading_counts() -> ReadingCounts:
    """The shipped counts; raises RuleError with file and line."""
    return read(RULES / FILE, ReadingCounts)


def confidence_hashes() -> dict[str, str]:
    """File name → SHA-256 of the counts, for the manifest."""
    return {FILE: file_hash(RULES / FILE)}


def confidence(certainty: int, prevalence: float, counts: ReadingCounts | None = None) -> float | None:
    """The share of true ones among findings that a reader named with this certainty, 0 to 1.

    ``prevalence`` is the share of speakers that show a shape, above 0 and below 1. A certainty says as much more of a
    planted speaker than of an innocent one as both were named with it in the reference conversations (half a case is
    added to each count, Jeffreys' prior; no certainty says less than a lower one). None for a certainty that was never
    given there.
    """
    counts = counts or reading_counts()
    if not counts.times(certainty):
        return None
    ratio = max(counts.ratio(level) for level in range(1, certainty + 1) if counts.times(level))
    odds = ratio * prevalence / (1 - prevalence)
    return odds / (1 + odds)
