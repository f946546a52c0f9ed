"""Columns as a source: arrays in, no row object is made.

Texts come dictionary-encoded, as Arrow and data frames have them: a code per row and the names of the codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np

from undersong.jit import kernel, machine
from undersong.patterns.engine.sums import F, I
from undersong.patterns.engine.table import Table
from undersong.patterns.engine.vectors import UNKNOWN, B, Codes
from undersong.patterns.expressions import Call, Field, Node, Text
from undersong.patterns.fields import FIELDS, ROW_FUNCTIONS, Kind


class Encoded(NamedTuple):
    """Texts: a code per row (-1: none), and what each code stands for."""

    codes: Codes
    names: Sequence[str]


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """Rows as arrays of one length, in any order: one row per message, abandoned branches and repeats left out.

    ``times`` are microseconds since 1970, ``read`` says which rows have scores. ``texts``, ``numbers`` (NaN: unknown)
    and ``truths`` are fields by name, a missing one is unknown throughout; ``texts`` needs ``agent``. ``judged`` says
    where indicators were looked for (None: nowhere). Rows of one time are ordered by ``positions``, then as given.
    """

    times: I
    read: B
    texts: Mapping[str, Encoded]
    positions: I | None = None
    numbers: Mapping[str, F] = {}
    truths: Mapping[str, B] = {}
    judged: B | None = None
    indicators: Mapping[str, B] = {}
    flags: Mapping[str, B] = {}
    signals: Mapping[str, F] = {}


class ColumnSource:
    """The fields of columns."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._texts: dict[str, Codes] = {}

    @cached_property
    def codes(self) -> dict[str, int]:
        """Every text of every column, numbered in alphabetical order."""
        names = sorted(dict.fromkeys(chain.from_iterable(text.names for text in self.columns.texts.values())))
        return dict(zip(names, range(len(names)), strict=True))

    @property
    def size(self) -> int:
        """How many rows."""
        return len(self.columns.times)

    def kind(self, node: Node) -> Kind:
        """What a field or a row function is."""
        return ROW_FUNCTIONS[node.name][0] if isinstance(node, Call) else FIELDS[_name(node)].kind

    def number(self, node: Node) -> F:
        """A number of every row, NaN where it is unknown."""
        given = self.columns.signals if isinstance(node, Call) else self.columns.numbers
        return self._or_nothing(given.get(_name(node)), np.nan)  # type: ignore[no-any-return]

    def text(self, node: Node) -> Codes:
        """The codes of a text of every row."""
        name = _name(node)
        if name not in self._texts:
            self._texts[name] = self._coded(self.columns.texts.get(name))
        return self._texts[name]

    def truth(self, node: Node, wanted: bool) -> B:
        """Where a condition on single rows holds or fails."""
        name, columns = _name(node), self.columns
        if isinstance(node, Call) and node.name == "indicator":
            return self._indicated(name, wanted)
        if isinstance(node, Field) and node.name == "directed":
            return self._directed(wanted)
        given = columns.flags.get(name) if isinstance(node, Call) else columns.truths.get(name)
        if given is None:
            missing_flag = isinstance(node, Call) and not wanted  # what was not flagged is known not to be
            return np.full(self.size, missing_flag, dtype=np.bool_)
        return given if wanted else ~given

    def _directed(self, wanted: bool) -> B:
        directed = self.text(Field("target")) >= 0
        return directed if wanted else ~directed

    def _indicated(self, name: str, wanted: bool) -> B:
        judged, seen = self.columns.judged, self.columns.indicators.get(name)
        if judged is None:
            return np.zeros(self.size, dtype=np.bool_)
        if wanted:
            return judged & seen if seen is not None else np.zeros(self.size, dtype=np.bool_)
        return judged & ~seen if seen is not None else judged

    def _coded(self, text: Encoded | None) -> Codes:
        if text is None:
            return np.full(self.size, UNKNOWN, dtype=np.int32)
        own = np.array([*map(self.codes.__getitem__, text.names), UNKNOWN], dtype=np.int32)
        return own[text.codes]

    def _or_nothing(self, values: Any, nothing: float) -> Any:
        return np.full(self.size, nothing) if values is None else values


def table_of_columns(columns: Columns) -> Table:
    """The table of some columns: agent by agent (in the order of their codes), in the order of time."""
    source, agents = ColumnSource(columns), columns.texts["agent"]
    in_time = _in_time(columns)
    order, counts = _grouped(agents.codes if in_time is None else agents.codes[in_time], len(agents.names))
    order = order if in_time is None else in_time[order]
    bounds = np.concatenate([[0], np.cumsum(counts[counts > 0])])
    timed = np.ones(len(bounds) - 1, dtype=np.bool_)
    return Table(source, order, bounds, columns.times[order], timed, columns.read[order])


def pieces(table: Table, rows: int) -> list[Table]:
    """The table in pieces of whole timelines, each of about so many rows (more where one timeline has more)."""
    found, first = [], 0
    while first < len(table.timed):
        last = int(np.searchsorted(table.bounds, table.bounds[first] + rows, side="right")) - 1
        found.append(_piece(table, first, max(first + 1, last)))
        first = max(first + 1, last)
    return found


def _piece(table: Table, first: int, last: int) -> Table:
    low, high = int(table.bounds[first]), int(table.bounds[last])
    index = np.arange(low, high) if table.index is None else table.index[low:high]
    bounds = table.bounds[first : last + 1] - low
    return Table(table.source, index, bounds, table.times[low:high], table.timed[first:last], table.read[low:high])


def _in_time(columns: Columns) -> I | None:
    """The order of time and position; None where the rows have it."""
    times = columns.times
    positions = columns.positions if columns.positions is not None else np.zeros(len(times), dtype=np.int64)
    later = times[1:] > times[:-1]
    if (later | ((times[1:] == times[:-1]) & (positions[1:] >= positions[:-1]))).all():
        return None
    return np.lexsort((positions, times))


def _grouped(agents: Codes, codes: int) -> tuple[I, I]:
    """The rows agent by agent, in their order within each; and how many each has."""
    counts = np.bincount(agents, minlength=codes)
    if not machine(len(agents)):
        return np.argsort(agents, kind="stable"), counts
    order = np.empty(len(agents), dtype=np.int64)
    _place.at(len(agents))(agents, np.cumsum(counts) - counts, order)
    return order, counts


@kernel
def _place(agents, following, order):  # type: ignore[no-untyped-def]
    for row in range(len(agents)):
        order[following[agents[row]]] = row
        following[agents[row]] += 1


def _name(node: Node) -> str:
    if isinstance(node, Field):
        return node.name
    if isinstance(node, Call) and isinstance(node.arguments[0], Text):
        return node.arguments[0].value
    raise TypeError(f"{node} is no field of a row")
