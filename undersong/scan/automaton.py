"""The automaton of Aho and Corasick as one table of numbers: byte after byte, which strings end here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.uint32]
Numbers = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
_CODES = 256


class Automaton(NamedTuple):
    """``table[state + classes[byte]]`` is the state after a byte. States are where their rows begin, the first 0.

    Class 0 is of all bytes that no string has.

    From state ``first`` on a string ends: state ``first + i * width`` ends the strings of the indexes ``ending[i]``.
    """

    classes: npt.NDArray[np.uint8]
    table: Table
    width: int
    first: int
    ending: tuple[tuple[int, ...], ...]
    longest: int


def automaton(strings: Sequence[bytes]) -> Automaton:
    """The automaton of different, non-empty strings."""
    classes = np.zeros(_CODES, dtype=np.uint8)
    known = np.unique(np.frombuffer(b"".join(strings), dtype=np.uint8))[: _CODES - 1]  # the last one is of no UTF-8
    classes[known] = np.arange(1, len(known) + 1)
    width = len(known) + 1
    levels, own = _levels(strings, classes, width)
    table, falls = _table(levels, width)
    ending: dict[int, tuple[int, ...]] = {}
    for state, fall in enumerate(falls.tolist()):
        ends = own.get(state, ()) + ending.get(fall, ())
        if ends:
            ending[state] = ends
    ends_here = np.zeros(len(table), dtype=bool)
    ends_here[list(ending)] = True
    order = np.argsort(ends_here, kind="stable")  # so that one comparison tells whether a string ends
    place = np.empty(len(order), dtype=np.uint32)
    place[order] = np.arange(len(order)) * width
    first = len(table) - len(ending)
    return Automaton(
        classes, place[table[order].ravel()], width, first * width,
        tuple(ending[state] for state in order[first:].tolist()), max(map(len, strings)),
    )  # fmt: skip


class _Level(NamedTuple):
    """The states of one depth: the first of them, and the state and class that lead to each."""

    first: int
    parents: Numbers
    classes: Numbers


def _levels(
    strings: Sequence[bytes], classes: npt.NDArray[np.uint8], width: int
) -> tuple[list[_Level], dict[int, tuple[int, ...]]]:
    """The states by depth, numbered from 1, and the string that ends in each of some states."""
    lengths = np.array([len(string) for string in strings])
    longest = int(lengths.max())
    codes = classes[np.frombuffer(b"".join(string.ljust(longest) for string in strings), dtype=np.uint8)]
    codes = codes.reshape(-1, longest).astype(np.int64)
    states = np.zeros(len(strings), dtype=np.int64)
    found, count = [], 1
    for depth in range(longest):
        longer = np.flatnonzero(lengths > depth)
        steps, which = np.unique(states[longer] * width + codes[longer, depth], return_inverse=True)
        found.append(_Level(count, *np.divmod(steps, width)))
        states[longer] = count + which
        count += len(steps)
    return found, {state: (index,) for index, state in enumerate(states.tolist())}


def _table(levels: Sequence[_Level], width: int) -> tuple[Rows, Rows]:
    """The row of each state, and the state of its longest proper suffix."""
    count = 1 + sum(len(level.parents) for level in levels)
    table = np.zeros((count, width), dtype=np.int32)
    falls = np.zeros(count, dtype=np.int32)
    for depth, (first, parents, classes) in enumerate(levels):
        states = np.arange(first, first + len(parents))
        falls[states] = table[falls[parents], classes] if depth else 0
        table[parents, classes] = states
        table[states] = table[falls[states]]
    return table, falls
