"""What single rows say to all rules at once: the variables that the row alone does not rule out."""

from __future__ import annotations

from collections.abc import Iterable

from undersong.models import Row
from undersong.patterns.expressions import Call, Field, Node, Text, walk
from undersong.patterns.fields import Context
from undersong.patterns.live.cells import Seen, SharedCells
from undersong.patterns.live.plan import Plan, local_part
from undersong.patterns.logic import Evaluate

_MOST_SETS = 10_000  # sets of indicators whose masks are remembered

Effects = list[tuple[int, int]]  # (rule, bit of its variable)


class Reader:
    """Each different condition is asked once per row, whatever rules share it; those on indicators once per set."""

    def __init__(self, plans: Iterable[Plan]) -> None:
        self.base: list[int] = []
        tests: dict[Node, tuple[Evaluate, Effects]] = {}
        for plan in plans:
            always = 0
            texts = plan.rule.file.define.values()
            for i, (condition, text) in enumerate(zip(plan.rule.conditions, texts, strict=True)):
                if condition.local is None:
                    always |= 1 << i
                else:
                    tests.setdefault(local_part(text), (condition.local, []))[1].append((plan.index, 1 << i))
            self.base.append(always)
        judged = {node: _indicators(node) for node in tests}
        self.plain = [test for node, test in tests.items() if not judged[node]]
        self.judged = [test for node, test in tests.items() if judged[node]]
        self.vocabulary = frozenset(name for names in judged.values() for name in names)
        self._known: dict[frozenset[str] | None, Effects] = {}

    def masks(self, row: Row) -> list[int]:
        """Per rule, a bit for each variable that the row fits, or may fit where columns decide."""
        masks = self.base.copy()
        context = Context(row, {})
        for holds, effects in self.plain:
            if holds(context) is True:
                for index, bit in effects:
                    masks[index] |= bit
        for index, bit in self._of_indicators(context):
            masks[index] |= bit
        return masks

    def _of_indicators(self, context: Context) -> Effects:
        seen = context.row.indicators
        key = None if seen is None else self.vocabulary.intersection(indicator.id for indicator in seen)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST_SETS:
                self._known.clear()
            known = [effect for holds, effects in self.judged if holds(context) is True for effect in effects]
            self._known[key] = known
        return known


class Reading:
    """A read row as all rules of one view see it; what holds in every sequence is worked out once."""

    def __init__(self, seen: Seen, masks: list[int], steps: int) -> None:
        self.seen, self.masks, self.steps = seen, masks, steps
        self.cells: dict[int, SharedCells] = {}
        self._known: dict[int, tuple[int, int]] = {}

    def shared(self, plan: Plan) -> SharedCells:
        """The derived values that all sequences share."""
        cells = self.cells.get(plan.index)
        if cells is None:
            cells = self.cells[plan.index] = SharedCells(plan, self.seen)
        return cells

    def exact(self, plan: Plan, bits: int) -> int:
        """Those of ``bits`` that hold as far as all sequences share it; each condition is asked once."""
        asked, true = self._known.get(plan.index, (0, 0))
        open_bits = bits & plan.shared_bits & ~asked
        if open_bits:
            context = Context(self.seen.row, self.shared(plan))
            for bit, holds in plan.shared_tests:
                if bit & open_bits and holds(context) is True:
                    true |= bit
            self._known[plan.index] = asked | open_bits, true
        return bits & (true | ~plan.shared_bits)


def _indicators(node: Node) -> frozenset[str]:
    """The indicators that alone decide a condition; empty where anything else does."""
    names = set()
    for part in walk(node):
        if isinstance(part, Field):
            return frozenset()
        if isinstance(part, Call) and part.name in ("flag", "signal"):
            return frozenset()
        if isinstance(part, Call) and part.name == "indicator" and isinstance(part.arguments[0], Text):
            names.add(part.arguments[0].value)
    return frozenset(names)
