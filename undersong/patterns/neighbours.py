"""Which variables of a row pattern stand at the same choice: a row that fits both could be bound to either."""

from __future__ import annotations

from typing import NamedTuple

from undersong.patterns.sequences import ANY, Bind, Or, Part, Passed, Repeat, Then, can_be_empty


class _Ends(NamedTuple):
    """The variables that a part can begin with."""

    first: frozenset[str]
    empty: bool


def choices(part: Part) -> frozenset[tuple[str, str]]:
    """Pairs of different named variables, in alphabetical order, between which a match may choose for one row.

    Rows that are passed over (``ANY``, ``{- A -}``) are no rival: passing over is meant to yield.
    """
    found: set[tuple[str, str]] = set()
    _walk(part, frozenset(), found)
    return frozenset(found)


def _walk(part: Part, after: frozenset[str], found: set[tuple[str, str]]) -> None:
    """Note the choices within a part that is followed by the variables ``after``."""
    if isinstance(part, Then):
        for i, each in enumerate(part.parts):
            _walk(each, _first_of(part.parts[i + 1 :], after), found)
    elif isinstance(part, Or):
        for i, each in enumerate(part.parts):
            for other in part.parts[i + 1 :]:
                _note(_ends(each).first, _ends(other).first, found)
            _walk(each, after, found)
    elif isinstance(part, Repeat):
        again = _ends(part.part).first
        if part.most is None or part.most > part.least:
            _note(again, after, found)
        _walk(part.part, after | again if part.most is None or part.most > 1 else after, found)


def _note(one: frozenset[str], other: frozenset[str], found: set[tuple[str, str]]) -> None:
    found.update((min(a, b), max(a, b)) for a in one for b in other if a != b)


def _first_of(parts: tuple[Part, ...], after: frozenset[str]) -> frozenset[str]:
    first: frozenset[str] = frozenset()
    for part in parts:
        ends = _ends(part)
        first |= ends.first
        if not ends.empty:
            return first
    return first | after


def _ends(part: Part) -> _Ends:
    if isinstance(part, Bind):
        return _Ends(frozenset() if part.variable == ANY else frozenset({part.variable}), False)
    if isinstance(part, Passed):
        return _Ends(frozenset(), can_be_empty(part.part))
    if isinstance(part, Or):
        each = [_ends(inner) for inner in part.parts]
        return _Ends(frozenset().union(*(ends.first for ends in each)), any(ends.empty for ends in each))
    if isinstance(part, Repeat):
        inner = _ends(part.part)
        return _Ends(inner.first, inner.empty or part.least == 0)
    if isinstance(part, Then):
        return _Ends(_first_of(part.parts, frozenset()), all(_ends(inner).empty for inner in part.parts))
    return _Ends(frozenset(), True)
