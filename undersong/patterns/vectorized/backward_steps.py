"""How far back a match can begin that ends with a row: the row instructions of a pattern, walked from its end."""

from __future__ import annotations

from collections.abc import Sequence

from undersong.patterns.language.row_pattern import Program
from undersong.patterns.vectorized.start_filter import ACCEPTED, nfa_of

_MOST = 1 << 14  # sets of instructions that are remembered, of about a kilobyte


class BackwardSteps:
    """Which row instructions can take a row on the way to the end of a match, a bit for each."""

    def __init__(self, program: Program) -> None:
        nfa = nfa_of(program)
        self._wanted = nfa.wanted
        self._first = sum(1 << way for way in nfa.first if way >= 0)
        self._last = sum(1 << way for way, after in enumerate(nfa.after) if ACCEPTED in after)
        leading = [0] * len(nfa.wanted)
        for way, after in enumerate(nfa.after):
            for following in set(after) - {ACCEPTED}:
                leading[following] |= 1 << way
        self._leading = [_of_bytes(leading[first : first + 8]) for first in range(0, len(leading), 8)]
        self._ends = _Ways(self, self._last, begins=False)
        self._fitting: dict[int, int] = {}
        self._ways: dict[int, _Ways] = {}

    def longest(self, masks: Sequence[int], most: int | None = None) -> int:
        """How many of the last rows a match may take that ends with the last one; 0 where none can end there.

        ``masks`` say of each row of a sequence the variables that it fits; ``most``: the rows that a match takes.
        """
        ways, longest = self._ends, 0
        for count, mask in enumerate(reversed(masks[-most:] if most else masks), 1):
            ways = ways[mask]
            if ways.begins:
                longest = count
            elif not ways.leading:
                break
        return longest

    def taking(self, ways: int, mask: int) -> _Ways:
        """Those of some instructions that can take a row with this mask."""
        ways &= self._fits(mask)
        if ways not in self._ways:
            if len(self._ways) >= _MOST:
                self._ways.clear()
                self._ends.clear()
            self._ways[ways] = _Ways(self, self._before(ways), begins=ways & self._first != 0)
        return self._ways[ways]

    def _before(self, ways: int) -> int:
        """The instructions that one of these may follow."""
        before = 0
        for leading, byte in zip(self._leading, ways.to_bytes(len(self._leading), "little"), strict=True):
            before |= leading[byte]
        return before

    def _fits(self, mask: int) -> int:
        if mask not in self._fitting:
            fits = (1 << way for way, wanted in enumerate(self._wanted) if not wanted or wanted & mask)
            self._fitting[mask] = sum(fits)
        return self._fitting[mask]


class _Ways(dict[int, "_Ways"]):
    """Some instructions: per mask of the row before, those that can take it.

    ``leading`` may come before these; ``begins``: one of these may take the first row of a match.
    """

    __slots__ = ("begins", "leading", "steps")

    def __init__(self, steps: BackwardSteps, leading: int, *, begins: bool) -> None:
        super().__init__()
        self.steps, self.leading, self.begins = steps, leading, begins

    def __missing__(self, mask: int) -> _Ways:
        ways = self[mask] = self.steps.taking(self.leading, mask)
        return ways


def _of_bytes(leading: Sequence[int]) -> list[int]:
    """What leads to eight instructions or less, for each choice of them."""
    table = [0]
    for own in leading:
        table += [before | own for before in table]
    return table
