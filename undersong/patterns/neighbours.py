"""Which variables of a row pattern stand at the same choice: a row that fits both could be bound to either."""

from __future__ import annotations

from typing import NamedTuple

from undersong.patterns.sequences import ANY, Bind, Or, Part, Passed, Repeat, Then, can_be_empty


class _FirstVariables(NamedTuple):
    """The variables that a part can begin with."""

    first: frozenset[str]
    empty: bool


def ambiguous_pairs(part: Part) -> frozenset[tuple[str, str]]:
    """Pairs of different named variables, in alphabetical order, between which a match may choose for one row.

    Rows that are passed over (``ANY``, ``{- A -}``) are no rival: passing over is meant to yield.
    """
    pairs: set[tuple[str, str]] = set()
    _walk(part, frozenset(), pairs)
    return frozenset(pairs)


def _walk(part: Part, after: frozenset[str], pairs: set[tuple[str, str]]) -> None:
    """Note the choices within a part that is followed by the variables ``after``."""
    if isinstance(part, Then):
        for i, child in enumerate(part.parts):
            _walk(child, _first_of(part.parts[i + 1 :], after), pairs)
    elif isinstance(part, Or):
        for i, child in enumerate(part.parts):
            for other in part.parts[i + 1 :]:
                _note(_ends(child).first, _ends(other).first, pairs)
            _walk(child, after, pairs)
    elif isinstance(part, Repeat):
        again = _ends(part.part).first
        if part.most is None or part.most > part.least:
            _note(again, after, pairs)
        _walk(part.part, after | again if part.most is None or part.most > 1 else after, pairs)


def _note(one: frozenset[str], other: frozenset[str], pairs: set[tuple[str, str]]) -> None:
    pairs.update((min(a, b), max(a, b)) for a in one for b in other if a != b)


def _first_of(parts: tuple[Part, ...], after: frozenset[str]) -> frozenset[str]:
    first: frozenset[str] = frozenset()
    for part in parts:
        ends = _ends(part)
        first |= ends.first
        if not ends.empty:
            return first
    return first | after


def _ends(part: Part) -> _FirstVariables:
    if isinstance(part, Bind):
        return _FirstVariables(frozenset() if part.variable == ANY else frozenset({part.variable}), False)
    if isinstance(part, Passed):
        return _FirstVariables(frozenset(), can_be_empty(part.part))
    if isinstance(part, Or):
        branches = [_ends(inner) for inner in part.parts]
        return _FirstVariables(
            frozenset().union(*(ends.first for ends in branches)), any(ends.empty for ends in branches)
        )
    if isinstance(part, Repeat):
        inner = _ends(part.part)
        return _FirstVariables(inner.first, inner.empty or part.least == 0)
    if isinstance(part, Then):
        return _FirstVariables(_first_of(part.parts, frozenset()), all(_ends(inner).empty for inner in part.parts))
    return _FirstVariables(frozenset(), True)
