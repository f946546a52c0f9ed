"""What the findings of a timeline set on its messages, brought up to date where a finding changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from undersong.models import Finding
from undersong.patterns.set_indicators import Place, Sets, set_on

_Set = tuple[Place, str, str]  # a place, an indicator, and the pattern of a finding that sets it there


class GrowingIndicators:
    """``by_place`` is what ``set_by`` gives of the findings taken; most rows change few of it."""

    def __init__(self) -> None:
        self.by_place: dict[Place, Mapping[str, frozenset[str]]] = {}
        self._same: dict[frozenset[tuple[str, frozenset[str]]], Mapping[str, frozenset[str]]] = {}  # most places' are
        self._findings: dict[str, Finding] = {}
        self._counts = Counter[_Set]()

    def take(self, current: Mapping[str, Finding], sets: Sets) -> dict[Place, set[str]]:
        """These are the findings now, by id; the indicators that are set otherwise than before, by place."""
        counts = Counter[_Set]()
        for name in self._findings.keys() | current.keys():
            before, now = self._findings.get(name), current.get(name)
            if before is not now:
                first = _in_common(before, now)
                counts.update(_set_by(now, sets, first))
                counts.subtract(_set_by(before, sets, first))
        self._findings = dict(current)
        changed: dict[Place, set[str]] = {}
        for setting, count in counts.items():
            if count and self._add(setting, count):
                changed.setdefault(setting[0], set()).add(setting[1])
        return changed

    def _add(self, setting: _Set, count: int) -> bool:
        """Whether an indicator is set at a place by another pattern than before, or by one less."""
        before = self._counts[setting]
        self._counts[setting] = before + count
        if bool(before) == bool(before + count):
            return False
        place, indicator, pattern = setting
        here = dict(self.by_place.pop(place, {}))
        patterns = here.pop(indicator, frozenset()) ^ {pattern}
        if patterns:
            here[indicator] = patterns
        if not self._counts[setting]:
            del self._counts[setting]
        if here:
            self.by_place[place] = self._same.setdefault(frozenset(here.items()), here)
        return True


def _in_common(before: Finding | None, now: Finding | None) -> int:
    """How many of their first messages two findings with one id have in common, at the same stages."""
    if before is None or now is None:
        return 0
    ours, theirs = ([*zip(each.stages, each.message_conversations, strict=True)] for each in (before, now))
    size = min(len(ours), len(theirs))
    if ours[:size] == theirs[:size]:
        return size
    return next(place for place in range(size) if ours[place] != theirs[place])


def _set_by(finding: Finding | None, sets: Sets, first: int) -> Iterable[_Set]:
    if finding is None:
        return ()
    return [(place, indicator, finding.pattern) for place, indicator in set_on(finding, sets, first)]
