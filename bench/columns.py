"""Columns as a source for the engine: arrays in, no row object is made; for benchmarks of ten million rows.

Texts come dictionary-encoded, as Arrow and data frames have them: a code per row and the names of the codes.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import accumulate, chain, compress, islice
from typing import Any, NamedTuple

import msgspec
import numpy as np

from undersong.patterns.language.expressions import Call, Field, Node, Text
from undersong.patterns.language.fields import FIELDS, ROW_FUNCTIONS, Kind
from undersong.patterns.vectorized.exact_sum import F, I
from undersong.patterns.vectorized.jit import kernel, machine
from undersong.patterns.vectorized.layout import RowTable, picked
from undersong.patterns.vectorized.vector_logic import UNKNOWN, B, Codes


class Names(Mapping[str, int]):
    """The number of each of some texts, which are distinct and in order."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    def __getitem__(self, text: str) -> int:
        place = bisect_left(self.texts, text)
        if place == len(self.texts) or self.texts[place] != text:
            raise KeyError(text)
        return place

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)


def numbered(lists: Sequence[Sequence[str]]) -> tuple[Names, list[Codes]]:
    """The texts of all lists, and per list the numbers of its own, at the end that of none."""
    by_identity = {id(each): each for each in lists}  # often several are one
    texts = [*chain.from_iterable(by_identity.values())]
    order = sorted(range(len(texts)), key=texts.__getitem__)  # next to no work where each list is in order already
    ordered = [texts[place] for place in order]
    new = [True, *map(operator.ne, islice(ordered, 1, None), ordered)][: len(ordered)]
    numbers = np.empty(len(texts), dtype=np.int32)
    numbers[order] = np.cumsum(new, dtype=np.int32) - 1
    ends = [*accumulate(map(len, by_identity.values()))]
    parts = np.split(numbers, ends[:-1])
    own = {key: np.append(part, np.int32(UNKNOWN)) for key, part in zip(by_identity, parts, strict=True)}
    return Names([*compress(ordered, new)]), [own[id(each)] for each in lists]


def in_time(times: I, positions: I | None) -> I | None:
    """The order of time, then of position, then as given; None where the rows have it."""
    if machine(len(times)):
        falls = _falls.at(len(times))(times, np.zeros(0, dtype=np.int64) if positions is None else positions)
    else:
        again = np.zeros(1, dtype=np.bool_) if positions is None else positions[1:] < positions[:-1]
        falls = ((times[1:] < times[:-1]) | ((times[1:] == times[:-1]) & again)).any()
    if not falls:
        return None
    return np.argsort(times, kind="stable") if positions is None else np.lexsort((positions, times))


@kernel
def _falls(times, positions):  # type: ignore[no-untyped-def]
    """How many rows belong before the one before them; without positions all are at one."""
    falls = 0
    for row in range(1, len(times)):
        falls += times[row] < times[row - 1]
    for row in range(1, len(positions)):
        falls += (times[row] == times[row - 1]) & (positions[row] < positions[row - 1])
    return falls


def by_agent(agents: Codes, codes: int) -> tuple[I, I]:
    """The rows agent by agent, in their order within each; and how many each has."""
    counts = np.zeros(codes, dtype=np.int64)
    if not machine(len(agents)) or not _count.at(len(agents))(agents, counts):
        return np.argsort(agents, kind="stable"), np.bincount(agents, minlength=codes)
    order = np.empty(len(agents), dtype=np.int64)
    _place.at(len(agents))(agents, np.cumsum(counts) - counts, order)
    return order, counts


@kernel
def _count(agents, counts):  # type: ignore[no-untyped-def]
    """Adds up how many rows each agent has; whether all are among them."""
    for agent in agents:
        if not 0 <= agent < len(counts):
            return False
        counts[agent] += 1
    return True


@kernel
def _place(agents, following, order):  # type: ignore[no-untyped-def]
    for row in range(len(agents)):
        order[following[agents[row]]] = row
        following[agents[row]] += 1


PIECE = 1_000_000  # rows that are searched together: their columns stay within reach, and few pieces are made


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


class _Coded:
    """What the codes of columns stand for."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    @property
    def codes(self) -> Names:
        """Every text of every column, numbered in alphabetical order."""
        return self._numbered[0]

    @property
    def own(self) -> dict[str, Codes]:
        """Per text what its codes are among all, at the end that of none."""
        return self._numbered[1]

    @cached_property
    def _numbered(self) -> tuple[Names, dict[str, Codes]]:
        texts = self.columns.texts
        names, own = numbered([text.names for text in texts.values()])
        return names, dict(zip(texts, own, strict=True))


class ColumnSource:
    """The fields of columns, or of some ``rows`` of them (None: all, as they are)."""

    def __init__(self, columns: Columns, rows: I | None = None, coded: _Coded | None = None) -> None:
        self.columns, self.rows = columns, rows
        self._coded = coded or _Coded(columns)
        self._texts: dict[str, Codes] = {}

    @property
    def codes(self) -> Names:
        """Every text of every column, numbered in alphabetical order."""
        return self._coded.codes

    @property
    def size(self) -> int:
        """How many rows."""
        return len(self.columns.times if self.rows is None else self.rows)

    def kind(self, node: Node) -> Kind:
        """What a field or a row function is."""
        return ROW_FUNCTIONS[node.name][0] if isinstance(node, Call) else FIELDS[_name(node)].kind

    def number(self, node: Node) -> F:
        """A number of every row, NaN where it is unknown."""
        arrays = self.columns.signals if isinstance(node, Call) else self.columns.numbers
        values = arrays.get(_name(node))
        return np.full(self.size, np.nan) if values is None else self.of(values)

    def text(self, node: Node) -> Codes:
        """The codes of a text of every row."""
        name = _name(node)
        if name not in self._texts:
            self._texts[name] = self._text(name)
        return self._texts[name]

    def truth(self, node: Node, wanted: bool) -> B:
        """Where a condition on single rows holds or fails."""
        name, columns = _name(node), self.columns
        if isinstance(node, Call) and node.name == "indicator":
            return self._indicated(name, wanted)
        if isinstance(node, Field) and node.name == "directed":
            return self._directed(wanted)
        flags = columns.flags.get(name) if isinstance(node, Call) else columns.truths.get(name)
        if flags is None:
            missing_flag = isinstance(node, Call) and not wanted  # what was not flagged is known not to be
            return np.full(self.size, missing_flag, dtype=np.bool_)
        truths: B = self.of(flags)
        return truths if wanted else ~truths

    def _directed(self, wanted: bool) -> B:
        directed = self.text(Field("target")) >= 0
        return directed if wanted else ~directed

    def _indicated(self, name: str, wanted: bool) -> B:
        seen = self.columns.indicators.get(name)
        if seen is None:
            return np.zeros(self.size, dtype=np.bool_) if wanted else self._judged
        indicated: B = self.of(seen)
        return self._judged & (indicated if wanted else ~indicated)

    @cached_property
    def _judged(self) -> B:
        judged = self.columns.judged
        return np.zeros(self.size, dtype=np.bool_) if judged is None else np.asarray(self.of(judged))

    def _text(self, name: str) -> Codes:
        text = self.columns.texts.get(name)
        if text is None:
            return np.full(self.size, UNKNOWN, dtype=np.int32)
        return np.asarray(self._coded.own[name][self.of(text.codes)])

    def of(self, values: Any) -> Any:
        """The values of its own rows, given those of the columns'."""
        return values if self.rows is None else picked(values, self.rows)


def table_of_columns(columns: Columns) -> RowTable:
    """The table of some columns: agent by agent (in the order of their codes), in the order of time."""
    return _table(ColumnSource(columns), in_time(columns.times, columns.positions))


def pieces(columns: Columns, rows: int = PIECE, *, own: bool = True) -> Iterator[RowTable]:
    """The same in tables of whole timelines, each of about so many rows (more where one timeline has more).

    Each has a source of its own, so that what is worked out of it fits the machine's caches, and goes with it. Without
    ``own`` they share one: quicker for a few rules that ask single rows, but what is worked out stays.
    """
    if not own:
        yield from _cut(table_of_columns(columns), rows)
        return
    ordered, agents = in_time(columns.times, columns.positions), columns.texts["agent"]
    counts = np.bincount(agents.codes, minlength=len(agents.names))
    piece_of = _shared_out(counts, rows)
    number = int(piece_of[-1]) + 1 if len(piece_of) else 0
    if number <= 1:
        yield _table(ColumnSource(columns), ordered)
        return
    owner = piece_of[agents.codes if ordered is None else agents.codes[ordered]]
    order, sizes = by_agent(owner, number)
    coded = _Coded(columns)
    for places in np.split(order, np.cumsum(sizes[sizes > 0])[:-1]):
        yield _table(ColumnSource(columns, places if ordered is None else ordered[places], coded), None)


def _cut(table: RowTable, rows: int) -> Iterator[RowTable]:
    first = 0
    while first < len(table.timed):
        last = int(np.searchsorted(table.bounds, table.bounds[first] + rows, side="right")) - 1
        last = max(first + 1, last)
        low, high = int(table.bounds[first]), int(table.bounds[last])
        index = np.arange(low, high) if table.index is None else table.index[low:high]
        read, bounds = table.read[low:high], table.bounds[first : last + 1] - low
        yield RowTable(table.source, index, bounds, partial(_times, table, low, high), table.timed[first:last], read)
        first = last


def _times(table: RowTable, low: int, high: int) -> I:
    return table.times[low:high]


def in_columns(table: RowTable, rows: I) -> I:
    """The places of a table's rows in its columns."""
    places = rows if table.index is None else table.index[rows]
    source = table.source
    return source.rows[places] if isinstance(source, ColumnSource) and source.rows is not None else places


def _shared_out(counts: I, rows: int) -> Codes:
    """The piece of each agent: whole agents in their order, as many as have so many rows together, at least one."""
    ends, piece_of, first = np.cumsum(counts), np.zeros(len(counts), dtype=np.int32), 0
    while first < len(counts):
        before = int(ends[first] - counts[first])
        first = max(first + 1, int(np.searchsorted(ends, before + rows, side="right")))
        piece_of[first:] += 1
    return piece_of


def _table(source: ColumnSource, ordered: I | None) -> RowTable:
    """The table of a source whose rows are in the order of time, or are put into it."""
    columns, names = source.columns, source.columns.texts["agent"].names
    read, agents = source.of(columns.read), source.of(columns.texts["agent"].codes)
    order, counts = by_agent(agents if ordered is None else agents[ordered], len(names))
    order = order if ordered is None else ordered[order]
    bounds = np.concatenate([[0], np.cumsum(counts[counts > 0])])
    timed = np.ones(len(bounds) - 1, dtype=np.bool_)
    return RowTable(source, order, bounds, lambda: picked(source.of(columns.times), order), timed, picked(read, order))


def _name(node: Node) -> str:
    if isinstance(node, Field):
        return node.name
    if isinstance(node, Call) and isinstance(node.arguments[0], Text):
        return node.arguments[0].value
    raise TypeError(f"{node} is no field of a row")
