"""Many tests at once: the Benjamini-Hochberg value of each, and how many tests there were."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from undersong.patterns.partitions import Group, Timeline, groups
from undersong.patterns.possible import shortest
from undersong.patterns.rules import PatternRule
from undersong.patterns.search import filtered


def false_discovery(values: Sequence[float], family: int) -> list[float]:
    """The q of each p-value among ``family`` tests; those that are not given count as 1.

    q is the smallest share of false discoveries to expect if this test and all with a smaller p-value are believed:
    the least p * family / rank over this rank and those above it (Benjamini and Hochberg 1995). Raises ValueError where
    more values than tests are given.
    """
    if len(values) > family:
        raise ValueError(f"{len(values)} p-values for {family} tests")
    order = sorted(range(len(values)), key=lambda index: values[index], reverse=True)
    found = [1.0] * len(values)
    least = 1.0
    for rank, index in zip(range(len(values), 0, -1), order, strict=True):
        least = min(least, values[index] * family / rank)
        found[index] = least
    return found


def pairs(rule: PatternRule, timelines: Iterable[Timeline]) -> int:
    """In how many sequences the rule could match at all: as many read rows as its shortest match takes, and at least
    one of them directed where the sequence has a target.
    """
    least = shortest(rule.program)
    by = rule.file.partition_by
    return sum(_long_enough(group, least) for timeline in timelines for group in groups(filtered(rule, timeline), by))


def _long_enough(group: Group, least: int) -> int:
    public = sum(entry.read for entry in group.public)
    directed = [sum(entry.read for entry in entries) for entries in group.directed.values()]
    return (public >= least) + sum(own > 0 and public + own >= least for own in directed)
