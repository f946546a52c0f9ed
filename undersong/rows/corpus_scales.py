"""Where a row stands in its corpus: percentile ranks of scores, and null bands of signals.

Ranks stand for scores of text that the judge was not measured on, of which only the order counts. Null bands say which
signals exceed the scores that other phrases get in the corpus.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from itertools import accumulate
from tempfile import TemporaryFile
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.models import TRAITS, Row, SignalBand, applicable_scores, decode, encode

Counts: TypeAlias = npt.NDArray[np.int64]

STEPS = 1000  # scores have three decimals
BAND = (0.05, 0.95)  # of the other signals' scores: what a phrase set of no special meaning here gives
EXPECTED = 1 - BAND[1]  # share of messages over the band where a signal means nothing here
DIGITS = 3
MAJORITY = 0.5  # of a conversation's scored messages; more than that must be of a measured kind before a number counts


class NullBandCounter:
    """Counts the signals of scored messages, without keeping them; counts of parts of a corpus add up (``merge``)."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, ...], array[float]] = {}  # by the names that a row has, since most have the same
        self._counted: dict[str, Counts] = {}

    def add(self, row: Row, names: Set[str]) -> None:
        """Count the signals ``names`` of one row; a row that was not scored is passed over."""
        if row.state == "scored":
            signals = row.signals
            if not names >= signals.keys():
                signals = {name: score for name, score in signals.items() if name in names}
            self._seen.setdefault(tuple(signals), array("d")).extend(signals.values())

    def merge(self, other: NullBandCounter) -> None:
        """Count what another one has counted too."""
        counts = self._counts()
        for name, own in other._counts().items():
            counts[name] = counts[name] + own if name in counts else own

    def bands(self) -> dict[str, SignalBand]:
        """Per signal, its null band and how many messages lie over it; a signal needs another to be held against."""
        counts = self._counts()
        if len(counts) < 2:
            return {}
        everything = np.sum(list(counts.values()), axis=0)
        return {name: _band(own, everything) for name, own in sorted(counts.items())}

    def _counts(self) -> dict[str, Counts]:
        """Per signal, how many messages have 0, .001, .002, … 1."""
        counts = self._counted
        for names, scores in self._seen.items():
            if names:
                steps = np.rint(np.array(scores).reshape(-1, len(names)).clip(0, 1) * STEPS).astype(np.int64)
                for name, column in zip(names, steps.T, strict=True):
                    counts[name] = counts.get(name, 0) + np.bincount(column, minlength=STEPS + 1)
        self._seen.clear()
        return counts


def null_bands_of(rows: Iterable[Row], gives: Collection[str]) -> dict[str, SignalBand]:
    """The null bands of the signals that a judge ``gives``."""
    bands, names = NullBandCounter(), frozenset(gives)
    for row in rows:
        bands.add(row, names)
    return bands.bands()


def table_name(bands: Mapping[str, SignalBand]) -> str | None:
    """The name by which rows refer to the bands that hold for them, 16 hex digits; None where there are none."""
    return hashlib.sha256(msgspec.json.encode(bands, order="sorted")).hexdigest()[:16] if bands else None


def table(bands: Mapping[str, SignalBand]) -> bytes:
    """The bands of a corpus as one JSON object: their name as ``bands``, and signal → band as ``signals``."""
    return msgspec.json.encode({"bands": table_name(bands), "signals": bands}, order="sorted") + b"\n"


def with_band(row: Row, name: str | None) -> Row:
    """The row with the name of the table that holds its signals' bands; a row without signals names none."""
    band_table = name if row.state == "scored" and row.signals else None
    return row if row.bands == band_table else msgspec.structs.replace(row, bands=band_table)


def signals_above_null(bands: Mapping[str, SignalBand]) -> list[str]:
    """The signals of which more than twice the expected share of messages lies over the null band, most first."""
    shares = {name: band.over / max(band.messages, 1) for name, band in bands.items()}
    above = [name for name, share in shares.items() if share > 2 * EXPECTED]
    return sorted(above, key=lambda name: (-shares[name], name))


def _band(own: Counts, everything: Counts) -> SignalBand:
    others = np.cumsum(everything - own)
    low, high = (int(np.searchsorted(others, share * others[-1])) for share in BAND)
    return SignalBand(
        low=low / STEPS,
        high=high / STEPS,
        messages=int(own.sum()),
        over=int(own[high + 1 :].sum()),
        highest=int(np.flatnonzero(own)[-1]) / STEPS,
    )


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
    """Counts the scores of rows whose scale is "rank"; then turns each into its rank among them, 0 to 1.

    Counts of parts of a corpus add up (``merge``).
    """

    def __init__(self) -> None:
        self._seen: dict[str, Counter[float]] = {trait: Counter() for trait in TRAITS}
        self._tables: dict[str, _RankTable] = {}

    def add(self, row: Row) -> None:
        """Note the scores of a row; rows of levels are passed over."""
        if row.scale == "rank" and row.traits:
            for trait, score in applicable_scores(row.traits).items():
                self._seen[trait][score] += 1

    def merge(self, other: PercentileRanks) -> None:
        """Count what another one has counted too."""
        for trait, counts in other._seen.items():
            self._seen[trait].update(counts)
        self._tables = {}

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

    def __init__(self, counts: Counter[float]) -> None:
        super().__init__()
        self._scores = sorted(counts)
        self._lower = [0, *accumulate(counts[score] for score in self._scores)]

    def __missing__(self, score: float) -> float:
        low, high = (self._lower[place(self._scores, score)] for place in (bisect_left, bisect_right))
        self[score] = rank = round((low + high) / 2 / self._lower[-1], DIGITS)
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
