"""Permutations of one sequence: messages move over its places, and many orders are searched at once.

A place is a row's time, target, conversation, tier, ``observed`` and the unread messages around it. A message's traits,
indicators, signals and everything that the scan found in its text move together. The order of draw
``d`` depends on nothing but the key and ``d``: it sorts the places by SHAKE-256 of both, the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Call, Field, Node
from undersong.patterns.language.fields import MESSAGE_ATTRIBUTES, MESSAGE_FIELDS, Kind
from undersong.patterns.reference.partitions import Entry, Partition, Timeline
from undersong.patterns.vectorized.exact_sum import F, I
from undersong.patterns.vectorized.row_source import RowSource
from undersong.patterns.vectorized.run import MatchArrays, TableSearch
from undersong.patterns.vectorized.table import FieldSource, RowTable
from undersong.patterns.vectorized.vector_logic import B, Codes, Vectors

Permutations = npt.NDArray[np.intp]  # draws × rows: which row's words stand at each place
NOTHING = -np.inf  # the strength of a version without a match
GAVE_UP = np.inf  # and of one whose search gave up


def key_of(seed: int, purpose: str, rule: PatternRule, partition: Partition) -> bytes:
    """What all randomness about one rule on one sequence comes from."""
    parts = [seed, purpose, rule.hash, partition.key(rule.file.partition_by)]
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).digest()


def draw_permutations(key: bytes, first: int, count: int, rows: int, block: int = 1) -> Permutations:
    """The orders of draws ``first`` to ``first + count - 1``.

    With ``block`` above 1 runs of so many rows move as one and keep their inner order; the oldest rows that do not fill
    a block stay. Every order of the blocks is equally likely.
    """
    blocks = rows // block
    stay = rows - blocks * block
    if blocks == 0:
        return np.broadcast_to(np.arange(rows, dtype=np.intp), (count, rows))
    keys = (hashlib.shake_256(key + draw.to_bytes(8, "big")) for draw in range(first, first + count))
    numbers = b"".join(each.digest(8 * blocks) for each in keys)
    sorts = np.frombuffer(numbers, dtype=">u8").reshape(count, blocks).argsort(axis=1, kind="stable")
    moved = (sorts[:, :, None] * block + np.arange(block)).reshape(count, blocks * block) + stay
    fixed = np.broadcast_to(np.arange(stay), (count, stay))
    return np.concatenate([fixed, moved], axis=1).astype(np.intp)


def permuted(partition: Partition, order: Sequence[int]) -> Partition:
    """The sequence in another order: each place gets the words of the row that ``order`` names."""
    rows = []
    for entry, source in zip(partition.rows, order, strict=True):
        words = partition.rows[source].row
        moved = {name: getattr(words, name) for name in MESSAGE_ATTRIBUTES}
        rows.append(entry._replace(row=msgspec.structs.replace(entry.row, **moved)))
    return replaced(partition, tuple(rows))


def strongest_permuted(positions: SequencePositions, permutations: Permutations) -> F:
    """Of each order the strength of its strongest match, all at once; raises NotVectorizable where arrays do not do."""
    count = len(permutations)
    places = np.tile(np.arange(len(positions.entries)), (count, 1))
    words = places.copy()
    words[:, positions.own] = positions.own[permutations]
    combined_rows = CombinedRows(positions.source, words.ravel(), places.ravel())
    return positions.strongest(positions.find(combined_rows, count), count)


class SequencePositions:
    """The places of a sequence and of all rows around it that its rule looks at; ``own`` are those of its read rows."""

    def __init__(self, rule: PatternRule, partition: Partition) -> None:
        self.rule, self.partition = _as_chosen(rule), partition
        self.entries = tuple(_around(rule, partition))
        number = {entry.place: i for i, entry in enumerate(self.entries)}
        self.own = np.array([number[entry.place] for entry in partition.rows], dtype=np.int64)
        self.times = np.array([entry.time or 0 for entry in self.entries], dtype=np.int64)
        self.read = np.array([entry.read for entry in self.entries], dtype=np.bool_)

    @cached_property
    def source(self) -> RowSource:
        """The rows in their own order."""
        return RowSource([entry.row for entry in self.entries])

    def find(self, versions: FieldSource, count: int) -> MatchArrays:
        """The matches in ``count`` versions of the rows; raises NotVectorizable where arrays do not do.

        A version is a timeline, so ``timelines`` are their numbers. Matches of other sequences may be among them.
        """
        size = len(self.entries)
        timed = np.full(count, self.partition.timeline.timed)
        times, read = np.tile(self.times, count), np.tile(self.read, count)
        table = RowTable(versions, None, np.arange(count + 1) * size, times, timed, read)
        if "target" in self.rule.file.partition_by:
            table.targets = self._targets(table.targets)
        return TableSearch(table, Vectors(versions)).find(self.rule)

    def matches(self, matches: MatchArrays) -> I:
        """The numbers of the matches that lie in this sequence."""
        by = self.rule.file.partition_by
        selected = np.ones(matches.size, dtype=np.bool_)
        if "target" in by:
            selected &= matches.targets == self._code(self.partition.target)
        if "conversation" in by:
            selected &= matches.conversations == self._code(self._conversation)
        return np.flatnonzero(selected)

    def strongest(self, matches: MatchArrays, count: int) -> F:
        """The strength of each version's strongest match: NOTHING where there is none, GAVE_UP where the search did."""
        result = np.full(count, NOTHING)
        selected = self.matches(matches)
        np.maximum.at(result, matches.timelines[selected], _strengths(matches)[selected])
        result[matches.gave_up] = GAVE_UP
        return result

    def named(self, matches: MatchArrays, k: int) -> frozenset[str]:
        """The message ids of a match."""
        rows = slice(int(matches.offsets[k]), int(matches.offsets[k + 1]))
        places = matches.rows[rows][matches.bindings[rows] >= 0] % len(self.entries)
        return frozenset(self.entries[place].row.id for place in places.tolist())

    @property
    def _conversation(self) -> str | None:
        own, whole = self.partition.conversation, self.partition.timeline.conversation
        return whole if own is None else own

    def _code(self, text: str | None) -> int:
        return -1 if text is None else self.source.codes[text]

    def _targets(self, codes: Codes) -> Codes:
        """Everybody else as one: their own sequences are not asked for, and so there is one of them and not many."""
        own = self._code(self.partition.target)
        return np.where((codes >= 0) & (codes != own), own + 1, codes).astype(np.int32)


class CombinedRows:
    """Rows that are made of two: the words of one (``words``: its number) at the place of another (``places``)."""

    def __init__(self, rows: RowSource, words: I, places: I) -> None:
        self.rows, self.words, self.places = rows, words, places

    @property
    def size(self) -> int:
        """How many rows."""
        return len(self.words)

    @property
    def codes(self) -> Mapping[str, int]:
        """The code of each text."""
        return self.rows.codes

    def kind(self, node: Node) -> Kind:
        """What a field or a row function is."""
        return self.rows.kind(node)

    def number(self, node: Node) -> F:
        """A number of every row, NaN where it is unknown."""
        return np.asarray(self.rows.number(node)[self._of(node)])

    def text(self, node: Node) -> Codes:
        """The codes of a text of every row."""
        return np.asarray(self.rows.text(node)[self._of(node)])

    def truth(self, node: Node, wanted: bool) -> B:
        """Where a condition on single rows holds or fails."""
        return np.asarray(self.rows.truth(node, wanted)[self._of(node)])

    def _of(self, node: Node) -> I:
        if isinstance(node, Call):
            return self.words
        if not isinstance(node, Field):
            raise TypeError(f"{node} is no field of a row")
        return self.words if node.name in MESSAGE_FIELDS else self.places


def replaced(partition: Partition, rows: tuple[Entry, ...]) -> Partition:
    """The sequence with other rows at its places, in its timeline too."""
    entries = list(partition.timeline.entries)
    for entry in rows:
        entries[entry.place] = entry
    return partition._replace(rows=rows, timeline=partition.timeline._replace(entries=tuple(entries)))


def scope(rule: PatternRule, partition: Partition) -> Partition:
    """The sequence in the least timeline that the rule needs: without what the agent wrote elsewhere, unless a column
    looks there.
    """
    if looks_elsewhere(rule):
        return partition
    rows = tuple(entry._replace(place=place) for place, entry in enumerate(partition.rows))
    timeline = Timeline(partition.timeline.agent, partition.timeline.conversation, rows)
    return partition._replace(rows=rows, timeline=timeline)


def looks_elsewhere(rule: PatternRule) -> bool:
    """Whether a column looks at rows of the agent beyond the sequence."""
    return any(window.window.over != "partition" for column in rule.columns for window in column.windows)


@lru_cache(maxsize=256)
def _as_chosen(rule: PatternRule) -> PatternRule:
    """The rule for rows that its ``where`` has chosen already."""
    if rule.trees.where is None:
        return rule
    return msgspec.structs.replace(rule, trees=rule.trees._replace(where=None), where=None)


def _around(rule: PatternRule, partition: Partition) -> Iterator[Entry]:
    """The rows that the rule looks at, unread ones too: they are the gaps."""
    by, elsewhere = rule.file.partition_by, looks_elsewhere(rule)
    for entry in partition.timeline.entries:
        towards = "target" not in by or entry.row.target in (None, partition.target)
        inside = "conversation" not in by or partition.conversation in (None, entry.row.conversation)
        if elsewhere or (towards and inside):
            yield entry


def _strengths(matches: MatchArrays) -> F:
    """What ``strength_of`` says of each match."""
    values = matches.measures.get("strength")
    if values is None:
        return np.zeros(matches.size)
    if isinstance(values, tuple):
        return np.asarray(values[0], dtype=np.float64)
    return np.where(np.isnan(values), 0.0, np.clip(values, 0.0, 1.0))
