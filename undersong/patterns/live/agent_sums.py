"""Sums over all earlier rows of an agent, with which rules compare a row: kept as rows come, never made anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from undersong.models import Row
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Node, Window, walk
from undersong.patterns.language.fields import Context, row_leaf
from undersong.patterns.language.logic import Evaluate, compile_tree
from undersong.patterns.vectorized.environments import events_of
from undersong.patterns.vectorized.exact_sum import (
    EXACT,
    ExactTotal,
    F,
    I,
    NotVectorizable,
    limbs_and_rest,
    mean,
    total,
)
from undersong.patterns.vectorized.rolling import WindowEvents, least
from undersong.patterns.vectorized.rule_plan import every_tree, running_sum
from undersong.patterns.vectorized.vector_logic import B, Vectors

TOGETHER = 20  # rows from which on arrays say what each of them is sooner than functions do, row by row


class SumsSoFar(NamedTuple):
    """The sums of some rows of one timeline after the other.

    ``values`` are the windows at each row, NaN where they are unknown; ``fits``, whether they could be summed exactly;
    ``totals``, of each timeline the numbers and sums of all its rows, NaN where they could not.
    """

    values: F
    fits: B
    totals: F


def summed_so_far(window: Window) -> bool:
    """Whether a window is a sum, mean or count over all earlier rows of the agent, each by itself."""
    return window.over == "agent" and running_sum(window)


def agent_windows(rule: PatternRule) -> set[Window]:
    """The windows of a rule over the rows of the agent."""
    parts = (part for tree in every_tree(rule) for part in walk(tree))
    return {part for part in parts if isinstance(part, Window) and part.over == "agent"}


class AgentSums:
    """The sums that some rules ask for; ``numbers`` say which row of ``SumsSoFar.values`` is that of a window."""

    def __init__(self, rules: Sequence[PatternRule]) -> None:
        windows = dict.fromkeys(
            window for rule in rules if rule.trees.where is None for window in sorted(agent_windows(rule), key=repr)
        )
        self.windows = tuple(window for window in windows if summed_so_far(window))
        self.numbers: Mapping[Node, int] = {window: number for number, window in enumerate(self.windows)}
        self._gathers = [_gathering(window) for window in self.windows]
        self._means = np.array([window.function == "mean" for window in self.windows], dtype=np.bool_)
        self._least = np.array([[least(window)] for window in self.windows], dtype=np.int64).reshape(-1, 1)

    @property
    def nothing(self) -> F:
        """The totals of no rows: per window a number and the three limbs of a sum."""
        return np.zeros((4, len(self.windows)))

    def of(self, rule: PatternRule) -> I | None:
        """The numbers of the windows of a rule over the rows of the agent; None where one is no such sum."""
        windows = agent_windows(rule)
        if rule.trees.where is not None or not windows <= self.numbers.keys():
            return None
        return np.array(sorted(self.numbers[window] for window in windows), dtype=np.int64)

    def take(self, rows: Sequence[Row], vectors: Vectors, bounds: I, before: Sequence[F]) -> SumsSoFar:
        """The sums at further rows; ``bounds`` as in a table, and ``before`` the totals of each timeline so far."""
        with np.errstate(over="ignore", invalid="ignore"):
            if len(rows) < TOGETHER:
                return self._take(*self._one_by_one(rows), bounds, before)
            return self._take(*self._of_arrays(rows, vectors), bounds, before)

    def _one_by_one(self, rows: Sequence[Row]) -> tuple[F, B, B]:
        """What each window takes of each row, whether it counts it, and which windows cannot be summed."""
        values, counted = np.zeros((len(self.windows), len(rows))), np.zeros((len(self.windows), len(rows)), np.bool_)
        for place, row in enumerate(rows):
            if row.state != "scored":
                continue
            context = Context(row, {})
            taken = [gathers(context) for gathers in self._gathers]
            counted[:, place] = [value is not None for value in taken]
            values[:, place] = [value or 0.0 for value in taken]
        return values, counted, np.zeros(len(self.windows), dtype=np.bool_)

    def _of_arrays(self, rows: Sequence[Row], vectors: Vectors) -> tuple[F, B, B]:
        read = np.array([row.state == "scored" for row in rows], dtype=np.bool_)
        values, counted = np.zeros((len(self.windows), len(read))), np.zeros((len(self.windows), len(read)), np.bool_)
        unfit = np.zeros(len(self.windows), dtype=np.bool_)
        for number, window in enumerate(self.windows):
            events = _events(vectors, window, len(read))
            if events is None:
                unfit[number] = True
                continue
            counted[number] = events.counted & read
            values[number] = np.where(counted[number], events.values, 0.0)
        return values, counted, unfit

    def _take(self, values: F, counted: B, unfit: B, bounds: I, before: Sequence[F]) -> SumsSoFar:
        whole, rest = limbs_and_rest(values)
        running = np.zeros((4, values.shape[0], values.shape[1] + 1))
        np.cumsum([counted, *whole], axis=2, out=running[:, :, 1:])
        unfit = unfit | rest.any(axis=1) | ~(np.abs(running).max(axis=(0, 2)) < EXACT)
        start = np.stack(before, axis=2) - running[:, :, bounds[:-1]]
        here = running[:, :, :-1] + np.repeat(start, np.diff(bounds), axis=2)
        totals = running[:, :, bounds[1:]] + start
        totals[:, unfit] = np.nan
        fits = (np.abs(here) < EXACT).all(axis=0) & ~unfit[:, np.newaxis]  # false where a sum so far is unknown
        too_large = np.add.accumulate(np.pad(~fits, ((0, 0), (1, 0))), axis=1, dtype=np.int64)
        totals[:, too_large[:, bounds[1:]] > too_large[:, bounds[:-1]]] = np.nan
        totals[:, ~(np.abs(totals) < EXACT).all(axis=0)] = np.nan
        return SumsSoFar(self._results(here[0], ExactTotal(*here[1:])), fits, totals)

    def _results(self, number: F, sums: ExactTotal) -> F:
        means, counts = self._means, np.nan_to_num(number).astype(np.int64)
        results = np.empty_like(number)
        results[means] = mean(ExactTotal(*(part[means] for part in sums)), counts[means])
        results[~means] = total(ExactTotal(*(part[~means] for part in sums)))
        return np.where(counts >= self._least, results, np.nan)


def _gathering(window: Window) -> Evaluate:
    """What a window takes of a row, None where it does not count it, as ``events_of`` has it for many rows."""
    value = compile_tree(window.value, row_leaf)
    where = None if window.where is None else compile_tree(window.where, row_leaf)
    is_count = window.function == "count"

    def gathered(context: Context) -> float | None:
        if where is not None and where(context) is not True:
            return None
        result: Any = value(context)
        return float(result is True) if is_count else None if result is None else float(result)

    return gathered


def _events(vectors: Vectors, window: Window, size: int) -> WindowEvents | None:
    try:
        return events_of(vectors, window).spread(size)
    except (NotVectorizable, FloatingPointError):
        return None
