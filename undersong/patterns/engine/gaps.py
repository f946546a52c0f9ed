"""How far matches come from directed rows: they pass over so many rows in a row, and no more."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from undersong.jit import kernel, machine
from undersong.patterns.engine.sums import I
from undersong.patterns.engine.table import ranges
from undersong.patterns.engine.vectors import Codes, Masks
from undersong.patterns.sequences import ANY, Bind, Or, Part, Passed, Repeat, Then


class PatternGap(NamedTuple):
    """The most rows that a part of a pattern passes over: as a whole (-inf: it binds one), first, last, in a row."""

    whole: float
    first: float
    last: float
    most: float

    def then(self, other: PatternGap) -> PatternGap:
        """This part and another one after it."""
        return PatternGap(
            self.whole + other.whole,
            max(self.first, self.whole + other.first),
            max(other.last, self.last + other.whole),
            max(self.most, other.most, self.last + other.first),
        )


_NONE, _ANY, _BOUND = PatternGap(0, 0, 0, 0), PatternGap(1, 1, 1, 1), PatternGap(-inf, 0, 0, 0)


def gap(part: Part) -> int | None:
    """The most rows in a row that a match of a pattern passes over (``ANY``, ``{- -}``); None without bound."""
    most = _gap(part, passing=False).most
    return None if most == inf else int(most)


def _gap(part: Part, *, passing: bool) -> PatternGap:
    total = _NONE
    if isinstance(part, Bind):
        return _ANY if passing or part.variable == ANY else _BOUND
    if isinstance(part, Passed):
        return _gap(part.part, passing=True)
    if isinstance(part, Or):
        return PatternGap(*map(max, zip(*(_gap(each, passing=passing) for each in part.parts), strict=True)))
    if isinstance(part, Then):
        for child in part.parts:
            total = total.then(_gap(child, passing=passing))
    elif isinstance(part, Repeat):
        inner = _gap(part.part, passing=passing)
        if part.most is None and inner.whole > 0:
            return PatternGap(inf, inf, inf, inf)
        for _ in range(part.least + 2 if part.most is None else part.most):
            total = total.then(inner)
        total = total if part.least else total._replace(whole=max(total.whole, 0))
    return total


def reached(masks: Masks, seen: I, bound: int, most: int) -> tuple[I | Codes, I | Codes]:
    """Between the public rows that are ``seen``: from which one on, and to before which, a match there may go.

    Of these rows it takes no more than ``most`` in a row that fit no ``bound`` bit. ``masks`` are those of all public
    rows; there is one place more than rows that are seen.
    """
    size = len(seen)
    if not machine(size):
        fits = np.flatnonzero(masks[seen] & masks.dtype.type(bound))
        before, after = np.append(-1, fits), np.append(fits, size)
        dead = ranges(before + 1, np.maximum(after - most, before + 1))  # as many rows from there on are too many
        between = np.arange(size + 1)
        first = np.append(-1, dead)[np.searchsorted(dead, between - most)] + 1
        return first, np.append(dead + most, size)[np.searchsorted(dead, between)]
    first, last = (np.empty(size + 1, dtype=np.int32) for _ in range(2))
    _reach.at(len(seen))(masks, seen, masks.dtype.type(bound), most, first, last)
    return first, last


@kernel
def _reach(masks, seen, bound, most, first, last):  # type: ignore[no-untyped-def]
    passed = first[0] = 0
    for k in range(len(seen)):
        passed = 0 if masks[seen[k]] & bound else passed + 1
        first[k + 1] = k + 1 - most if passed > most else first[k]
    passed, last[len(seen)] = 0, len(seen)
    for k in range(len(seen) - 1, -1, -1):
        passed = 0 if masks[seen[k]] & bound else passed + 1
        last[k] = k + most if passed > most else last[k + 1]
