"""Permutations of one sequence: messages move over its places, and many orders are searched at once.

A place is a row's time, target, conversation, tier, ``observed`` and the unread messages around it. A message's traits,
indicators, signals and everything that the scan found in its text move together. The order of draw
``d`` depends on nothing but the key and ``d``: it sorts the places by SHAKE-256 of both, the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Call, Field, Node, Window, walk
from undersong.patterns.language.fields import MESSAGE_ATTRIBUTES, MESSAGE_FIELDS, Kind
from undersong.patterns.reference.partitions import Entry, Partition, Timeline
from undersong.patterns.reference.search import Match, search_partition
from undersong.patterns.vectorized.exact_sum import F, I, NotVectorizable
from undersong.patterns.vectorized.layout import FieldSource, RowTable, picked, ranges
from undersong.patterns.vectorized.row_source import RowSource
from undersong.patterns.vectorized.run import MatchArrays, TableSearch
from undersong.patterns.vectorized.vector_logic import UNKNOWN, B, Codes, Vectors

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
        rows.append(msgspec.structs.replace(entry, row=msgspec.structs.replace(entry.row, **moved)))
    return replaced(partition, tuple(rows))


class SequenceBatch:
    """Some sequences of one rule, with the rows around them that it looks at, as one source of rows.

    ``entries`` are the rows of one sequence after the other, ``own`` the places in them of each sequence's read rows.
    """

    def __init__(self, rule: PatternRule, partitions: Sequence[Partition]) -> None:
        self.rule, self.partitions = _as_chosen(rule), partitions
        around = [tuple(_around(rule, partition)) for partition in partitions]
        self.sizes = np.array([len(entries) for entries in around], dtype=np.int64)
        self.first = np.cumsum(self.sizes) - self.sizes
        self.entries = tuple(entry for entries in around for entry in entries)
        self.own = [self._own(*parts) for parts in zip(partitions, around, self.first.tolist(), strict=True)]
        self.times = np.array([entry.time or 0 for entry in self.entries], dtype=np.int64)
        self.read = np.array([entry.read for entry in self.entries], dtype=np.bool_)
        self.timed = np.array([partition.timeline.timed for partition in partitions], dtype=np.bool_)

    @staticmethod
    def _own(partition: Partition, around: Sequence[Entry], first: int) -> I:
        number = {entry.place: first + i for i, entry in enumerate(around)}
        return np.array([number[entry.place] for entry in partition.rows], dtype=np.int64)

    @cached_property
    def source(self) -> RowSource:
        """The rows in their own order."""
        return RowSource([entry.row for entry in self.entries])

    def places(self, owners: I) -> I:
        """The rows of some versions, as places in ``entries``; ``owners`` are the numbers of their sequences."""
        return ranges(self.first[owners], self.first[owners] + self.sizes[owners])

    @cached_property
    def vectors(self) -> Vectors:
        """Expressions over the rows in their own order."""
        return Vectors(self.source)

    def find(self, versions: FieldSource, vectors: Vectors, owners: I, places: I) -> BatchMatches:
        """The matches in some versions of the sequences; raises NotVectorizable where arrays do not do.

        Each version is a timeline with as many rows as its sequence has around it; ``vectors``: their expressions.
        """
        bounds = np.concatenate([[0], np.cumsum(self.sizes[owners])])
        table = RowTable(versions, None, bounds, self.times[places], self.timed[owners], self.read[places])
        if "target" in self.rule.file.partition_by:
            table.targets = self._targets(table.targets, owners)
        arrays = TableSearch(table, vectors).find(self.rule)
        return BatchMatches(arrays, self._inside(arrays, owners), places)

    def strengths(self, matches: BatchMatches, count: int) -> F:
        """The strength of each version's strongest match: NOTHING where there is none, GAVE_UP where the search did."""
        result = np.full(count, NOTHING)
        np.maximum.at(result, matches.arrays.timelines[matches.inside], _strengths(matches.arrays)[matches.inside])
        result[matches.arrays.gave_up] = GAVE_UP
        return result

    def named(self, matches: BatchMatches) -> list[frozenset[str]]:
        """The message ids of each match inside, all at once: a batch has many small ones."""
        arrays = matches.arrays
        bound = arrays.bindings >= 0
        ids = [self._ids[place] for place in matches.places[arrays.rows[bound]].tolist()]
        ends = np.concatenate([[0], np.cumsum(bound)])[arrays.offsets]
        first, last = ends[matches.inside].tolist(), ends[matches.inside + 1].tolist()
        return [frozenset(ids[start:end]) for start, end in zip(first, last, strict=True)]

    @cached_property
    def _ids(self) -> list[str]:
        return [entry.row.id for entry in self.entries]

    def _inside(self, arrays: MatchArrays, owners: I) -> I:
        by, owner = self.rule.file.partition_by, owners[arrays.timelines]
        selected = np.ones(arrays.size, dtype=np.bool_)
        if "target" in by:
            selected &= arrays.targets == self._target_codes[owner]
        if "conversation" in by:
            selected &= arrays.conversations == self._conversation_codes[owner]
        return np.flatnonzero(selected)

    @cached_property
    def _target_codes(self) -> Codes:
        return self._codes([partition.target for partition in self.partitions])

    @cached_property
    def _conversation_codes(self) -> Codes:
        own = ((each.conversation, each.timeline.conversation) for each in self.partitions)
        return self._codes([whole if part is None else part for part, whole in own])

    def _codes(self, texts: Sequence[str | None]) -> Codes:
        return np.array([UNKNOWN if text is None else self.source.codes[text] for text in texts], dtype=np.int32)

    def _targets(self, codes: Codes, owners: I) -> Codes:
        """Everybody else as one: their own sequences are not asked for, and so there is one of them and not many."""
        own = np.repeat(self._target_codes[owners], self.sizes[owners])
        return np.where((codes >= 0) & (codes != own), own + 1, codes).astype(np.int32)


class BatchMatches(NamedTuple):
    """Matches in versions of sequences: ``inside`` are the numbers of those that lie in the sequences themselves, and
    ``places`` the rows of the versions (``SequenceBatch.places``).
    """

    arrays: MatchArrays
    inside: I
    places: I


Strengths = dict[int, F]  # of some sequences, by their numbers: the strongest match of each order


def strongest_permuted(batch: SequenceBatch, permutations: Mapping[int, Permutations]) -> Strengths:
    """The strengths of all orders of all sequences at once; raises NotVectorizable where arrays do not do."""
    counts = [len(orders) for orders in permutations.values()]
    owners = np.repeat(np.array([*permutations], dtype=np.int64), counts)
    places = batch.places(owners)
    words, first = places.copy(), 0
    for number, orders in permutations.items():
        last = first + int(batch.sizes[number]) * len(orders)
        own = batch.own[number]
        words[first:last].reshape(len(orders), -1)[:, own - batch.first[number]] = own[orders]
        first = last
    versions = CombinedRows(batch.source, words, places)
    matches = batch.find(versions, _MovedVectors(versions, batch.vectors), owners, places)
    strengths = batch.strengths(matches, len(owners))
    return dict(zip(permutations, np.split(strengths, np.cumsum(counts)[:-1]), strict=True))


def strongest_searched(rule: PatternRule, partition: Partition, orders: Permutations) -> F:
    """The strengths of the orders of a sequence, one search after another."""
    scoped = scope(rule, partition)
    results = (search_partition(rule, permuted(scoped, order)) for order in orders.tolist())
    return np.array(
        [GAVE_UP if each.gave_up else max(map(strength_of, each.matches), default=NOTHING) for each in results]
    )


def strength_of(match: Match) -> float:
    """The strength that a finding carries: 0 to 1, and 0 where it could not be computed."""
    value = match.measures.get("strength")
    return min(1.0, max(0.0, float(value))) if isinstance(value, int | float) else 0.0


T = TypeVar("T")
R = TypeVar("R")


def together_or_apart(
    sequences: Sequence[T], together: Callable[[Sequence[T]], list[R]], searched: Callable[[T], R]
) -> list[R]:
    """What arrays say of all sequences together; where they do not do, of one by itself, or what the reference says."""
    try:
        return together(sequences) if sequences else []
    except (NotVectorizable, FloatingPointError):
        if len(sequences) == 1:
            return [searched(sequences[0])]
    return [result for each in sequences for result in together_or_apart([each], together, searched)]


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


class _MovedVectors(Vectors):
    """Expressions over moved rows: what a message alone tells is worked out before it moves, and goes along."""

    def __init__(self, versions: CombinedRows, unmoved: Vectors) -> None:
        super().__init__(versions)
        self.versions, self.unmoved = versions, unmoved

    def once(self, what: str, node: Any, work: Callable[[Any], Any]) -> Any:
        """What ``work`` makes of a node."""
        if not all(_of_message(part) for part in (node if what == "bits" else (node,)) if part is not None):
            return super().once(what, node, work)
        return super().once(what, node, lambda part: self._moved(getattr(self.unmoved, what)(part)))

    def _moved(self, values: Any) -> Any:
        return picked(values, self.versions.words) if np.ndim(values) else values


@lru_cache(maxsize=4096)
def _of_message(node: Node) -> bool:
    """Whether an expression asks for nothing of a row but the words that move."""
    fields = [part for part in walk(node) if isinstance(part, Field)]
    return all(part.name in MESSAGE_FIELDS for part in fields) and not any(
        isinstance(part, Window) for part in walk(node)
    )


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
    rows = tuple(msgspec.structs.replace(entry, place=place) for place, entry in enumerate(partition.rows))
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
