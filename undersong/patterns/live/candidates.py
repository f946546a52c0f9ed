"""The matches of a rule in one timeline before the strongest of them are kept; rows that come change only the last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from undersong.patterns.language.compile import PatternRule
from undersong.patterns.reference.search import ALWAYS_OPEN, Match, last_overlapping, strongest


class CandidateMatch:
    """A match; ``start`` and ``end`` are the places of its first row and past its last one."""

    __slots__ = ("end", "match", "start")

    def __init__(self, match: Match) -> None:
        self.match = match
        self.start, self.end = match.stages[0][1].place, match.stages[-1][1].place + 1


def every_match(rule: PatternRule) -> PatternRule:
    """The rule that keeps every match: what it finds are the candidates."""
    return msgspec.structs.replace(rule, file=msgspec.structs.replace(rule.file, keep="every"))


def search_from(rule: PatternRule, candidates: Iterable[CandidateMatch], first: int) -> int:
    """The place from which on a search finds what a whole one does there, where before ``first`` no match is another.

    Where a match decides at which row the next one may begin, none goes on beyond it.
    """
    own = [*candidates] if rule.skip.to != "next" else []
    while across := [each.start for each in own if each.start < first < each.end]:
        first = min(across)
    return first


def updated(
    candidates: Iterable[CandidateMatch], matches: Iterable[Match], first: int, toward: Collection[str] | None
) -> list[CandidateMatch]:
    """The candidates with those ``matches`` in place of the earlier ones that begin at ``first`` or later.

    Those of other sequences than the ones ``toward`` some targets stay as they are.
    """

    def is_searched(candidate: CandidateMatch) -> bool:
        return candidate.start >= first and (toward is None or candidate.match.partition.target in toward)

    remaining = [each for each in candidates if not is_searched(each)]
    return remaining + [each for each in map(CandidateMatch, matches) if is_searched(each)]


def selected(rule: PatternRule, candidates: Sequence[CandidateMatch]) -> Iterator[tuple[Match, int]]:
    """The matches that the rule keeps, each with the last event time at which it is open."""
    if rule.file.keep != "strongest":
        yield from ((candidate.match, candidate.match.open_through) for candidate in candidates)
        return
    sequences: dict[tuple[str | None, str | None], list[CandidateMatch]] = {}
    for candidate in sorted(candidates, key=lambda candidate: candidate.start):
        partition = candidate.match.partition
        sequences.setdefault((partition.target, partition.conversation), []).append(candidate)
    for own in sequences.values():
        times = {each.end - 1: each.match.stages[-1][1].time for each in own}
        anchors = last_overlapping(own)
        for number in strongest([(each, each.match) for each in own]):
            time = times[anchors[number]]
            yield own[number].match, ALWAYS_OPEN if rule.within is None or time is None else time + rule.within
