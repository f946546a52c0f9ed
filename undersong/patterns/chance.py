"""How often the same rows in another order give a match at least as strong: a permutation test of one sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from undersong.patterns.engine.sums import F, NotVectorizable
from undersong.patterns.engine.vectors import B
from undersong.patterns.partitions import Partition, limits
from undersong.patterns.possible import match_possible, nfa_of
from undersong.patterns.rules import PatternRule
from undersong.patterns.search import Match, search_partition
from undersong.patterns.shuffles import Permutations, PermutationSearch, SequenceShuffler, draw_permutations, key_of
from undersong.patterns.versions import GAVE_UP, NOTHING

ENOUGH = 10  # draws as strong as what was found; then it is known well enough that chance is not small
MOST = 100_000  # draws that may be asked for
ALL_DRAWS = 500  # rows of a sequence up to which it has every draw; a longer one has fewer in proportion
FEWEST = 19  # draws of the longest sequences: the least with which chance can be .05
_FIRST = 64  # draws that are dealt together at first: most sequences stop soon
_NEXT = 40_000  # rows of the draws that are dealt after these, at least: enough for machine code
_CELLS = 200_000  # rows dealt together, at most


class Chance(NamedTuple):
    """In how many of the drawn orders a match was at least as strong."""

    as_strong: int
    draws: int

    @property
    def value(self) -> float:
        """(1 + as strong) / (1 + draws): the order that was found counts as one of them."""
        return (1 + self.as_strong) / (1 + self.draws)


def strength_of(match: Match) -> float:
    """The strength that a finding carries: 0 to 1, and 0 where it could not be computed."""
    value = match.measures.get("strength")
    return min(1.0, max(0.0, float(value))) if isinstance(value, int | float) else 0.0


def chance(rule: PatternRule, partition: Partition, *, seed: int, draws: int, block: int = 1) -> Chance | None:
    """The permutation test of a rule on a sequence in which it matched; its statistic is the highest strength there.

    None where it did not match, or where the search of the sequence itself gave up. A draw whose search gives up counts
    as at least as strong.
    """
    shuffler = SequenceShuffler(rule, partition)
    table = PermutationStrengths(shuffler, partition)
    as_it_is = np.arange(len(shuffler.rows), dtype=np.intp)[None, :]
    observed = float(table.of(as_it_is)[0])
    if observed in (NOTHING, GAVE_UP):
        return None
    most = draws_for(len(shuffler.rows), draws)
    return sequential(_exceeds(table, observed, key_of(seed, "chance", rule, partition), most, block))


class PermutationStrengths:
    """The strongest match of each of many orders: all at once or, where arrays do not do, one search after another."""

    def __init__(self, shuffler: SequenceShuffler, partition: Partition) -> None:
        self.shuffler = shuffler
        self.at_once: PermutationSearch | None = PermutationSearch(shuffler, partition)

    def of(self, permutations: Permutations) -> F:
        """Per order the highest strength: NOTHING where nothing matches, GAVE_UP where the search did."""
        if self.at_once is not None:
            try:
                return self.at_once.strongest(permutations)
            except (NotVectorizable, FloatingPointError):
                self.at_once = None
        return np.array([self._searched(order) for order in permutations.tolist()], dtype=np.float64)

    def _searched(self, order: list[int]) -> float:
        partition, masks = self.shuffler.reordered(order)
        result = search_partition(self.shuffler.rule, partition, masks=masks)
        return GAVE_UP if result.gave_up else max(map(strength_of, result.matches), default=NOTHING)


def sequential(exceeds: Iterable[bool]) -> Chance:
    """Count draw by draw and stop at the tenth that is as strong.

    Stopping on the count of the strong ones alone keeps the test valid: with h strong ones in the first L draws, h / L
    is the p-value of Besag and Clifford (1991), and (1 + h) / (1 + L) is never smaller.
    """
    strong = drawn = 0
    for drawn, exceeded in enumerate(exceeds, 1):  # noqa: B007 - the last number is the count
        strong += exceeded
        if strong == ENOUGH:
            break
    return Chance(strong, drawn)


def draws_for(rows: int, draws: int) -> int:
    """How many draws a sequence of so many rows gets: known before the first, so that it does not bias the test."""
    fewer = draws * ALL_DRAWS // max(rows, ALL_DRAWS)
    return min(MOST, draws, max(FEWEST, fewer))


def _exceeds(table: PermutationStrengths, observed: float, key: bytes, most: int, block: int) -> Iterator[bool]:
    """Draw after draw, whether its strongest match is at least as strong as what was observed."""
    rows = len(table.shuffler.rows)
    first, count = 0, _FIRST
    while first < most:
        count = min(count, max(1, _CELLS // rows), most - first)
        yield from _as_strong(table, draw_permutations(key, first, count, rows, block), observed)
        first += count
        count = max(4 * count, _NEXT // rows)


def _as_strong(table: PermutationStrengths, permutations: Permutations, observed: float) -> list[bool]:
    """Of each order whether it has a match that is as strong; only those in which one is possible are searched."""
    where = np.flatnonzero(_can_match(table.shuffler, permutations))
    reached = np.zeros(len(permutations), dtype=np.bool_)
    if len(where):
        reached[where] = table.of(permutations[where]) >= observed
    return reached.tolist()


def _can_match(shuffler: SequenceShuffler, permutations: Permutations) -> B:
    """The draws in which a match is possible."""
    masks = shuffler.masks(permutations)
    if masks is None:
        return np.ones(len(permutations), dtype=np.bool_)
    ends = limits(shuffler.partition, shuffler.rule.within, shuffler.rule.file.max_unread, [False] * len(shuffler.rows))
    return match_possible(nfa_of(shuffler.rule.program), masks, ends)
