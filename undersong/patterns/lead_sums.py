"""What leads are counted from: messages with the figures of each, and sums and counts of these by source."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

import msgspec

from undersong.models import NEGATIVE_TRAITS, Row, SignalBand
from undersong.patterns.lead_weights import lead_weights
from undersong.patterns.nomination import SILENT_ROLES

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
                fmean(row.signals[name] for name in own) if own else None,
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


class SourceSums:
    """Sums and counts by source, of messages or of agents' means."""

    def __init__(self) -> None:
        self.messages = 0
        self._sums = dict.fromkeys(SOURCES, 0.0)
        self._counts = dict.fromkeys(SOURCES, 0)

    @classmethod
    def of_wording(cls, level: float) -> SourceSums:
        """A mean of wording that was measured elsewhere."""
        sums = cls()
        sums._take("wording", level)
        return sums

    def add(self, message: MeasuredMessage) -> None:
        """Count one message."""
        row, scored = message.row, message.signal is not None
        self.messages += 1
        self._take("signal", message.signal)
        self._take("harm", message.harm)
        self._take("level", message.level)
        self._take("wording", message.wording)
        self._take("over", float(bool(message.over)) if scored else None)
        self._take("phrases", float(row.total > 0))
        self._take("triage", row.triage)

    def add_all(self, messages: Iterable[MeasuredMessage]) -> SourceSums:
        """Count messages, and return these sums."""
        for message in messages:
            self.add(message)
        return self

    def add_means(self, agent: SourceSums) -> None:
        """Count the means of an agent, each as one value."""
        for source in SOURCES:
            self._take(source, agent.mean(source))

    def _take(self, source: str, value: float | None) -> None:
        if value is not None:
            self._sums[source] += value
            self._counts[source] += 1

    def mean(self, source: str) -> float | None:
        """The mean, None of nothing."""
        return self._sums[source] / self._counts[source] if self._counts[source] else None

    def count(self, source: str) -> tuple[int, int]:
        """Of a source that is 0 or 1: how many are 1, of how many."""
        return round(self._sums[source]), self._counts[source]

    def join(self, other: SourceSums, sign: int = 1) -> None:
        """Add other sums, or take them away."""
        self.messages += sign * other.messages
        for source in SOURCES:
            self._sums[source] += sign * other._sums[source]
            self._counts[source] += sign * other._counts[source]

    def without(self, own: SourceSums) -> SourceSums:
        """These sums without those that are among them."""
        rest = joined_sums((self,))
        rest.join(own, -1)
        return rest


def joined_sums(several: Iterable[SourceSums]) -> SourceSums:
    """The sums of several together."""
    total = SourceSums()
    for part in several:
        total.join(part)
    return total
