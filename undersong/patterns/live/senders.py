"""Rules over several agents: which timelines address others, and whose sequences new rows can change."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from undersong.patterns.language.compile import PatternRule
from undersong.patterns.live.row_log import TimelineKey
from undersong.patterns.reference.downstream import opens
from undersong.patterns.reference.partitions import Entry


class Senders:
    """Of one rule the messages after which those whom they address are followed, by who sent them."""

    def __init__(self, rule: PatternRule) -> None:
        self._rule = rule
        self._times: dict[TimelineKey, dict[str, list[int]]] = {}
        self._openings: dict[TimelineKey, list[Entry]] = {}
        self._by_addressed: dict[str, set[TimelineKey]] = {}

    def append(self, line: TimelineKey, entries: Iterable[Entry]) -> None:
        """Take the next rows of a timeline."""
        for entry in entries:
            target, time = entry.row.target, entry.time
            if target is not None and time is not None and opens(self._rule, line[0], entry):
                self._openings.setdefault(line, []).append(entry)
                self._times.setdefault(line, {}).setdefault(target, []).append(time)
                self._by_addressed.setdefault(target, set()).add(line)

    def forget(self, line: TimelineKey) -> None:
        """Its rows are read again."""
        self._openings.pop(line, None)
        for addressed in self._times.pop(line, ()):
            self._by_addressed[addressed].discard(line)

    def addressed(self, line: TimelineKey) -> frozenset[str]:
        """Whom a timeline addresses."""
        return frozenset(self._times.get(line, ()))

    def openings(self, line: TimelineKey) -> Sequence[Entry]:
        """The messages of a timeline after which others are followed, in order."""
        return self._openings.get(line, ())

    def senders(self, agent: str) -> frozenset[TimelineKey]:
        """Which timelines address an agent."""
        return frozenset(self._by_addressed.get(agent, ()))

    def due(self, moved: Mapping[TimelineKey, Sequence[int]]) -> set[TimelineKey]:
        """The timelines whose sequences can be others, where rows of these times came to, or left, some timelines."""
        due = set()
        for line, times in moved.items():
            if any(self._follows(of_one, times) for of_one in self._times.get(line, {}).values()):
                due.add(line)
            if line[1] is None:
                due |= {each for each in self.senders(line[0]) if self._follows(self._times[each][line[0]], times)}
        return due

    def _follows(self, opened: Sequence[int], times: Sequence[int]) -> bool:
        """Whether one of the times lies within the rule's span after a message that opens it."""
        within = self._rule.within
        latest = ((time, bisect_right(opened, time) - 1) for time in times)
        return any(k >= 0 and (within is None or time - opened[k] <= within) for time, k in latest)
