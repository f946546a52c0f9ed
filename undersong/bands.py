"""Which signals stand out in a corpus: each held against where other phrases land (the null band)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from undersong.models import Row, SignalBand

STEPS = 1000  # scores have three decimals
BAND = (0.05, 0.95)  # of the other signals' scores: what a phrase set of no special meaning here gives
EXPECTED = 1 - BAND[1]  # share of messages over the band where a signal means nothing here


class Bands:
    """Counts the signals of scored messages, without keeping them."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}

    def add(self, row: Row, names: Iterable[str]) -> None:
        """Count the signals ``names`` of one row; a row that was not scored is passed over."""
        if row.state != "scored":
            return
        for name in names:
            if name in row.signals:
                counts = self._counts.setdefault(name, [0] * (STEPS + 1))
                counts[round(row.signals[name] * STEPS)] += 1

    def bands(self) -> dict[str, SignalBand]:
        """Per signal, its null band and how many messages lie over it; a signal needs another to be held against."""
        if len(self._counts) < 2:
            return {}
        everything = np.sum(list(self._counts.values()), axis=0)
        return {name: _band(counts, everything) for name, counts in sorted(self._counts.items())}


def standing_out(bands: Mapping[str, SignalBand]) -> list[str]:
    """The signals of which more than twice the expected share of messages lies over the null band, most first."""
    shares = {name: band.over / max(band.messages, 1) for name, band in bands.items()}
    found = [name for name, share in shares.items() if share > 2 * EXPECTED]
    return sorted(found, key=lambda name: (-shares[name], name))


def _band(own: Sequence[int], everything: np.ndarray[tuple[int], np.dtype[np.int64]]) -> SignalBand:
    others = np.cumsum(everything - np.array(own))
    low, high = (int(np.searchsorted(others, share * others[-1])) for share in BAND)
    highest = max(place for place, count in enumerate(own) if count)
    return SignalBand(
        low=low / STEPS,
        high=high / STEPS,
        messages=sum(own),
        over=sum(own[high + 1 :]),
        highest=highest / STEPS,
    )
