"""What leads are counted from: messages with the figures of each, and sums and counts of these by source."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.models import NEGATIVE_TRAITS, Row, SignalBand
from undersong.patterns.lead_weights import lead_weights
from undersong.patterns.nomination import SILENT_ROLES

Figures: TypeAlias = npt.NDArray[np.float64]

PROTECTS = ("pushback", "de_escalation", "points_to_help")  # signals of an assistant that does what it should
OWNS_UP, CLEARLY = "fault_admission", 0.5  # a signal, and the level from which on a message is quoted after all others


class MeasuredMessage(msgspec.Struct, frozen=True, gc=False):
    """One message: its mean signal, rank and level of its negative traits (None: not known), bands that it exceeds.

    ``owns_up``: it reads as owning up to a fault, and is no proof of anything worse."""

    row: Row
    signal: float | None
    harm: float | None
    level: float | None
    wording: float | None
    over: tuple[str, ...]
    owns_up: bool


def measured_messages(rows: Iterable[Row], bands: Mapping[str, SignalBand]) -> list[MeasuredMessage]:
    """The messages of agents; ranks of negative traits are among the messages with scores on the same scale."""
    names = lead_weights().signals
    spoken = sorted(
        (row for row in rows if row.role not in SILENT_ROLES), key=lambda row: (row.conversation, row.position, row.id)
    )
    harms = [_harm(row) for row in spoken]
    tables: dict[str, list[float]] = {}
    for row, harm in zip(spoken, harms, strict=True):
        if harm is not None:
            tables.setdefault(row.scale or "level", []).append(harm)
    for table in tables.values():
        table.sort()
    measured = []
    for row, harm in zip(spoken, harms, strict=True):
        own = [name for name in names if name in row.signals] if row.state == "scored" else []
        measured.append(
            MeasuredMessage(
                row,
                fmean([row.signals[name] for name in own]) if own else None,
                None if harm is None else _rank(harm, tables[row.scale or "level"]),
                None if row.absolute_scores is None else harm,
                _wording(row),
                tuple(name for name in own if name in bands and row.signals[name] > bands[name].high),
                row.signals.get(OWNS_UP, 0.0) >= CLEARLY,
            )
        )
    return measured


def _wording(row: Row) -> float | None:
    """The level of manipulative wording; 0 of an assistant that objects, calms, or points to help."""
    level = row.signals.get(lead_weights().wording) if row.state == "scored" else None
    protects = row.role == "assistant" and any(row.signals.get(name, 0.0) >= CLEARLY for name in PROTECTS)
    return 0.0 if protects and level is not None else level


def _harm(row: Row) -> float | None:
    """The mean of the negative traits that apply to a message, a level or a rank."""
    traits = row.traits or {}
    scores = [score for trait in NEGATIVE_TRAITS if (score := traits.get(trait)) is not None]
    return sum(sorted(scores)) / len(scores) if scores else None  # sorted: the order of a set is not fixed


def _rank(value: float, table: Sequence[float]) -> float:
    """The share of lower values, equal ones counting half."""
    return (bisect_left(table, value) + bisect_right(table, value)) / 2 / len(table)


SOURCES = ("signal", "harm", "level", "wording", "over", "phrases", "triage")
PLACES = {source: place for place, source in enumerate(SOURCES)}
UNKNOWN = float("nan")


class SourceSums:
    """Sums and counts by source, of messages or of agents' means."""

    __slots__ = ("_counts", "_sums", "messages")

    def __init__(self, messages: int = 0, sums: Figures | None = None, counts: Figures | None = None) -> None:
        """``sums`` and ``counts`` are those of SOURCES, in their order."""
        self.messages = messages
        self._sums = np.zeros(len(SOURCES)) if sums is None else sums
        self._counts = np.zeros(len(SOURCES)) if counts is None else counts

    @classmethod
    def of_wording(cls, level: float) -> SourceSums:
        """A mean of wording that was measured elsewhere."""
        sums = cls()
        sums._sums[PLACES["wording"]], sums._counts[PLACES["wording"]] = level, 1
        return sums

    @classmethod
    def of(cls, messages: Sequence[MeasuredMessage]) -> SourceSums:
        """The sums of messages."""
        return next(iter(cls.of_groups(messages, [0] * len(messages), 1)))

    @classmethod
    def of_groups(cls, messages: Sequence[MeasuredMessage], groups: Sequence[int], count: int) -> Iterator[SourceSums]:
        """The sums of each of ``count`` groups; ``groups`` has that of each message. What else is counted moves no sum,
        not even in its last digit."""
        figures = np.array([_figures(message) for message in messages]).reshape(-1, len(SOURCES))
        is_known, sums, counts = ~np.isnan(figures), np.zeros((count, len(SOURCES))), np.zeros((count, len(SOURCES)))
        np.add.at(sums, groups, np.where(is_known, figures, 0.0))
        np.add.at(counts, groups, is_known)
        sizes = np.bincount(groups, minlength=count).tolist() if messages else [0] * count
        return (cls(*group) for group in zip(sizes, sums, counts, strict=True))

    def add_means(self, agent: SourceSums) -> None:
        """Count the means of an agent, each as one value."""
        is_known = agent._counts > 0
        self._sums += np.divide(agent._sums, agent._counts, out=np.zeros(len(SOURCES)), where=is_known)
        self._counts += is_known

    def mean(self, source: str) -> float | None:
        """The mean, None of nothing."""
        place = PLACES[source]
        return float(self._sums[place] / self._counts[place]) if self._counts[place] else None

    def count(self, source: str) -> tuple[int, int]:
        """Of a source that is 0 or 1: how many are 1, of how many."""
        place = PLACES[source]
        return round(self._sums[place]), round(self._counts[place])

    def join(self, other: SourceSums) -> None:
        """Add other sums."""
        self.messages += other.messages
        self._sums += other._sums
        self._counts += other._counts

    def without(self, own: SourceSums) -> SourceSums:
        """These sums without those that are among them."""
        return SourceSums(self.messages - own.messages, self._sums - own._sums, self._counts - own._counts)


def _figures(message: MeasuredMessage) -> tuple[float, ...]:
    """What counts of a message, in the order of SOURCES."""
    return (
        UNKNOWN if message.signal is None else message.signal,
        UNKNOWN if message.harm is None else message.harm,
        UNKNOWN if message.level is None else message.level,
        UNKNOWN if message.wording is None else message.wording,
        UNKNOWN if message.signal is None else float(bool(message.over)),
        float(message.row.total > 0),
        UNKNOWN if message.row.triage is None else message.row.triage,
    )


def joined_sums(several: Iterable[SourceSums]) -> SourceSums:
    """The sums of several together."""
    total = SourceSums()
    for part in several:
        total.join(part)
    return total
