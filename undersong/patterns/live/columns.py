"""The rows of timelines that grow, as arrays: only what is new is read from rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias
from weakref import ref

import numpy as np
import numpy.typing as npt

from undersong.patterns.language.expressions import Field, Node, Window
from undersong.patterns.language.fields import Kind
from undersong.patterns.reference.partitions import Entry
from undersong.patterns.vectorized.earlier import ChangedSequences
from undersong.patterns.vectorized.exact_sum import F, NotVectorizable
from undersong.patterns.vectorized.layout import RowTable
from undersong.patterns.vectorized.row_source import RowSource
from undersong.patterns.vectorized.vector_logic import UNKNOWN, B, Codes


class GrowingArray:
    """An array that rows are added to, along its last axis; there is room, so that adding some copies no others.

    ``width`` is the number of rows on the axis before it, where there is one.
    """

    def __init__(self, dtype: npt.DTypeLike, *width: int) -> None:
        self.size, self._room = 0, np.empty((*width, 0), dtype=dtype)

    @property
    def values(self) -> npt.NDArray[Any]:
        """The values so far; they stay as they are until ``truncate``."""
        return self._room[..., : self.size]

    def append(self, values: npt.ArrayLike) -> None:
        """Add values."""
        fresh = np.asarray(values, dtype=self._room.dtype)
        size = self.size + fresh.shape[-1]
        if size > self._room.shape[-1]:
            room = np.empty((*self._room.shape[:-1], size + size // 4 + 16), dtype=self._room.dtype)
            room[..., : self.size] = self.values
            self._room = room
        self._room[..., self.size : size] = fresh
        self.size = size

    def truncate(self, size: int) -> None:
        """Forget all but the first values."""
        self.size = min(self.size, size)


Made: TypeAlias = Callable[[RowSource], npt.NDArray[Any]]  # the array of a source of rows


class GrowingColumns:
    """The fields of the rows of one timeline; ``codes`` number the texts of all that are searched together.

    ``sums`` are those of ``AgentSums`` at each row.
    """

    def __init__(self, codes: dict[str, int], windows: int = 0) -> None:
        self.entries: list[Entry] = []
        self.codes = codes
        self.sums = GrowingArray(np.float64, windows)
        self._times, self._read = GrowingArray(np.int64), GrowingArray(np.bool_)
        self._fields: dict[Field, tuple[Made, GrowingArray]] = {}
        self._conditions: dict[Any, GrowingArray] = {}
        self._latest: tuple[ref[RowSource], int, int] | None = None  # the source of the last rows, and where they begin

    @property
    def times(self) -> npt.NDArray[np.int64]:
        """The time of each row, in microseconds since 1970; 0 without one."""
        return self._times.values

    @property
    def read(self) -> B:
        """Which rows have scores."""
        return self._read.values

    def append(self, entries: Sequence[Entry], source: RowSource | None = None, first: int = 0) -> None:
        """Take the next rows of the timeline: those of a ``source`` from its ``first`` on, where one is given."""
        self.entries += entries
        self._times.append([entry.time or 0 for entry in entries])
        self._read.append([entry.read for entry in entries])
        self._latest = None if source is None else (ref(source), first, len(self.entries) - len(entries))
        if source is None:
            source = RowSource([entry.row for entry in entries], self.codes)
        for key, (made, array) in [*self._fields.items()]:
            try:
                array.append(made(source)[first : first + len(entries)])
            except NotVectorizable:
                del self._fields[key]  # who asks for it is told

    def truncate(self, size: int) -> None:
        """Forget all but the first rows."""
        del self.entries[size:]
        fields = (array for _, array in self._fields.values())
        for array in (self._times, self._read, *fields, *self._conditions.values()):
            array.truncate(size)
        self._latest = None

    def field(self, node: Field, made: Made) -> npt.NDArray[Any]:
        """A field of every row; only the first time it is read from all, then from those that are appended."""
        if node not in self._fields:
            values = made(RowSource([entry.row for entry in self.entries], self.codes))
            self._fields[node] = made, GrowingArray(values.dtype)
            self._fields[node][1].append(values)
        return self._fields[node][1].values

    def condition(self, key: Any, made: Made) -> npt.NDArray[Any]:
        """Something else of every row; what is new is read when it is asked for, since most conditions rarely are."""
        if key not in self._conditions:
            self._conditions[key] = GrowingArray(made(RowSource(())).dtype)
        array = self._conditions[key]
        if array.size < len(self.entries):
            array.append(self._unread(array.size, made))
        return array.values

    def _unread(self, size: int, made: Made) -> npt.NDArray[Any]:
        """What is to be read of the rows from a place on; other timelines may have asked the same of their source."""
        source = self._latest and self._latest[0]()
        if self._latest is None or source is None or self._latest[2] != size:
            return made(RowSource([entry.row for entry in self.entries[size:]], self.codes))
        first = self._latest[1]
        return made(source)[first : first + len(self.entries) - size]

    def text(self, name: str) -> Codes:
        """The codes of a text field of every row."""
        return self.field(Field(name), lambda source: source.text(Field(name)))


class JoinedColumns:
    """The columns of several timelines, one after the other, each from its row of ``firsts`` on."""

    def __init__(self, parts: Sequence[GrowingColumns], codes: Mapping[str, int], firsts: Sequence[int]) -> None:
        self._parts, self._codes, self._firsts = parts, codes, firsts

    @property
    def size(self) -> int:
        """How many rows."""
        return sum(len(part.entries) for part in self._parts) - sum(self._firsts)

    @property
    def codes(self) -> Mapping[str, int]:
        """The numbers of texts."""
        return self._codes

    def kind(self, node: Node) -> Kind:
        """What a field or a row function is."""
        return RowSource(()).kind(node)

    def number(self, node: Node) -> F:
        """A number of every row, NaN where it is unknown."""
        return self._joined(node, lambda source: source.number(node))  # type: ignore[no-any-return]

    def text(self, node: Node) -> Codes:
        """The codes of a text of every row."""
        return self._joined(node, lambda source: source.text(node))  # type: ignore[no-any-return]

    def truth(self, node: Node, wanted: bool) -> B:
        """Where a condition on single rows holds or fails."""
        return self._joined((node, wanted), lambda source: source.truth(node, wanted))  # type: ignore[no-any-return]

    def _joined(self, key: Any, made: Made) -> Any:
        arrays = [
            part.field(key, made) if isinstance(key, Field) else part.condition(key, made) for part in self._parts
        ]
        return joined_from(arrays, self._firsts)


def joined_from(arrays: Sequence[npt.NDArray[Any]], firsts: Sequence[int]) -> npt.NDArray[Any]:
    """Some arrays as one, of each what is there from a place on."""
    cut = [array[first:] if first else array for array, first in zip(arrays, firsts, strict=True)]
    return cut[0] if len(cut) == 1 else np.concatenate(cut)


def joined_table(
    parts: Sequence[GrowingColumns],
    timed: Sequence[bool],
    firsts: Sequence[int],
    windows: Callable[[Window], int | None],
) -> RowTable:
    """The table of some timelines, each from its row of ``firsts`` on; ``timed`` says of each whether it has times.

    ``windows`` gives the number of one that their sums hold, None for another one.
    """

    def values(window: Window) -> F | None:
        number = windows(window)
        return None if number is None else joined_from([part.sums.values[number] for part in parts], firsts)

    sizes = [len(part.entries) - first for part, first in zip(parts, firsts, strict=True)]
    return RowTable(
        JoinedColumns(parts, parts[0].codes, firsts),
        None,
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        joined_from([part.times for part in parts], firsts),
        np.array(timed, dtype=np.bool_),
        joined_from([part.read for part in parts], firsts),
        values,
    )


def changed_sequences(
    parts: Sequence[GrowingColumns], targets: Sequence[Collection[str] | None], firsts: Sequence[int]
) -> ChangedSequences:
    """The sequences towards ``targets``, one collection for each timeline; None: all of its sequences."""
    rows = np.ones(sum(len(part.entries) for part in parts) - sum(firsts), dtype=np.bool_)
    first = 0
    for part, toward, cut in zip(parts, targets, firsts, strict=True):
        last = first + len(part.entries) - cut
        if toward is not None:
            codes = part.text("target")[cut:]
            rows[first:last] = np.logical_or.reduce([codes == code for code in (UNKNOWN, *map(part.codes.get, toward))])
        first = last
    return ChangedSequences(rows, np.array([toward is None for toward in targets], dtype=np.bool_))
