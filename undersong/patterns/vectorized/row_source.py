"""Row objects through the engine: the same ``SearchResult`` as the reference gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from undersong.models import Row
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Call, Field, Node, Text
from undersong.patterns.language.fields import FIELDS, ROW_FUNCTIONS, Kind
from undersong.patterns.language.row_pattern import ANY
from undersong.patterns.reference import search as reference
from undersong.patterns.reference.matcher import STEPS
from undersong.patterns.reference.partitions import Entry, SequenceAddress, Timeline
from undersong.patterns.reference.search import Match, SearchResult
from undersong.patterns.vectorized.aggregates import value_of
from undersong.patterns.vectorized.earlier import NOTHING_KNOWN, EarlierResults
from undersong.patterns.vectorized.exact_sum import F, I, NotVectorizable
from undersong.patterns.vectorized.layout import RowTable, ranges
from undersong.patterns.vectorized.packed import PackedTimelines, in_source
from undersong.patterns.vectorized.run import MatchArrays, TableSearch
from undersong.patterns.vectorized.vector_logic import UNKNOWN, B, Codes, Vectors

FEW = 500  # rows; arrays cost about a millisecond a rule, however few rows they hold


def search(rule: PatternRule, timelines: Sequence[Timeline], *, steps: int = STEPS) -> SearchResult:
    """Every match of a rule, as ``search.search`` finds them, through the engine however few the rows are."""
    return TimelineSearch(timelines, steps=steps, few=0).search(rule)


class SearchesByRule(Protocol):
    """The rows that each rule is run over: rules that ask for what other rules find see it."""

    def of(self, _rule: PatternRule) -> TimelineSearch:
        """The rows for a rule."""
        ...


class TimelineSearch:
    """Some timelines, to be searched with one rule after the other; what rules have in common is done once.

    Up to ``few`` rows are left to the reference: there it is the quicker one. ``table`` holds the timelines' rows where
    they are arrays already; only timelines with a match are then asked for. ``paths`` are matches of earlier searches.
    """

    def __init__(
        self,
        timelines: Sequence[Timeline],
        *,
        steps: int = STEPS,
        few: int = FEW,
        table: RowTable | None = None,
        earlier: EarlierResults = NOTHING_KNOWN,
    ) -> None:
        self.timelines, self.steps, self._table, self._earlier = timelines, steps, table, earlier
        self.few = table is None and sum(len(timeline.entries) for timeline in self.timelines) <= few

    @cached_property
    def run(self) -> TableSearch:
        """The rows as arrays."""
        table = self._table or table_of(self.timelines)
        return TableSearch(table, Vectors(table.source), self._earlier)

    def of(self, _rule: PatternRule) -> TimelineSearch:
        """The same rows for every rule."""
        return self

    def search(self, rule: PatternRule) -> SearchResult:
        """Every match of a rule; one that is beyond the engine is left to the reference."""
        if self.few:
            return reference.search(rule, self.timelines, steps=self.steps)
        try:
            result = self.run.find(rule, steps=self.steps)
        except (NotVectorizable, FloatingPointError):
            return reference.search(rule, self.timelines, steps=self.steps)
        gave_up = tuple(self.timelines[index].agent for index in sorted(result.gave_up.tolist()))
        return SearchResult(tuple(sorted(self._matches(rule, result), key=_place)), result.sequences, gave_up)

    def _matches(self, rule: PatternRule, result: MatchArrays) -> Iterator[Match]:
        if isinstance(self.timelines, PackedTimelines):
            self.timelines.fetch(in_source(result.table, _named(result)).tolist())
        by_index: dict[int, Timeline] = {}
        for k in range(result.size):
            index = int(result.timelines[k])
            if index not in by_index:
                by_index[index] = self._timeline(rule, result, index)
            yield self._match(rule, result, k, by_index[index], self._begin(result, index))

    def _timeline(self, rule: PatternRule, result: MatchArrays, index: int) -> Timeline:
        """The rows that the rule saw."""
        if isinstance(self.timelines, PackedTimelines):
            return self.timelines.among(result.table, index)
        return reference.filtered(rule, self.timelines[index])

    def _begin(self, result: MatchArrays, index: int) -> int:
        """The row of the table that the first entry of a timeline is, or would be."""
        firsts = self._earlier.firsts
        return int(result.table.bounds[index]) - (firsts[index] if firsts is not None else 0)

    def _match(self, rule: PatternRule, result: MatchArrays, k: int, timeline: Timeline, begin: int) -> Match:
        first, last = int(result.offsets[k]), int(result.offsets[k + 1])
        entries = [timeline.entries[row - begin] for row in result.rows[first:last].tolist()]
        bound = [ANY if index < 0 else rule.names[index] for index in result.bindings[first:last].tolist()]
        target = None if result.targets[k] < 0 else next(e.row.target for e in entries if e.row.target is not None)
        conversation = None if result.conversations[k] < 0 else entries[0].row.conversation
        address = SequenceAddress(timeline, target, timeline.conversation or conversation)
        unread = tuple(entry.row.id for entry in _between(rule, result, k, timeline, entries, begin))
        measures = {name: value_of(values, k) for name, values in result.measures.items()}
        stages = tuple(zip(bound, entries, strict=True))
        return Match(address, stages, unread, measures, int(result.open_through[k]))


def _place(match: Match) -> tuple[str, str, str, str, int]:
    """The order of the reference: by timeline, conversation, target and first row, whatever order their codes have."""
    partition = match.partition
    named = partition.timeline.agent, partition.timeline.conversation or "", partition.conversation or ""
    return *named, "" if partition.target is None else f"to {partition.target}", match.stages[0][1].place


def _named(result: MatchArrays) -> I:
    """The rows that matches name: their own, and unread ones between them."""
    after = np.flatnonzero(result.holes)
    between = ranges(result.rows[after - 1] + 1, result.rows[after])
    return np.unique(np.concatenate([result.rows, between[~result.table.read[between]]]))


def _between(
    rule: PatternRule, result: MatchArrays, k: int, timeline: Timeline, entries: Sequence[Entry], begin: int
) -> Iterator[Entry]:
    """The unread rows of the same sequence between the rows of a match."""
    holes = result.holes[int(result.offsets[k]) : int(result.offsets[k + 1])]
    by, first = rule.file.partition_by, entries[0].row
    target = next((entry.row.target for entry in entries if entry.row.target is not None), None)
    for i in np.flatnonzero(holes).tolist():
        for place in range(entries[i - 1].place + 1, entries[i].place):
            if result.table.read[begin + place]:
                continue
            entry = timeline.entries[place]
            apart = "target" in by and entry.row.target not in (None, target)
            if not apart and ("conversation" not in by or entry.row.conversation == first.conversation):
                yield entry


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
    """Rows, and the arrays that were made of them so far.

    ``codes`` number the texts; None: those of these rows, in alphabetical order. A dictionary that is given may serve
    several sources, and grows.
    """

    def __init__(self, rows: Sequence[Row], codes: dict[str, int] | None = None) -> None:
        self.rows, self._codes = rows, codes
        self._known: dict[Node, Any] = {}

    @property
    def size(self) -> int:
        """How many rows."""
        return len(self.rows)

    @cached_property
    def codes(self) -> dict[str, int]:
        """Every text of every text field with its number."""
        if self._codes is not None:
            return self._codes
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
            texts = self._values(node)
            if self._codes is not None:
                for text in dict.fromkeys(texts):
                    if text is not None:
                        codes.setdefault(text, len(codes))
            values = [UNKNOWN if text is None else codes[text] for text in texts]
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
