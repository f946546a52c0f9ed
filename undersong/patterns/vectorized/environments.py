"""Evaluation environments: the values of the leaves of expressions, for the rows of a table and those of a frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any
from weakref import proxy  # leaves do not hold what holds them: arrays go when their run does

import numpy as np

from undersong.patterns.language.expressions import Call, Field, Node, Window
from undersong.patterns.language.fields import FIELDS, PLACE_FIELDS, ROW_FUNCTIONS, Kind
from undersong.patterns.language.inputs import FRAME, ROW, DependencyLevels
from undersong.patterns.vectorized.exact_sum import F, I, NotVectorizable
from undersong.patterns.vectorized.layout import DAY, RowTable, picked
from undersong.patterns.vectorized.rolling import WindowEvents, over_sequences
from undersong.patterns.vectorized.vector_logic import UNKNOWN, B, Codes, Vectors


def leaf_kind(node: Node) -> Kind:
    """What a leaf without a column of its own is."""
    if isinstance(node, Window):
        return "number"
    if isinstance(node, Call):
        return ROW_FUNCTIONS[node.name][0]
    if not isinstance(node, Field):
        raise TypeError(f"{node} has no value for a row")
    return FIELDS[node.name].kind if node.name in FIELDS else PLACE_FIELDS[node.name]


def events_of(vectors: Vectors, window: Window) -> WindowEvents:
    """The rows that a window counts, and the value that it gathers from each."""
    if window.function == "count":
        values = np.where(vectors.holds(window.value), 1.0, 0.0)
        counted: Any = np.bool_(True)
    elif vectors.kind(window.value) == "number":
        values = vectors.number(window.value)
        counted = ~np.isnan(values)
    else:
        values, has_value = _coded(vectors, window.value)
        counted = has_value
    if window.where is not None:
        counted = counted & vectors.holds(window.where)
    return WindowEvents(values, counted)


def _coded(vectors: Vectors, node: Node) -> tuple[F, B]:
    """A text or a condition as numbers that are equal where it is, and where it is known."""
    if vectors.kind(node) == "text":
        codes = vectors.text(node)
        return np.asarray(codes, dtype=np.float64), np.not_equal(codes, UNKNOWN)
    holds = vectors.holds(node)
    return np.where(holds, 1.0, 0.0), holds | vectors.fails(node)


class _TableLeaves:
    """Fields, ``day`` and windows over the agent's rows, for every row of a table."""

    def __init__(self, table: RowTable, source: Vectors) -> None:
        self.table, self.source = table, source
        self.vectors: Vectors = Vectors(self)

    @property
    def codes(self) -> Mapping[str, int]:
        return self.table.source.codes

    def kind(self, node: Node) -> Kind:
        return leaf_kind(node)

    def number(self, node: Node) -> F:
        if isinstance(node, Field) and node.name == "day":
            timed = np.repeat(self.table.timed, np.diff(self.table.bounds))
            return np.where(timed, self.table.times / DAY, np.nan)
        if isinstance(node, Window):
            return self._window(node)
        return self.table.taken(self.source.number(node))  # type: ignore[no-any-return]

    def text(self, node: Node) -> Codes:
        return self.table.taken(self.source.text(node))  # type: ignore[no-any-return]

    def truth(self, node: Node, wanted: bool) -> B:
        return self.table.taken(self.source.is_(node, wanted))  # type: ignore[no-any-return]

    def _window(self, node: Window) -> F:
        table = self.table
        values = None if table.windows is None else table.windows(node)
        if values is not None:
            return values
        events = events_of(self.vectors, node).spread(table.size)
        counted = events.counted & table.read
        return over_sequences(node, WindowEvents(events.values, counted), table.bounds, table.times, table.timed)


class TableVectors(Vectors):
    """Expressions without columns over the rows of a table; rules share them.

    What depends on single rows alone is worked out in the order of the source, and only the answer is brought into
    order: a condition is an eighth of the numbers that it is about.
    """

    def __init__(self, table: RowTable, source: Vectors) -> None:
        leaves = _TableLeaves(table, source)
        super().__init__(leaves)
        leaves.vectors = proxy(self)
        self.table, self.source = table, source
        self._levels = DependencyLevels({})

    def once(self, what: str, node: Any, work: Callable[[Any], Any]) -> Any:
        if what == "text" or self._level(what, node) != ROW:
            return super().once(what, node, work)
        return super().once(what, node, lambda part: self.table.taken(self._of_source(what, part)))

    def _of_source(self, what: str, node: Any) -> Any:
        return getattr(self.source, what)(node)

    def _level(self, what: str, node: Any) -> int:
        parts = node if what == "bits" else (node,)
        return max((self._levels.of(part) for part in parts if part is not None), default=ROW)


class RuleVectors(Vectors):
    """A rule's expressions over the rows of a table: what has no column is shared with the other rules."""

    def __init__(self, shared: TableVectors, levels: DependencyLevels) -> None:
        super().__init__(_RuleLeaves(self, shared, levels))
        self.shared, self.levels = shared, levels

    def kind(self, node: Node) -> Kind:
        """Number, text or boolean; a column is what its expression is."""
        if isinstance(node, Field) and node.name in self.levels.columns:
            return self.kind(self.levels.columns[node.name])
        return super().kind(node)

    def once(self, what: str, node: Any, work: Callable[[Any], Any]) -> Any:
        if not self.levels.named(node):
            return getattr(self.shared, what)(node)
        return super().once(what, node, work)


class _RuleLeaves:
    def __init__(self, vectors: Vectors, shared: TableVectors, levels: DependencyLevels) -> None:
        self.vectors: Vectors = proxy(vectors)
        self.shared, self.levels = shared, levels

    @property
    def codes(self) -> Mapping[str, int]:
        return self.shared.leaves.codes

    def kind(self, node: Node) -> Kind:
        return leaf_kind(node)

    def number(self, node: Node) -> F:
        return self.vectors.number(self._column(node))

    def text(self, node: Node) -> Codes:
        return self.vectors.text(self._column(node))

    def truth(self, node: Node, wanted: bool) -> B:
        return self.vectors.is_(self._column(node), wanted)  # type: ignore[no-any-return]

    def _column(self, node: Node) -> Node:
        if not isinstance(node, Field):
            raise NotVectorizable(f"{node} depends on columns")
        return self.levels.columns[node.name]


class FrameVectors(Vectors):
    """A rule's expressions over some rows of a frame: ``rows`` are their places in the table, ``places`` in it."""

    def __init__(
        self, table: RuleVectors, rows: I, places: I | None, sequence_columns: Callable[[Node, I | None], F]
    ) -> None:
        super().__init__(_FrameLeaves(self, table, rows, places, sequence_columns))
        self.table, self.levels, self.rows = table, table.levels, rows
        self._many = 2 * len(rows) >= table.shared.table.size

    def kind(self, node: Node) -> Kind:
        """Number, text or boolean; a column is what its expression is."""
        if isinstance(node, Field) and node.name in self.levels.columns:
            return self.kind(self.levels.columns[node.name])
        return super().kind(node)

    def once(self, what: str, node: Any, work: Callable[[Any], Any]) -> Any:
        """What columns that need no sequence give is worked out for the table, where many rows ask for it."""
        if not self._many or not self.levels.named(node) or self.levels.of(node) == FRAME:
            return super().once(what, node, work)
        return super().once(what, node, lambda part: self._taken(getattr(self.table, what)(part)))

    def _taken(self, values: Any) -> Any:
        return picked(values, self.rows) if np.ndim(values) else values


class _FrameLeaves:
    def __init__(
        self,
        vectors: Vectors,
        table: RuleVectors,
        rows: I,
        places: I | None,
        sequence_columns: Callable[[Node, I | None], F],
    ) -> None:
        self.vectors: Vectors = proxy(vectors)
        self.table, self.rows, self.places, self.sequence_columns = table, rows, places, sequence_columns

    @property
    def codes(self) -> Mapping[str, int]:
        return self.table.leaves.codes

    @cached_property
    def source_rows(self) -> I:
        """The rows' places in the source."""
        index = self.table.shared.table.index
        return self.rows if index is None else np.asarray(picked(index, self.rows))

    def kind(self, node: Node) -> Kind:
        return leaf_kind(node)

    def number(self, node: Node) -> F:
        column = self._column(node)
        if column is not None:
            return self.vectors.number(column)
        if self.table.levels.of(node) == FRAME:
            return self.sequence_columns(node, self.places)
        if self.table.levels.of(node) == ROW:
            return np.asarray(picked(self.table.shared.source.number(node), self.source_rows))
        return np.asarray(picked(self.table.number(node), self.rows))

    def text(self, node: Node) -> Codes:
        column = self._column(node)
        return (
            np.asarray(picked(self.table.shared.source.text(node), self.source_rows))
            if column is None
            else self.vectors.text(column)
        )

    def truth(self, node: Node, wanted: bool) -> B:
        column = self._column(node)
        if column is not None:
            return self.vectors.is_(column, wanted)  # type: ignore[no-any-return]
        return np.asarray(picked(self.table.shared.source.is_(node, wanted), self.source_rows))

    def _column(self, node: Node) -> Node | None:
        return self.table.levels.columns.get(node.name) if isinstance(node, Field) else None
