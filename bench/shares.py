"""The share of tests under a limit where tests come in groups that hang together, with an interval that knows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from scipy.stats import beta


class Group(NamedTuple):
    """Tests that hang together: how many, and how many of them are at or under each limit."""

    tests: int
    under: Mapping[float, int]


class Share(NamedTuple):
    """A share, its interval, and the design effect: how many times fewer independent tests would say as much."""

    hits: int
    tests: int
    low: float
    high: float
    design_effect: float

    @property
    def value(self) -> float:
        """The share itself, 0 where there were no tests."""
        return self.hits / max(1, self.tests)


def together(groups: Iterable[Group], limits: Iterable[float]) -> Group:
    """Several groups as one."""
    parts = list(groups)
    return Group(sum(part.tests for part in parts), {a: sum(part.under.get(a, 0) for part in parts) for a in limits})


def share(groups: Sequence[Group], limit: float, level: float = 0.95) -> Share:
    """The share at or under a limit, with the interval of Korn and Graubard (1998).

    The exact interval of a coin (Clopper and Pearson) for as many independent tests as the groups are worth: their
    number over the design effect, which is the variance of the share between whole groups over that between single
    tests, and at least 1.
    """
    tests, hits = sum(group.tests for group in groups), sum(group.under.get(limit, 0) for group in groups)
    if not tests:
        return Share(0, 0, 0.0, 1.0, 1.0)
    effect = design_effect(groups, limit, hits / tests)
    worth, effective_hits = tests / effect, hits / effect
    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(beta.ppf(tail, effective_hits, worth - effective_hits + 1))
    high = 1.0 if hits == tests else float(beta.ppf(1 - tail, effective_hits + 1, worth - effective_hits))
    return Share(hits, tests, low, high, effect)


def design_effect(groups: Sequence[Group], limit: float, value: float) -> float:
    """How much more a share varies than that of as many independent tests: whole groups are the units."""
    tests, count = sum(group.tests for group in groups), len(groups)
    alone = value * (1 - value) * tests
    if count < 2 or not alone:
        return 1.0
    between = sum((group.under.get(limit, 0) - value * group.tests) ** 2 for group in groups) * count / (count - 1)
    return max(1.0, between / alone)
