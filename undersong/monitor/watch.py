"""Following of a growing file, or of standard input: findings of its messages or rows as they come."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import IO, NamedTuple, TypeAlias

import msgspec

from undersong.core.batches import batches
from undersong.errors import InputError, JudgeError, RecordError, UsageError
from undersong.formats import Format, detect
from undersong.formats.sources import TextSource
from undersong.models import Confirmed, Conversation, Emerging, Finding, Lead, Message, Problem, RetractedFinding, Row
from undersong.monitor import Observation, SyncMonitor
from undersong.monitor.incremental_ingest import IncrementalIngest
from undersong.patterns.live import Changes, LiveDetector
from undersong.rows.jsonl import RowReader

Pause: TypeAlias = Callable[[], object]
_CHUNK = 1 << 24  # bytes that are looked at together: what is there already comes in few, large pieces


def follow_lines(path: str | Path, pause: Pause | None) -> Iterator[list[bytes]]:
    """The lines that are there, then those that come, without their ends; the last one of all need not be ended.

    ``pause`` is called at the end of the file, which is then read on; without it, and at the end of standard input
    (``-``), no line follows. Raises InputError where the file cannot be opened, became shorter or was replaced.
    """
    rest = b""
    try:
        with nullcontext(sys.stdin.buffer) if str(path) == "-" else Path(path).open("rb") as file:
            while data := _next(file, pause if str(path) != "-" else None):
                *lines, rest = (rest + data).split(b"\n")
                yield lines
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from error
    yield [rest]


def _next(file: IO[bytes], pause: Pause | None) -> bytes:
    """What has been written since; b"" at the end, where nobody waits for more."""
    read: Callable[[int], bytes] = getattr(file, "read1", file.read)
    while not (data := read(_CHUNK)) and pause is not None:
        pause()
        there = os.stat(file.name)
        is_other = not os.path.samestat(there, os.fstat(file.fileno()))
        if is_other or there.st_size < file.tell():
            what = f"{'was replaced' if is_other else 'became shorter'} while it was watched"
            remedy = "write new lines at its end, or watch the new file from its beginning"
            raise InputError(what, where=file.name, remedy=remedy)
    return data


LOOKED_AT = 20  # lines with something on them, after which it must be clear what they are
SCORED = frozenset({"traits", "state"})  # the keys by which a row is known


class DetectedInput(NamedTuple):
    """The format of some messages, None for rows, and all their lines from the first on."""

    form: Format | None
    lines: Iterator[list[bytes]]


def detect_input(
    pieces: Iterable[list[bytes]], name: str, *, messages: bool = False, unclear: Callable[[int], object] = bool
) -> DetectedInput:
    """Wait for the lines that say what they are: rows where the first has ``traits`` or ``state``, else messages.

    With ``messages`` rows are read as messages, too, since they may hold texts. Lines of no known format are rows.
    Broken ones among objects are passed over here: whoever reads the lines says so.
    ``unclear`` hears once of how many lines it has to wait for more. Raises InputError for what is no text.
    """
    seen: list[list[bytes]] = []
    rest = iter(pieces)
    form = None
    notified = False
    for piece in rest:
        seen.append(piece)
        lines = list(islice((line for each in seen for line in each if line.strip()), LOOKED_AT))
        if not lines:
            continue
        objects = [line for line in lines if _keys(line)]
        if not messages and objects and not SCORED.isdisjoint(_keys(objects[0])):
            break
        form = detect(_source(lines, name)) or (detect(_source(objects, name)) if objects else None)
        if form is not None or len(lines) == LOOKED_AT:
            break
        if not notified:
            notified = True
            unclear(len(lines))
    return DetectedInput(form, chain(seen, rest))


def _keys(line: bytes) -> Collection[str]:
    """The keys of the object that a line holds; () where it holds none."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ()
    return value.keys() if isinstance(value, dict) else ()


def _source(lines: list[bytes], name: str) -> TextSource:
    return TextSource(name, name, lambda: io.BytesIO(b"\n".join(lines)))


TOGETHER = 500  # messages that are taken together, in one update of the store


class WatchUpdate(NamedTuple):
    """Findings that are new or other than they were, and those that no longer hold, with the reason.

    ``emerging`` are warnings of sequences that have come a stage further; they are no findings. ``constraints`` are
    messages with words of a hard constraint, with what a judge says of these. ``leads`` are those from exact words that
    are new or grew, ``leads_gone`` the ids of those that no longer hold.
    """

    findings: tuple[Finding, ...] = ()
    retracted: tuple[RetractedFinding, ...] = ()
    emerging: tuple[Emerging, ...] = ()
    constraints: tuple[tuple[Message, Confirmed], ...] = ()
    leads: tuple[Lead, ...] = ()
    leads_gone: tuple[str, ...] = ()


def watch_messages(
    lines: Iterable[list[bytes]],
    form: Format,
    path: str | Path,
    name: str,
    monitor: SyncMonitor,
    *,
    warn: bool = False,
) -> Iterator[Problem | WatchUpdate]:
    """What each piece of some lines brings, and at their end what is weighed otherwise by then.

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
    yield WatchUpdate(*monitor.finish(sorted(agents), settle=False))
    if str(monitor.failure or "") != failure:
        yield from _failed(monitor.failure)


class _Warnings:
    """Early warnings, each given when its sequence has come a stage further."""

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
    for group in batches(grown, TOGETHER, lambda one: len(one.messages)):
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


def _update_of(observations: Sequence[Observation]) -> WatchUpdate:
    findings = tuple(finding for each in observations for finding in each.found)
    retracted = tuple(gone for each in observations for gone in each.retracted)
    constraints = tuple((each.message, answer) for each in observations for answer in each.constraints)
    leads = tuple(lead for each in observations for lead in each.leads)
    leads_gone = tuple(name for each in observations for name in each.leads_gone)
    return WatchUpdate(findings, retracted, constraints=constraints, leads=leads, leads_gone=leads_gone)


def _failed(failure: JudgeError | None) -> Iterator[Problem]:
    if failure is not None:
        what = f"the judge failed: {failure.what}"
        yield Problem(what=what, where=failure.where, remedy=failure.remedy, kind="judge")


def watch(path: str | Path, live: LiveDetector, pause: Pause | None = None) -> Iterator[Problem | Changes]:
    """What each piece of a file of rows (``-``: standard input) brings, as it is written; see ``watch_rows``."""
    return watch_rows(follow_lines(path, pause), str(path), live)


def watch_rows(lines: Iterable[list[bytes]], name: str, live: LiveDetector) -> Iterator[Problem | Changes]:
    """What each piece of some lines brings, and at their end what has another balance by then.

    Of several lines with one id the first that was read stands, as in ``detect``. ``name`` is the file's. Raises
    InputError where no line held a row.
    """
    reader = RowReader(name)
    for piece in lines:
        rows: list[Row] = []
        for line in piece:
            item = reader.read(line)
            yield from reader.notes()
            if isinstance(item, Problem):
                yield item
            elif item is not None:
                rows.append(item)
        if rows:
            yield _weighed(live, live.extend(rows))
    if not reader.seen:
        raise InputError("holds no row", where=name, remedy="`undersong evaluate` writes such rows")
    yield _weighed(live, live.finish(settle=False))


def _weighed(live: LiveDetector, changes: Changes) -> Changes:
    return changes._replace(findings=live.weighed(changes.findings)) if changes.findings else changes
