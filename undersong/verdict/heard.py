"""Which signals of a row say enough: a limit holds for the engine that it was measured with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from undersong.models import Row
from undersong.verdict.words import AnnotationsConfig, DistressConfig


def engine_of(row: Row, signal: str) -> str:
    """The name of what made a signal of a row, such as ``prototypes``; "" where the row does not say."""
    return row.engines.get(signal) or row.engines.get("signals", "")


def signals_over_threshold(
    rows: Iterable[Row], config: DistressConfig | AnnotationsConfig
) -> dict[str, Mapping[str, float]]:
    """The signals by row id, without those of the book that lie below the limit of the engine that made them."""
    return {row.id: _over_threshold(row, config.signals, config.least_by) for row in rows if row.signals}


def _over_threshold(row: Row, names: Collection[str], least_by: Mapping[str, float]) -> Mapping[str, float]:
    low = {name for name in names if row.signals.get(name, 0.0) < least_by.get(engine_of(row, name), 0.0)}
    return {name: score for name, score in row.signals.items() if name not in low} if low else row.signals
