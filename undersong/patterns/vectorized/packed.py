"""Packed rows as a source: histories as stores keep them for sweeps, no row object is made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt

from undersong.models import DIMENSIONS, TRAITS, Row
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Call, Field, Node, Text, walk
from undersong.patterns.language.fields import FIELDS, Kind
from undersong.patterns.language.inputs import NEVER_MISSING
from undersong.patterns.reference.partitions import Entry, Timeline
from undersong.patterns.vectorized.dimensions import dimension_of
from undersong.patterns.vectorized.exact_sum import F, I, counts, mean, running
from undersong.patterns.vectorized.layout import RowTable
from undersong.patterns.vectorized.vector_logic import UNKNOWN, B, Codes
from undersong.rows.binary import (
    BRANCH,
    COUNTS,
    FLAGS,
    JUDGED,
    LAYOUT,
    NO_COUNT,
    NO_SCORE,
    RANK,
    SAMPLED,
    TEXTS,
    THOUSAND,
    key,
    microseconds,
)
from undersong.rows.corpus_scales import absolute_rows

CELLS = np.dtype(
    [("time", "<i8"), ("target", "<u8"), ("conversation", "<u8"), ("position", "<i4"), ("traits", "<u2", len(TRAITS))]
    + [(name, "u1") for name in (*TEXTS, *COUNTS, "latency_drop", "bits")]
    + [("flags", "<u2")]
)
assert CELLS.itemsize == LAYOUT.size
_NAMES = ("target", "conversation")
_STORED_FIELDS = frozenset(
    {*TRAITS, *DIMENSIONS, *TEXTS, *COUNTS, *_NAMES, "agent", "position", "sampled", "latency_drop"}
)
DECIDABLE_INPUTS = _STORED_FIELDS | {"directed", "indicators"}  # needs of which ``given`` says whether they are met
_LEVELS = np.arange(NO_SCORE + 1) / THOUSAND
_LEVELS[NO_SCORE] = np.nan
SCORED = TEXTS["state"].index("scored") + 1


def readable(rule: PatternRule) -> bool:
    """Whether packed rows hold all that a rule asks for."""
    trees = rule.trees
    parts = [*trees.define, *trees.columns.values(), *trees.measures.values(), *trees.having]
    parts += [tree for tree in (trees.where, trees.until) if tree is not None]
    flags = {_name(part) for tree in parts for part in walk(tree) if isinstance(part, Call) and part.name == "flag"}
    return flags <= set(FLAGS) and rule.needs <= DECIDABLE_INPUTS - {"indicators"}


class PackedSource:
    """The fields of packed rows; ``owners`` is the agent of each, ``places`` are theirs in the agents' histories."""

    def __init__(self, cells: npt.NDArray[np.void], agents: Sequence[str], owners: I, places: I) -> None:
        self.cells, self.agents, self.owners, self.places = cells, agents, owners, places
        self._bits = np.ascontiguousarray(cells["bits"])
        self.read: B = cells["state"] == SCORED
        self._scores: dict[str, F] = {}
        self._available: dict[str, bool] = {}

    @property
    def size(self) -> int:
        """How many rows."""
        return len(self.cells)

    @property
    def ranks(self) -> bool:
        """Whether the scores of some read row are ranks."""
        return bool((self.read & (self._bits & RANK > 0)).any())

    def available(self, wanted: Collection[str]) -> frozenset[str]:
        """As ``inputs.given``; what packed rows cannot tell is left out."""
        for name in wanted:
            if name not in self._available:
                self._available[name] = self._gives(name)
        return frozenset(name for name in wanted if self._available[name])

    @cached_property
    def codes(self) -> Mapping[str, int]:
        """The code of each text. They are in the order of keys, not of the alphabet."""
        return _KeyCodes(self._keys)

    def kind(self, node: Node) -> Kind:
        """What a field is."""
        return "boolean" if isinstance(node, Call) else FIELDS[_field(node)].kind

    def number(self, node: Node) -> F:
        """A number of every row, NaN where it is unknown."""
        name = _field(node)
        if name not in self._scores:
            self._scores[name] = self._number(name)
        return self._scores[name]

    def text(self, node: Node) -> Codes:
        """The codes of a text of every row."""
        name = _field(node)
        if name == "agent":
            own = np.searchsorted(self._keys, np.array([key(agent) for agent in self.agents], dtype=np.uint64))
            return own.astype(np.int32)[self.owners]
        if name in _NAMES:
            return self._named[name]
        codes = [UNKNOWN, *(int(np.searchsorted(self._keys, np.uint64(key(text)))) for text in TEXTS[name])]
        return np.asarray(np.array(codes, dtype=np.int32)[self.cells[name]])

    def truth(self, node: Node, wanted: bool) -> B:
        """Where a condition on single rows holds or fails."""
        if isinstance(node, Call):
            flagged = self.cells["flags"] & (1 << FLAGS.index(_name(node))) > 0
            return flagged if wanted else ~flagged
        name = _field(node)
        if name == "latency_drop":
            return np.asarray(self.cells[name] == (2 if wanted else 1))
        holds = self.cells["target"] > 0 if name == "directed" else self._bits & SAMPLED > 0
        return holds if wanted else ~holds

    @cached_property
    def balances(self) -> list[dict[str, float]]:
        """Each agent's mean per dimension over its read rows, as ``findings.Balance`` has them."""
        means_by_agent: list[dict[str, float]] = [{} for _ in self.agents]
        bounds = np.searchsorted(self.owners, np.arange(len(self.agents) + 1))
        for name in DIMENSIONS:
            values = self.number(Field(name))
            present = self.read & ~np.isnan(values)
            number = np.diff(counts(present)[bounds])
            sums = running(np.where(present, values, 0.0))
            means = mean(sums.at(bounds[1:]) - sums.at(bounds[:-1]), number)
            for place in np.flatnonzero(number).tolist():
                means_by_agent[place][name] = float(means[place])
        return means_by_agent

    @cached_property
    def _keys(self) -> npt.NDArray[np.uint64]:
        """The key of every code, ascending."""
        few = [key(text) for text in (*self.agents, *(text for texts in TEXTS.values() for text in texts))]
        all_keys = np.unique(
            np.concatenate([*(keys for keys, _ in self._names.values()), np.array(few, dtype=np.uint64)])
        )
        return all_keys[all_keys > 0]

    @cached_property
    def _names(self) -> dict[str, tuple[npt.NDArray[np.uint64], I]]:
        """The keys of each text with a key, ascending, and the place of every row's among them."""
        return {name: np.unique(np.ascontiguousarray(self.cells[name]), return_inverse=True) for name in _NAMES}

    @cached_property
    def _named(self) -> dict[str, Codes]:
        codes_by_name = {}
        for name, (keys, places) in self._names.items():
            codes = np.where(keys == 0, UNKNOWN, np.searchsorted(self._keys, keys)).astype(np.int32)
            codes_by_name[name] = codes[places]
        return codes_by_name

    @cached_property
    def _traits(self) -> npt.NDArray[np.uint16]:
        """The scores of each trait in thousandths; ranks are not told."""
        scores = np.ascontiguousarray(self.cells["traits"].T)
        ranks = self._bits & RANK > 0
        if ranks.any():
            scores[:, ranks] = NO_SCORE
        return scores

    def _number(self, name: str) -> F:
        if name in DIMENSIONS:
            return dimension_of({trait: self.number(Field(trait)) for trait in DIMENSIONS[name]})
        if name in COUNTS:
            number = self.cells[name]
            return np.where(number == NO_COUNT, np.nan, number.astype(np.float64))
        if name == "position":
            return self.cells[name].astype(np.float64)
        return np.asarray(_LEVELS[self._traits[TRAITS.index(name)]])

    def _gives(self, name: str) -> bool:
        if name in NEVER_MISSING:
            return True
        if name == "indicators":
            return bool((self.read & (self._bits & JUDGED > 0)).any())
        if name == "tier":
            has_tier = (self.cells["tier"] > 0) | (self.cells["observed"] != TEXTS["observed"].index("unknown") + 1)
            return bool((self.read & has_tier).any())
        if name not in _STORED_FIELDS:
            return False
        if name in TEXTS or name == "latency_drop":
            return bool((self.read & (self.cells[name] > 0)).any())
        if name in TRAITS:
            return bool((self.read & (self._traits[TRAITS.index(name)] != NO_SCORE)).any())
        return bool((self.read & ~np.isnan(self.number(Field(name)))).any())


def _field(node: Node) -> str:
    if not isinstance(node, Field):
        raise TypeError(f"{node} is not in packed rows")
    return node.name


def _name(call: Call) -> str:
    argument = call.arguments[0]
    if not isinstance(argument, Text):
        raise TypeError(f"{call.name}() takes a quoted name")
    return argument.value


class _KeyCodes(Mapping[str, int]):
    """Codes of texts by their keys; the texts themselves are not known."""

    def __init__(self, keys: npt.NDArray[np.uint64]) -> None:
        self._keys = keys

    def __getitem__(self, text: str) -> int:
        wanted = np.uint64(key(text))
        place = int(np.searchsorted(self._keys, wanted))
        if place == len(self._keys) or self._keys[place] != wanted:
            raise KeyError(text)
        return place

    def __iter__(self) -> Iterator[str]:
        raise TypeError("the texts of packed rows are not known")

    def __len__(self) -> int:
        return len(self._keys)


def packed_source(agents: Sequence[str], cells: Sequence[bytes]) -> PackedSource:
    """Some agents' packed rows, each agent's in order; rows of abandoned branches are left out."""
    everything = np.frombuffer(b"".join(cells), dtype=CELLS)
    sizes = np.array([len(each) // CELLS.itemsize for each in cells], dtype=np.int64)
    owners = np.repeat(np.arange(len(agents)), sizes)
    places = np.arange(len(everything)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    on_main_branch = everything["bits"] & BRANCH == 0
    if not on_main_branch.all():
        everything, owners, places = everything[on_main_branch], owners[on_main_branch], places[on_main_branch]
    return PackedSource(everything, agents, owners, places)


def packed_table(source: PackedSource) -> RowTable:
    """The table of packed rows: a timeline per agent."""
    timed = np.ones(len(source.agents), dtype=np.bool_)
    bounds = np.searchsorted(source.owners, np.arange(len(source.agents) + 1))
    return RowTable(source, None, bounds, source.cells["time"].astype(np.int64), timed, source.read)


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
        last = int(self._table.bounds[index + 1]) - 1
        return _Timed(self._source.agents[index], None, _Entries(self, table, index), int(self._table.times[last]))

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
