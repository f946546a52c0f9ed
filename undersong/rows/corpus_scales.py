"""Percentile ranks: scores of text that the judge was not measured on, of which only the order counts."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from tempfile import TemporaryFile

import msgspec

from undersong.models import TRAITS, Row, SignalBand, applicable_scores, decode, encode
from undersong.rows.null_bands import NullBandCounter, table_name, with_band

DIGITS = 3
MAJORITY = 0.5  # of a conversation's scored messages; more than that must be of a measured kind before a number counts


def with_scale(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows of one conversation with their scale: "rank" for a message, or a conversation, of an unmeasured kind.

    A few messages that look like the measured kind, in a conversation that does not, are ranks too. Half of them do not
    tell: one of two says as much for the one kind as for the other. A judge that says nothing of domains gives levels.
    """
    foreign = is_foreign(rows)
    return tuple(with_row_scale(row, foreign) for row in rows)


def is_foreign(rows: Iterable[Row]) -> bool:
    """Whether the rows are those of a conversation of an unmeasured kind."""
    domains = [row.domain for row in rows if row.domain is not None]
    return bool(domains) and domains.count("measured") <= MAJORITY * len(domains)


def with_row_scale(row: Row, foreign: bool) -> Row:
    """One row of a conversation with its scale, see ``with_scale``."""
    return _ranked_only(row) if row.domain and (foreign or row.domain == "unmeasured") else row


def absolute_rows(rows: Iterable[Row]) -> list[Row]:
    """The rows as a threshold may see them: without the traits that are ranks."""
    return [msgspec.structs.replace(row, traits=None) if row.scale == "rank" else row for row in rows]


class PercentileRanks:
    """Collects the scores of rows whose scale is "rank"; then turns each into its rank among them, 0 to 1."""

    def __init__(self) -> None:
        self._seen: dict[str, array[float]] = {trait: array("d") for trait in TRAITS}
        self._tables: dict[str, _RankTable] = {}

    def add(self, row: Row) -> None:
        """Note the scores of a row; rows of levels are passed over."""
        if row.scale == "rank" and row.traits:
            for trait, score in applicable_scores(row.traits).items():
                self._seen[trait].append(score)

    def __bool__(self) -> bool:
        return any(self._seen.values())

    def of(self, row: Row) -> Row:
        """The row with ranks: the share of rows with a lower score, those with the same counting half; None stays."""
        if row.scale != "rank" or not row.traits:
            return row
        if not self._tables:
            self._tables = {trait: _RankTable(scores) for trait, scores in self._seen.items()}
        tables = self._tables
        ranks = {trait: None if score is None else tables[trait][score] for trait, score in row.traits.items()}
        return msgspec.structs.replace(row, traits=ranks)


class _RankTable(dict[float, float]):
    """Score → rank among ``scores``; few are ever worked out, since they have three decimals."""

    def __init__(self, scores: Iterable[float]) -> None:
        super().__init__()
        self._sorted = array("d", sorted(scores))

    def __missing__(self, score: float) -> float:
        low, high = bisect_left(self._sorted, score), bisect_right(self._sorted, score)
        self[score] = rank = round((low + high) / 2 / len(self._sorted), DIGITS)
        return rank


def ranks_of(rows: Iterable[Row]) -> PercentileRanks:
    """The ranks of some rows."""
    ranks = PercentileRanks()
    for row in rows:
        ranks.add(row)
    return ranks


class RowSpool:
    """Rows on their way out, in a temporary file until the ranks and null bands of all of them are known."""

    def __init__(self, gives: Iterable[str] = ()) -> None:
        """``gives`` are the signals of the judge."""
        self._ranks, self._bands, self._names = PercentileRanks(), NullBandCounter(), frozenset(gives)
        self._file = TemporaryFile()  # noqa: SIM115 - closed when it has been written out

    def add(self, row: Row) -> None:
        """Take one row."""
        self._ranks.add(row)
        self._bands.add(row, self._names)
        self._file.write(encode(row) + b"\n")

    def write(self, write: Callable[[bytes], object]) -> dict[str, SignalBand]:
        """Write every row as a JSON line, in order, with its ranks and the name of its bands; returns the bands.

        The spool is used up.
        """
        bands = self._bands.bands()
        name = table_name(bands)
        with self._file as lines:
            lines.seek(0)
            for line in lines:
                write(self._finished(line, name) if self._ranks or name else line)
        return bands

    def _finished(self, line: bytes, name: str | None) -> bytes:
        return encode(with_band(self._ranks.of(decode(line, Row)), name)) + b"\n"


def _ranked_only(row: Row) -> Row:
    return row if row.traits is None else msgspec.structs.replace(row, scale="rank")
