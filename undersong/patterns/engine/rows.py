"""Row objects as a source: a field is read from every row once, when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from undersong.models import Row
from undersong.patterns.engine.sums import F, NotVectorizable
from undersong.patterns.engine.table import RowTable
from undersong.patterns.engine.vectors import UNKNOWN, B, Codes
from undersong.patterns.expressions import Call, Field, Node, Text
from undersong.patterns.fields import FIELDS, ROW_FUNCTIONS, Kind
from undersong.patterns.partitions import Timeline

_EXACT = float(1 << 53)  # whole numbers beyond it are no float64 values


def table_of(timelines: Sequence[Timeline]) -> RowTable:
    """The table of some timelines; row i is the i-th entry of all."""
    entries = [entry for timeline in timelines for entry in timeline.entries]
    sizes = [len(timeline.entries) for timeline in timelines]
    return RowTable(
        RowSource([entry.row for entry in entries]),
        None,
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array([entry.time or 0 for entry in entries], dtype=np.int64),
        np.array([timeline.timed for timeline in timelines], dtype=np.bool_),
        np.array([entry.read for entry in entries], dtype=np.bool_),
    )


class RowSource:
    """Rows, and the arrays that were made of them so far."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self._known: dict[Node, Any] = {}

    @property
    def size(self) -> int:
        """How many rows."""
        return len(self.rows)

    @cached_property
    def codes(self) -> dict[str, int]:
        """Every text of every text field, numbered in alphabetical order."""
        fields = [field.read for field in FIELDS.values() if field.kind == "text"]
        texts = {read(row) for row in self.rows for read in fields}
        return {text: code for code, text in enumerate(sorted(str(text) for text in texts if text is not None))}

    def kind(self, node: Node) -> Kind:
        """What a field or a row function is."""
        return ROW_FUNCTIONS[node.name][0] if isinstance(node, Call) else FIELDS[_field(node)].kind

    def number(self, node: Node) -> F:
        """A number of every row, NaN where it is unknown."""
        if node not in self._known:
            numbers = np.array(self._values(node), dtype=np.float64)
            if np.isinf(numbers).any() or (np.abs(numbers) > _EXACT).any():
                raise NotVectorizable("a number is beyond float64's whole numbers")
            self._known[node] = numbers
        return self._known[node]  # type: ignore[no-any-return]

    def text(self, node: Node) -> Codes:
        """The codes of a text of every row."""
        if node not in self._known:
            codes = self.codes
            values = [UNKNOWN if value is None else codes[value] for value in self._values(node)]
            self._known[node] = np.array(values, dtype=np.int32)
        return self._known[node]  # type: ignore[no-any-return]

    def truth(self, node: Node, wanted: bool) -> B:
        """Where a condition on single rows holds or fails."""
        if node not in self._known:
            values = self._values(node)
            self._known[node] = (
                np.array([value is True for value in values], dtype=np.bool_),
                np.array([value is False for value in values], dtype=np.bool_),
            )
        return self._known[node][0 if wanted else 1]  # type: ignore[no-any-return]

    def _values(self, node: Node) -> list[Any]:
        if not isinstance(node, Call):
            read = FIELDS[_field(node)].read
            return [read(row) for row in self.rows]
        name = node.arguments[0]
        if not isinstance(name, Text):
            raise TypeError(f"{node.name}() takes a quoted name")
        if node.name == "indicator":
            return self._with(name.value, [None if row.indicators is None else False for row in self.rows])
        if node.name == "flag":
            return [name.value in seen for seen in self._flags]
        return [ROW_FUNCTIONS[node.name][1](row, name.value) for row in self.rows]

    def _with(self, indicator: str, values: list[Any]) -> list[Any]:
        for place in self._indicators.get(indicator, ()):
            values[place] = True
        return values

    @cached_property
    def _indicators(self) -> dict[str, list[int]]:
        """Per indicator the rows in which a judge saw it."""
        by_indicator: dict[str, list[int]] = {}
        for place, row in enumerate(self.rows):
            for indicator in row.indicators or ():
                by_indicator.setdefault(indicator.id, []).append(place)
        return by_indicator

    @cached_property
    def _flags(self) -> list[frozenset[str]]:
        """What the scan flagged in each row, as ``fields.has_flag`` says."""
        return [frozenset(_flagged(row)) if row.flags or row.labels or row.hits else frozenset() for row in self.rows]


def _flagged(row: Row) -> Iterable[str]:
    yield from (name for name, count in row.flags.items() if count > 0)
    yield from row.labels
    for hit in row.hits:
        yield from (hit.label, hit.trait)


def _field(node: Node) -> str:
    if not isinstance(node, Field):
        raise TypeError(f"{node} is no field of a row")
    return node.name
