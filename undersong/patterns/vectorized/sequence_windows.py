"""Columns that depend on the sequence: hours since the row before, sliding windows over it and over rows to others."""

from __future__ import annotations

import numpy as np

from undersong.patterns.language.expressions import Node, Window
from undersong.patterns.vectorized.environments import FrameVectors, RuleVectors, events_of
from undersong.patterns.vectorized.exact_sum import ExactTotal, F, I, NotVectorizable, counts, running
from undersong.patterns.vectorized.layout import FramePositions, RowTable, SequenceFrame
from undersong.patterns.vectorized.rolling import WindowEvents, over_sequences, summed
from undersong.patterns.vectorized.rule_plan import running_sum
from undersong.patterns.vectorized.targets import TargetRows

Sums = tuple[
    I, ExactTotal, I, ExactTotal
]  # running numbers and sums of the rows of a table, and of the directed ones by target


class SequenceColumns:
    """Per node the values for some rows of a frame; ``parts`` are the public and directed rows where it has targets.

    ``shared`` are the sums that rules over the same sequences have in common.
    """

    def __init__(
        self,
        table: RowTable,
        vectors: RuleVectors,
        frame: SequenceFrame,
        parts: TargetRows | None,
        alone: bool,
        shared: dict[Node, Sums],
    ) -> None:
        self.table, self.vectors, self.frame, self.parts, self.alone = table, vectors, frame, parts, alone
        self._known: dict[Node, F] = {}
        self._own: dict[Node, Sums] = {}
        self._shared = shared

    def __call__(self, node: Node, places: I | None) -> F:
        if places is not None and isinstance(node, Window) and self._apart(node, len(places)):
            return self._to_others(node, places)
        if node not in self._known:
            self._known[node] = self._made(node)
        return self._known[node] if places is None else self._known[node][places]

    def _apart(self, node: Window, rows: int) -> bool:
        """Whether so few rows are better worked out by themselves."""
        few = rows * 2 < len(self.frame.rows) and node not in self._known
        return few and node.over == "others" and self.parts is not None

    def _made(self, node: Node) -> F:
        if not isinstance(node, Window):
            return self.frame.gap_hours(self.table)
        if node.over == "others":
            return self._others(node)
        if self.frame.at is None or self.frame.whole:
            return self._sequence(node)
        return self._so_far(node)

    def _sequence(self, node: Window) -> F:
        frame = self.frame
        rows = FrameVectors(self.vectors, frame.rows, None, self)
        events = events_of(rows, node).spread(len(frame.rows))
        timed = self.table.timed[frame.timelines]
        return over_sequences(node, events, frame.bounds, self.table.times[frame.rows], timed)

    def _others(self, node: Window) -> F:
        """Rows directed at anyone but the target of the sequence."""
        if self.parts is None:
            table, events = self.table, self._events(node)
            events = WindowEvents(events.values, events.counted & (table.targets >= 0))
            return over_sequences(node, events, table.bounds, table.times, table.timed)[self.frame.rows]
        return self._to_others(node, np.arange(len(self.frame.rows)))

    def _to_others(self, node: Window, places: I) -> F:
        """All directed rows of the agent less those to the sequence's target, at some rows of the frame."""
        if not running_sum(node) or not self.alone:
            raise NotVectorizable("rows to others are only summed so far")
        number, sums, own_number, own = self._sums_of(node)
        rows, at = self.frame.rows[places], self._places
        first = self.table.bounds[self.table.timeline[rows]]
        directed = at.directed[places]
        directed_first = at.directed_first[np.searchsorted(self.frame.bounds, places, side="right") - 1]
        others = sums.at(rows) - sums.at(first) - (own.at(directed) - own.at(directed_first))
        count = number[rows] - number[first] - (own_number[directed] - own_number[directed_first])
        return summed(node, others, count)

    def _sums_of(self, node: Window) -> Sums:
        cache = self._own if self.vectors.levels.named(node) else self._shared
        if node not in cache:
            events = self._events(node)
            events = WindowEvents(events.values, events.counted & (self.table.targets >= 0))
            cache[node] = (*_sums(events), *self._chained(events))
        return cache[node]

    def _so_far(self, node: Window) -> F:
        """Sums over the public rows and over the directed ones, where runs are only parts of their sequences."""
        if self.parts is None or self.frame.at is None or not running_sum(node):
            raise NotVectorizable("only sums so far are known for parts of sequences")
        events, at = self._events(node), self.frame.at
        read = self.parts.lists.public_rows[self.parts.lists.seen]
        number, sums = _sums(WindowEvents(events.values[read], events.counted[read]))
        own_number, own_sums = self._chained(events)
        bounds, sizes = self.frame.bounds, np.diff(self.frame.bounds)
        public = np.repeat(at.before - bounds[:-1], sizes) + np.arange(len(self.frame.rows)) - at.directed
        public_first, directed_first = np.repeat(at.public_first, sizes), np.repeat(at.directed_first, sizes)
        sums_so_far = (sums.at(public) - sums.at(public_first)).plus(
            own_sums.at(at.directed) - own_sums.at(directed_first)
        )
        own = own_number[at.directed] - own_number[directed_first]
        return summed(node, sums_so_far, number[public] - number[public_first] + own)

    def _chained(self, events: WindowEvents) -> tuple[I, ExactTotal]:
        """Running numbers and sums of the directed rows, target by target."""
        if self.parts is None:
            raise NotVectorizable("a sequence without a target")
        lists = self.parts.lists
        read = lists.chain_rows[self.table.read[lists.chain_rows]]
        return _sums(WindowEvents(events.values[read], events.counted[read]))

    @property
    def _places(self) -> FramePositions:
        if self.frame.at is None:
            raise NotVectorizable("a sequence without a target")
        return self.frame.at

    def _events(self, node: Window) -> WindowEvents:
        events = events_of(self.vectors, node).spread(self.table.size)
        return WindowEvents(events.values, events.counted & self.table.read)


def _sums(events: WindowEvents) -> tuple[I, ExactTotal]:
    return counts(events.counted), running(np.where(events.counted, events.values, 0.0))
