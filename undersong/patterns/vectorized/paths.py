"""Matches as runs of one list of bindings; to leave some of them out copies no binding."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.patterns.vectorized.exact_sum import I
from undersong.patterns.vectorized.jit import kernel, machine
from undersong.patterns.vectorized.table import ranges

Bindings = np.ndarray[tuple[int], np.dtype[np.int8]]
MATCH = -2  # all rows that are bound to a variable; -1 are those passed over


class MatchPaths(NamedTuple):
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


def sized(starts: I, sizes: I) -> MatchPaths:
    """Matches of so many rows each, one after the other; their bindings are still to be written."""
    last = np.cumsum(sizes, dtype=np.int64)
    return MatchPaths(starts, last - sizes, last, np.empty(int(last[-1]) if len(last) else 0, dtype=np.int8))


def nothing(starts: I) -> MatchPaths:
    """Starts without a match."""
    return sized(starts, np.zeros(len(starts), dtype=np.int64))


def some(paths: MatchPaths, selected: I | npt.NDArray[np.bool_]) -> MatchPaths:
    """Some of the matches."""
    return MatchPaths(paths.starts[selected], paths.first[selected], paths.last[selected], paths.bindings)


def put(paths: MatchPaths, numbers: I, others: MatchPaths) -> MatchPaths:
    """The matches with other ones at some numbers."""
    if not len(numbers):
        return paths
    first, last, before = paths.first.copy(), paths.last.copy(), len(paths.bindings)
    first[numbers], last[numbers] = others.first + before, others.last + before
    return MatchPaths(paths.starts, first, last, np.concatenate([paths.bindings, others.bindings]))


def compact(paths: MatchPaths) -> MatchPaths:
    """The same without bindings of no match, one match after the other."""
    result = sized(paths.starts, paths.sizes)
    if machine(len(result.bindings)):
        _copy.at(len(result.bindings))(paths.bindings, paths.first, result.first, result.last, result.bindings)
    else:
        result.bindings[:] = paths.bindings[ranges(paths.first, paths.last)]
    return result


def joined(parts: list[MatchPaths]) -> MatchPaths:
    """Matches one after the other."""
    sizes = np.array([len(part.bindings) for part in parts])
    before = np.cumsum(sizes) - sizes
    return MatchPaths(
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.first + shift for part, shift in zip(parts, before, strict=True)]),
        np.concatenate([part.last + shift for part, shift in zip(parts, before, strict=True)]),
        np.concatenate([part.bindings for part in parts]),
    )


def bound(paths: MatchPaths, variable: int) -> I:
    """How many rows each match binds to a variable."""
    number = np.zeros(len(paths.starts), dtype=np.int64)
    size = int(paths.sizes.sum())
    if machine(size):
        least, most = (0, 127) if variable == MATCH else (variable, variable)
        _count.at(size)(paths.first, paths.last, paths.bindings, np.int8(least), np.int8(most), number)
        return number
    bindings = paths.bindings[ranges(paths.first, paths.last)]
    fits = bindings >= 0 if variable == MATCH else bindings == variable
    before, ends = np.concatenate([[0], np.cumsum(fits)]), np.cumsum(paths.sizes)
    return np.asarray(before[ends] - before[ends - paths.sizes])


@kernel
def _copy(source, source_first, first, last, target):  # type: ignore[no-untyped-def]
    for k in range(len(first)):
        shift = source_first[k] - first[k]
        for i in range(first[k], last[k]):
            target[i] = source[i + shift]


@kernel
def _count(first, last, bindings, least, most, number):  # type: ignore[no-untyped-def]
    for k in range(len(first)):
        seen = 0
        for binding in bindings[first[k] : last[k]]:
            seen += (binding >= least) & (binding <= most)
        number[k] = seen
