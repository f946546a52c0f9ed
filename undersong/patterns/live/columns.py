"""The rows of timelines that grow, as arrays: only what is new is read from rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from undersong.patterns.language.expressions import Node
from undersong.patterns.language.fields import Kind
from undersong.patterns.reference.partitions import Entry
from undersong.patterns.vectorized.exact_sum import F
from undersong.patterns.vectorized.layout import RowTable
from undersong.patterns.vectorized.row_source import RowSource
from undersong.patterns.vectorized.vector_logic import B, Codes


class GrowingColumns:
    """The fields of the rows of one timeline; ``codes`` number the texts of all that are searched together."""

    def __init__(self, codes: dict[str, int]) -> None:
        self.entries: list[Entry] = []
        self.codes = codes
        self.times, self.read = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
        self._arrays: dict[Any, Any] = {}

    def append(self, entries: Sequence[Entry]) -> None:
        """Take the next rows of the timeline."""
        self.entries += entries
        self.times = np.append(self.times, np.array([entry.time or 0 for entry in entries], dtype=np.int64))
        self.read = np.append(self.read, np.array([entry.read for entry in entries], dtype=np.bool_))

    def truncate(self, size: int) -> None:
        """Forget all but the first rows."""
        del self.entries[size:]
        self.times, self.read = self.times[:size], self.read[:size]
        self._arrays = {key: array[:size] for key, array in self._arrays.items()}

    def array(self, key: Any, made: Callable[[RowSource], Any]) -> Any:
        """An array over all rows; ``made`` gives that of a source of rows, and is asked about the new ones alone."""
        array = self._arrays.get(key)
        size = 0 if array is None else len(array)
        if array is None or size < len(self.entries):
            fresh = made(RowSource([entry.row for entry in self.entries[size:]], self.codes))
            array = self._arrays[key] = fresh if array is None else np.concatenate([array, fresh])
        return array


class JoinedColumns:
    """The columns of several timelines, one after the other."""

    def __init__(self, parts: Sequence[GrowingColumns], codes: Mapping[str, int]) -> None:
        self._parts, self._codes = parts, codes

    @property
    def size(self) -> int:
        """How many rows."""
        return sum(len(part.entries) for part in self._parts)

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

    def _joined(self, key: Any, made: Callable[[RowSource], Any]) -> Any:
        arrays = [part.array(key, made) for part in self._parts]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def joined_table(parts: Sequence[GrowingColumns], timed: Sequence[bool]) -> RowTable:
    """The table of some timelines; ``timed`` says of each whether it has times."""
    return RowTable(
        JoinedColumns(parts, parts[0].codes),
        None,
        np.concatenate([[0], np.cumsum([len(part.entries) for part in parts])]).astype(np.int64),
        np.concatenate([part.times for part in parts]),
        np.array(timed, dtype=np.bool_),
        np.concatenate([part.read for part in parts]),
    )
