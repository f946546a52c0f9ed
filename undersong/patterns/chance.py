"""How often the same rows in another order give a match at least as strong: a permutation test of one sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from undersong.patterns.partitions import Partition, limits
from undersong.patterns.possible import Ways, possible, ways
from undersong.patterns.rules import PatternRule
from undersong.patterns.search import Match, search_partition
from undersong.patterns.shuffles import Deck, Orders, key_of, orders

ENOUGH = 10  # draws as strong as what was found; then it is known well enough that chance is not small
MOST = 100_000  # draws that may be asked for
ALL_DRAWS = 500  # rows of a sequence up to which it has every draw; a longer one has fewer in proportion
FEWEST = 19  # draws of the longest sequences: the least with which chance can be .05
_FIRST = 64  # draws that are dealt together at first: most sequences stop soon
_BATCH = 1024  # draws that are dealt together, fewer for long sequences
_CELLS = 1_000_000  # rows dealt together


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
    found = search_partition(rule, partition)
    if found.gave_up or not found.matches:
        return None
    observed = max(map(strength_of, found.matches))
    deck = Deck(rule, partition)
    most = draws_for(len(deck.rows), draws)
    return sequential(_exceeds(deck, rule, observed, key_of(seed, "chance", rule, partition), most, block))


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


def _exceeds(deck: Deck, rule: PatternRule, observed: float, key: bytes, most: int, block: int) -> Iterator[bool]:
    """Draw after draw, whether its strongest match is at least as strong as what was observed."""
    known = ways(rule.program)
    first, size, largest = 0, _FIRST, max(1, min(_BATCH, _CELLS // len(deck.rows)))
    while first < most:
        count = min(size, largest, most - first)
        dealt = orders(key, first, count, len(deck.rows), block)
        open_draws = _open(deck, rule, known, dealt)
        for order, is_open in zip(dealt.tolist(), open_draws, strict=True):
            yield is_open and _reaches(deck, rule, order, observed)
        first += count
        size *= 4


def _open(deck: Deck, rule: PatternRule, known: Ways, dealt: Orders) -> list[bool]:
    """The draws in which a match is possible."""
    masks = deck.masks(dealt)
    if masks is None:
        return [True] * len(dealt)
    ends = limits(deck.partition, rule.within, rule.file.max_unread, [False] * len(deck.rows))
    answers: list[bool] = possible(known, masks, ends).tolist()
    return answers


def _reaches(deck: Deck, rule: PatternRule, order: list[int], observed: float) -> bool:
    partition, masks = deck.deal(order)
    found = search_partition(rule, partition, masks=masks)
    return found.gave_up or any(strength_of(match) >= observed for match in found.matches)
