"""What single rows say to all rules at once: the variables that the row alone does not rule out."""

from __future__ import annotations

from collections.abc import Iterable

from undersong.models import Row
from undersong.patterns.incremental.lazy_columns import Seen, SharedCells
from undersong.patterns.incremental.predicate_index import CnfCondition, IndicatorCondition, PredicateIndex
from undersong.patterns.incremental.row_plan import RowPlan
from undersong.patterns.language.fields import Context

_MOST_SETS = 10_000  # sets of indicators whose masks are remembered

Effects = list[tuple[int, int]]  # (rule, bit of its variable)


class MaskReader:
    """Each different condition is asked once per row, whatever rules share it; those on indicators once per set."""

    def __init__(self, plans: Iterable[RowPlan], facts: PredicateIndex) -> None:
        self.facts = facts
        self.base: list[int] = []
        demands: dict[CnfCondition, Effects] = {}
        judged: dict[IndicatorCondition, Effects] = {}
        for plan in plans:
            self.base.append(plan.always)
            for bit, demand in plan.cnf_conditions:
                demands.setdefault(demand, []).append((plan.index, bit))
            for bit, condition in plan.indicator_conditions:
                judged.setdefault(condition, []).append((plan.index, bit))
        self.cnf_conditions = [(*demand, effects) for demand, effects in demands.items()]
        self.indicator_conditions = [(each.holds, effects) for each, effects in judged.items()]
        self.vocabulary = frozenset[str]().union(*(each.indicators for each in judged))
        self._cache: dict[frozenset[str] | None, Effects] = {}

    def masks(self, row: Row) -> list[int]:
        """Per rule, a bit for each variable that the row fits, or may fit where columns decide.

        What is asked late (see Plan) is left open for variables with which no match begins.
        """
        masks = self.base.copy()
        context = Context(row, {})
        facts = self.facts.true_bits(context)
        for every, some, rest, effects in self.cnf_conditions:
            if (
                facts & every == every
                and (not some or all(facts & each for each in some))
                and (not rest or all(holds(context) is True for holds in rest))
            ):
                for index, bit in effects:
                    masks[index] |= bit
        for index, bit in self._of_indicators(context):
            masks[index] |= bit
        return masks

    def _of_indicators(self, context: Context) -> Effects:
        seen = context.row.indicators
        key = None if seen is None else self.vocabulary.intersection(indicator.id for indicator in seen)
        matching = self._cache.get(key)
        if matching is None:
            if len(self._cache) >= _MOST_SETS:
                self._cache.clear()
            matching = [
                effect for holds, effects in self.indicator_conditions if holds(context) is True for effect in effects
            ]
            self._cache[key] = matching
        return matching


class LiveRow:
    """A read row as all rules of one view see it; what holds in every sequence is worked out once."""

    def __init__(self, seen: Seen, masks: list[int], steps: int) -> None:
        self.seen, self.masks, self.steps = seen, masks, steps
        self.cells: dict[int, SharedCells] = {}
        self._tested: dict[int, tuple[int, int]] = {}

    def shared(self, plan: RowPlan) -> SharedCells:
        """The derived values that all sequences share."""
        cells = self.cells.get(plan.index)
        if cells is None:
            cells = self.cells[plan.index] = SharedCells(plan, self.seen)
        return cells

    def exact(self, plan: RowPlan, bits: int) -> int:
        """Those of ``bits`` that hold as far as all sequences share it; each condition is asked once."""
        asked, true = self._tested.get(plan.index, (0, 0))
        open_bits = bits & plan.shared_bits & ~asked
        if open_bits:
            context = Context(self.seen.row, self.shared(plan))
            for bit, holds in plan.shared_tests:
                if bit & open_bits and holds(context) is True:
                    true |= bit
            self._tested[plan.index] = asked | open_bits, true
        return bits & (true | ~plan.shared_bits)
