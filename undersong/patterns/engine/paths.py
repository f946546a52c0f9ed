"""Matches as runs of one list of bindings; to leave some of them out copies no binding."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.jit import kernel, machine
from undersong.patterns.engine.sums import I
from undersong.patterns.engine.table import ranges

Bindings = np.ndarray[tuple[int], np.dtype[np.int8]]
MATCH = -2  # all rows that are bound to a variable; -1 are those passed over


class Paths(NamedTuple):
    """Matches: their first rows, and from which to before which place their ``bindings`` stand.

    A binding is the variable of a row (-1: passed over). Matches may share bindings, and between them may stand some of
    no match. A start without a match has a path of no rows.
    """

    starts: I
    first: I
    last: I
    bindings: Bindings

    @property
    def sizes(self) -> I:
        """The rows that each match takes."""
        return self.last - self.first


def sized(starts: I, sizes: I) -> Paths:
    """Matches of so many rows each, one after the other; their bindings are still to be written."""
    last = np.cumsum(sizes, dtype=np.int64)
    return Paths(starts, last - sizes, last, np.empty(int(last[-1]) if len(last) else 0, dtype=np.int8))


def nothing(starts: I) -> Paths:
    """Starts without a match."""
    return sized(starts, np.zeros(len(starts), dtype=np.int64))


def some(found: Paths, kept: I | npt.NDArray[np.bool_]) -> Paths:
    """Some of the matches."""
    return Paths(found.starts[kept], found.first[kept], found.last[kept], found.bindings)


def put(found: Paths, numbers: I, others: Paths) -> Paths:
    """The matches with other ones at some numbers."""
    if not len(numbers):
        return found
    first, last, before = found.first.copy(), found.last.copy(), len(found.bindings)
    first[numbers], last[numbers] = others.first + before, others.last + before
    return Paths(found.starts, first, last, np.concatenate([found.bindings, others.bindings]))


def compact(found: Paths) -> Paths:
    """The same without bindings of no match, one match after the other."""
    result = sized(found.starts, found.sizes)
    if machine(len(result.bindings)):
        _copy.at(len(result.bindings))(found.bindings, found.first, result.first, result.last, result.bindings)
    else:
        result.bindings[:] = found.bindings[ranges(found.first, found.last)]
    return result


def joined(parts: list[Paths]) -> Paths:
    """Matches one after the other."""
    sizes = np.array([len(part.bindings) for part in parts])
    before = np.cumsum(sizes) - sizes
    return Paths(
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.first + shift for part, shift in zip(parts, before, strict=True)]),
        np.concatenate([part.last + shift for part, shift in zip(parts, before, strict=True)]),
        np.concatenate([part.bindings for part in parts]),
    )


def bound(found: Paths, variable: int) -> I:
    """How many rows each match binds to a variable."""
    number = np.zeros(len(found.starts), dtype=np.int64)
    size = int(found.sizes.sum())
    if machine(size):
        least, most = (0, 127) if variable == MATCH else (variable, variable)
        _count.at(size)(found.first, found.last, found.bindings, np.int8(least), np.int8(most), number)
        return number
    bindings = found.bindings[ranges(found.first, found.last)]
    fits = bindings >= 0 if variable == MATCH else bindings == variable
    before, ends = np.concatenate([[0], np.cumsum(fits)]), np.cumsum(found.sizes)
    return np.asarray(before[ends] - before[ends - found.sizes])


@kernel
def _copy(given, given_first, first, last, found):  # type: ignore[no-untyped-def]
    for k in range(len(first)):
        shift = given_first[k] - first[k]
        for i in range(first[k], last[k]):
            found[i] = given[i + shift]


@kernel
def _count(first, last, bindings, least, most, number):  # type: ignore[no-untyped-def]
    for k in range(len(first)):
        seen = 0
        for binding in bindings[first[k] : last[k]]:
            seen += (binding >= least) & (binding <= most)
        number[k] = seen
