"""One sequence in many versions, searched at once: the places stay, what stands there differs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property, lru_cache

import msgspec
import numpy as np

from undersong.models import DIMENSIONS, NEGATIVE_TRAITS, TRAITS
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Call, Field, Node
from undersong.patterns.language.fields import Kind
from undersong.patterns.reference.partitions import Entry, Partition
from undersong.patterns.vectorized.exact_sum import F, I
from undersong.patterns.vectorized.row_source import RowSource
from undersong.patterns.vectorized.run import MatchArrays, TableSearch
from undersong.patterns.vectorized.table import FieldSource, RowTable
from undersong.patterns.vectorized.vector_logic import B, Codes, Vectors

NOTHING = -np.inf  # the strength of a version without a match
GAVE_UP = np.inf  # and of one whose search gave up


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
        """The rows as they stand."""
        return RowSource([entry.row for entry in self.entries])

    def find(self, rows: Vectors, source: FieldSource, index: I | None, count: int) -> MatchArrays:
        """The matches in ``count`` versions; ``index`` as in Table. Raises Unsuited where arrays do not do.

        A version is a timeline, so ``timelines`` are their numbers. Matches of other sequences may be among them.
        """
        size = len(self.entries)
        timed = np.full(count, self.partition.timeline.timed)
        times, read = np.tile(self.times, count), np.tile(self.read, count)
        table = RowTable(source, index, np.arange(count + 1) * size, times, timed, read)
        if "target" in self.rule.file.partition_by:
            table.targets = self._targets(table.targets)
        return TableSearch(table, rows).find(self.rule)

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

    def __init__(self, rows: RowSource, words: I, places: I, message_fields: Collection[str]) -> None:
        self.rows, self.words, self.places, self.message_fields = rows, words, places, message_fields

    @property
    def size(self) -> int:
        """How many cards."""
        return len(self.words)

    @property
    def codes(self) -> Mapping[str, int]:
        """The code of each text."""
        return self.rows.codes

    def kind(self, node: Node) -> Kind:
        """What a field or a row function is."""
        return self.rows.kind(node)

    def number(self, node: Node) -> F:
        """A number of every card, NaN where it is unknown."""
        return np.asarray(self.rows.number(node)[self._of(node)])

    def text(self, node: Node) -> Codes:
        """The codes of a text of every card."""
        return np.asarray(self.rows.text(node)[self._of(node)])

    def truth(self, node: Node, wanted: bool) -> B:
        """Where a condition on single cards holds or fails."""
        return np.asarray(self.rows.truth(node, wanted)[self._of(node)])

    def _of(self, node: Node) -> I:
        return self.words if isinstance(node, Call) or _name(node) in self.message_fields else self.places


class NoisyRows:
    """Some rows again and again, each time with other traits: ``traits[t]`` has those of all times, one by one."""

    def __init__(self, rows: RowSource, count: int, traits: Mapping[str, F]) -> None:
        self.rows, self.count, self.traits = rows, count, traits

    @property
    def size(self) -> int:
        """How many rows of all times together."""
        return self.rows.size * self.count

    @property
    def codes(self) -> Mapping[str, int]:
        """The code of each text."""
        return self.rows.codes

    def kind(self, node: Node) -> Kind:
        """What a field or a row function is."""
        return self.rows.kind(node)

    def number(self, node: Node) -> F:
        """A number of every row, NaN where it is unknown."""
        if isinstance(node, Field) and node.name in TRAITS:
            return self.traits[node.name]
        if isinstance(node, Field) and node.name in DIMENSIONS:
            return self._dimension(node.name)
        return np.tile(self.rows.number(node), self.count)

    def text(self, node: Node) -> Codes:
        """The codes of a text of every row."""
        return np.tile(self.rows.text(node), self.count)

    def truth(self, node: Node, wanted: bool) -> B:
        """Where a condition on single rows holds or fails."""
        return np.tile(self.rows.truth(node, wanted), self.count)

    def _dimension(self, name: str) -> F:
        """As ``fields.dimension``: the same sum in the same order."""
        total = np.zeros(self.size)
        for trait in DIMENSIONS[name]:
            total = total + (1 - self.traits[trait] if trait in NEGATIVE_TRAITS else self.traits[trait])
        return total / 4


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


def _name(node: Node) -> str:
    if not isinstance(node, Field):
        raise TypeError(f"{node} is no field of a row")
    return node.name
