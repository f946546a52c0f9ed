"""Null bands: which signals of a corpus exceed the scores that other phrases get in it."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Collection, Iterable, Mapping, Set
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.models import Row, SignalBand

Counts: TypeAlias = npt.NDArray[np.int64]

STEPS = 1000  # scores have three decimals
BAND = (0.05, 0.95)  # of the other signals' scores: what a phrase set of no special meaning here gives
EXPECTED = 1 - BAND[1]  # share of messages over the band where a signal means nothing here


class NullBandCounter:
    """Counts the signals of scored messages, without keeping them."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, ...], array[float]] = {}  # by the names that a row has, since most have the same

    def add(self, row: Row, names: Set[str]) -> None:
        """Count the signals ``names`` of one row; a row that was not scored is passed over."""
        if row.state == "scored":
            signals = row.signals
            if not names >= signals.keys():
                signals = {name: score for name, score in signals.items() if name in names}
            self._seen.setdefault(tuple(signals), array("d")).extend(signals.values())

    def bands(self) -> dict[str, SignalBand]:
        """Per signal, its null band and how many messages lie over it; a signal needs another to be held against."""
        counts = self._counts()
        if len(counts) < 2:
            return {}
        everything = np.sum(list(counts.values()), axis=0)
        return {name: _band(own, everything) for name, own in sorted(counts.items())}

    def _counts(self) -> dict[str, Counts]:
        """Per signal, how many messages have 0, .001, .002, … 1."""
        counts: dict[str, Counts] = {}
        for names, scores in self._seen.items():
            if names:
                steps = np.rint(np.array(scores).reshape(-1, len(names)).clip(0, 1) * STEPS).astype(np.int64)
                for name, column in zip(names, steps.T, strict=True):
                    counts[name] = counts.get(name, 0) + np.bincount(column, minlength=STEPS + 1)
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
