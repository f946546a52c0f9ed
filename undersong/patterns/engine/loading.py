"""The timelines of packed histories: of their rows only those are loaded that somebody asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import overload

import numpy as np

from undersong.models import Row
from undersong.patterns.engine.packed import PackedSource
from undersong.patterns.engine.sums import I
from undersong.patterns.engine.table import RowTable
from undersong.patterns.partitions import Entry, Timeline, microseconds
from undersong.ranks import absolute_rows

Load = Callable[[str, Sequence[int]], Sequence[Row]]  # an agent, and places in its history → the rows there


class StaleError(Exception):
    """The rows of an agent are no longer those that were packed."""


class PackedTimelines(Sequence[Timeline]):
    """A timeline for each agent of a source; ``load`` gives rows of one by their places in its history.

    Whatever needs a row raises StaleError where it is no longer the one that was packed.
    """

    def __init__(self, source: PackedSource, table: RowTable, load: Load) -> None:
        self._source, self._table, self._load = source, table, load
        self._rows: dict[int, Row] = {}

    def __len__(self) -> int:
        return len(self._source.agents)

    def __getitem__(self, index: int) -> Timeline:  # type: ignore[override]
        """One agent's; none of its rows is loaded yet."""
        return self.among(self._table, index)

    def among(self, table: RowTable, index: int) -> Timeline:
        """One agent's, with the rows that a table has of it."""
        return _Timed(self._source.agents[index], None, _Entries(self, table, index))

    def fetch(self, rows: Iterable[int]) -> None:
        """Load rows by their places in the source, those of one agent in one go; known ones are not loaded again."""
        lacking: dict[int, list[int]] = {}
        for row in rows:
            if row not in self._rows:
                lacking.setdefault(int(self._source.owners[row]), []).append(row)
        for owner, wanted in lacking.items():
            self._fetch(owner, wanted)

    def _fetch(self, owner: int, wanted: Sequence[int]) -> None:
        agent, cells = self._source.agents[owner], self._source.cells[wanted]
        rows = absolute_rows(self._load(agent, self._source.places[wanted].tolist()))
        packed = list(zip(cells["time"].tolist(), cells["position"].tolist(), strict=True))
        if [(row.time and microseconds(row.time), row.position) for row in rows] != packed:
            raise StaleError(agent)
        self._rows.update(zip(wanted, rows, strict=True))

    def loaded(self) -> Iterator[Row]:
        """The rows that were loaded so far."""
        return iter(self._rows.values())

    def row(self, number: int) -> Row:
        """The row at a place of the source."""
        if number not in self._rows:
            self.fetch([number])
        return self._rows[number]


class _Timed(Timeline):
    """A timeline that has times: no row is loaded to tell."""

    __slots__ = ()

    @property
    def timed(self) -> bool:
        return True


class _Entries(Sequence[Entry]):
    """The entries of one agent's timeline."""

    def __init__(self, timelines: PackedTimelines, table: RowTable, index: int) -> None:
        self._timelines, self._table = timelines, table
        self._first, self._last = table.bounds[index : index + 2].tolist()

    def __len__(self) -> int:
        return int(self._last - self._first)

    @overload
    def __getitem__(self, place: int) -> Entry: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Entry]: ...
    def __getitem__(self, place: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(place, slice):
            return [self[each] for each in range(len(self))[place]]
        row = range(self._first, self._last)[place]
        number = row if self._table.index is None else int(self._table.index[row])
        return Entry(self._timelines.row(number), int(self._table.times[row]), row - self._first)

    def __iter__(self) -> Iterator[Entry]:
        self._timelines.fetch(in_source(self._table, np.arange(self._first, self._last)).tolist())
        return (self[place] for place in range(len(self)))


def in_source(table: RowTable, rows: I) -> I:
    """The places of a table's rows in its source."""
    return rows if table.index is None else table.index[rows]
