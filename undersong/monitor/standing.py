"""How the rows of one judge stand together: ranks of scores that are no levels, and the null bands of signals."""

from __future__ import annotations

from collections.abc import Iterable

from undersong.bands import NullBandCounter, table_name, with_band
from undersong.models import Row, SignalBand
from undersong.ranks import PercentileRanks


class CorpusRanks:
    """Made from all rows of a corpus; then each row of it is given its ranks and the name of its bands."""

    def __init__(self, rows: Iterable[Row], gives: Iterable[str]) -> None:
        """``gives`` are the signals of the judge."""
        bands, names = NullBandCounter(), frozenset(gives)
        self._ranks = PercentileRanks()
        for row in rows:
            self._ranks.add(row)
            bands.add(row, names)
        self.bands: dict[str, SignalBand] = bands.bands()
        self._name = table_name(self.bands)

    def of(self, row: Row) -> Row:
        """The row as an audit of the whole corpus gives it."""
        return with_band(self._ranks.of(row), self._name)
