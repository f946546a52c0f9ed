"""Growing lines of messages → a monitor → findings: everything is kept in its store, each thing found is told once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from undersong.errors import JudgeError, RecordError, UsageError
from undersong.formats import Format
from undersong.models import Conversation, Emerging, Finding, Problem
from undersong.monitor import Observation, SyncMonitor
from undersong.watch.growth import IncrementalIngest

TOGETHER = 500  # messages that are taken together, in one update of the store


class WatchUpdate(NamedTuple):
    """Findings that are new or other than they were, and the ids of those that no longer stand.

    ``emerging`` are warnings of sequences that have come a stage further; they are no findings.
    """

    findings: tuple[Finding, ...] = ()
    retracted: tuple[str, ...] = ()
    emerging: tuple[Emerging, ...] = ()


def watch_messages(
    lines: Iterable[list[bytes]],
    form: Format,
    path: str | Path,
    name: str,
    monitor: SyncMonitor,
    *,
    warn: bool = False,
) -> Iterator[Problem | WatchUpdate]:
    """What each piece of some lines brings, and at their end what is open.

    ``path`` and ``name`` are the input's, the latter as it stands in reports. What the monitor's store knows already is
    not told again: after a restart the same lines may be given from the beginning. A judge that fails is a Problem of
    kind ``judge``, told once; its messages are asked about again. With ``warn`` sequences that are only on their way
    are told too, which reads the history of everybody who spoke. Raises StoreError where the store fails.
    """
    agents: set[str] = set()
    failure, warnings = "", _Warnings(monitor)
    with IncrementalIngest(form, path, name) as growth:
        for piece in lines:
            items = list(growth.take(piece))
            yield from (item for item in items if isinstance(item, Problem))
            for observed in _observed(monitor, [item for item in items if isinstance(item, Conversation)]):
                if isinstance(observed, Problem):
                    yield observed
                    continue
                spoke = {each.message.agent for each in observed if each.is_new}
                agents |= {each.message.agent for each in observed}
                yield _update_of(observed)
                if warn and spoke:
                    yield WatchUpdate(emerging=warnings.of(spoke))
            if str(monitor.failure or "") != failure:
                failure = str(monitor.failure or "")
                yield from _failed(monitor.failure)
        yield from growth.notes()
    yield WatchUpdate(*monitor.finish(sorted(agents)))
    if str(monitor.failure or "") != failure:
        yield from _failed(monitor.failure)


class _Warnings:
    """What is on its way, each told when it has come a stage further."""

    def __init__(self, monitor: SyncMonitor) -> None:
        self._monitor = monitor
        self._reported: dict[tuple[str, str, str | None, str], tuple[str, ...]] = {}

    def of(self, agents: Iterable[str]) -> tuple[Emerging, ...]:
        """What is new of these agents."""
        fresh = []
        for emerging in (each for agent in sorted(agents) for each in self._monitor.emerging(agent)):
            sequence = emerging.pattern, emerging.agent, emerging.target, emerging.message_ids[0]
            if self._reported.get(sequence) != emerging.missing:
                self._reported[sequence] = emerging.missing
                fresh.append(emerging)
        return tuple(fresh)


def _observed(monitor: SyncMonitor, grown: Sequence[Conversation]) -> Iterator[Problem | list[Observation]]:
    for group in _portions(grown):
        try:
            yield monitor.begin(*group)
        except (UsageError, RecordError):
            for conversation in group:  # one of them cannot be taken: the others are taken without it
                yield _alone(monitor, conversation)


def _alone(monitor: SyncMonitor, conversation: Conversation) -> Problem | list[Observation]:
    try:
        return monitor.begin(conversation)
    except (UsageError, RecordError) as error:
        return Problem(what=error.what, where=str(conversation.source_ref or ""), remedy=error.remedy)


def _portions(grown: Sequence[Conversation]) -> Iterator[list[Conversation]]:
    portion: list[Conversation] = []
    for conversation in grown:
        portion.append(conversation)
        if sum(len(one.messages) for one in portion) >= TOGETHER:
            yield portion
            portion = []
    if portion:
        yield portion


def _update_of(observations: Sequence[Observation]) -> WatchUpdate:
    findings = tuple(finding for each in observations for finding in each.found)
    return WatchUpdate(findings, tuple(name for each in observations for name in each.retracted))


def _failed(failure: JudgeError | None) -> Iterator[Problem]:
    if failure is not None:
        yield Problem(
            what=f"the judge failed: {failure.what}", where=failure.where, remedy=failure.remedy, kind="judge"
        )
