"""A row as it was seen, and its derived values, worked out only when a condition or a measure asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from undersong.models import Row
from undersong.patterns.incremental.windows import needed
from undersong.patterns.language.expressions import Window
from undersong.patterns.language.fields import Context
from undersong.patterns.language.logic import Evaluate, Value
from undersong.patterns.language.windows import EMPTY, RunningMoments
from undersong.patterns.reference.columns import DAY

if TYPE_CHECKING:
    from undersong.patterns.incremental.row_plan import RowPlan

Derive: TypeAlias = Callable[[Any], Value]
Tallies: TypeAlias = tuple[RunningMoments, ...]


class Seen:
    """A read row at its time, with the agent's windows as they stood before it: shared by all sequences it is in.

    ``agent`` holds a value per window over the agent's rows, ``others`` a tally per window over the directed ones.
    """

    __slots__ = ("agent", "others", "row", "time")

    def __init__(self, row: Row, time: int | None, agent: tuple[Value, ...], others: Tallies) -> None:
        self.row, self.time, self.agent, self.others = row, time, agent, others


class SharedCells(dict[str, Value]):
    """Lazily computed columns of a row that have the same value in every sequence of the agent."""

    __slots__ = ("plan", "seen")

    def __init__(self, plan: RowPlan, seen: Seen) -> None:
        self.plan, self.seen = plan, seen

    def __missing__(self, name: str) -> Value:
        value = self[name] = self.plan.shared[name](self)
        return value


class OwnCells(dict[str, Value]):
    """Lazily computed columns of a row in one sequence.

    ``aimed`` are the tallies of the rows directed at the sequence's own target (() where there is none), ``eager`` the
    values of windows that must see every row of the sequence.
    """

    __slots__ = ("aimed", "eager", "plan", "seen", "shared")

    def __init__(self, shared: SharedCells, aimed: Tallies, eager: Mapping[str, Value]) -> None:
        self.plan, self.seen, self.shared = shared.plan, shared.seen, shared
        self.aimed, self.eager = aimed, eager

    def __missing__(self, name: str) -> Value:
        derive = self.plan.own.get(name)
        value = self[name] = self.shared[name] if derive is None else derive(self)
        return value


def day(cells: SharedCells) -> Value:
    """Event time in days."""
    return None if cells.seen.time is None else cells.seen.time / DAY


def of_column(value: Evaluate) -> Derive:
    """A column's expression over the other cells of its row."""
    return lambda cells: value(Context(cells.seen.row, cells))


def of_agent(slot: int) -> Derive:
    """A window over the agent's rows."""
    return lambda cells: cells.seen.agent[slot]


def of_others(slot: int, window: Window) -> Derive:
    """A window over the agent's rows to anyone else: all that it directed less what it directed here."""
    least, function = needed(window), window.function

    def derive(cells: OwnCells) -> Value:
        tally = cells.seen.others[slot].less(cells.aimed[slot] if cells.aimed else EMPTY)
        return None if tally.size < least else tally.result(function)

    return derive


def of_eager(name: str) -> Derive:
    """A value that was worked out when the row came."""
    return lambda cells: cells.eager[name]
