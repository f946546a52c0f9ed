"""The telemetry of a session: turn times and breaks, inside the session or in a file beside it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from undersong.errors import InputError
from undersong.formats import values
from undersong.formats.records import records
from undersong.formats.sources import OpenInput
from undersong.models import Break, InputFile, Problem


class TurnTime(NamedTuple):
    """What telemetry says of one turn."""

    time: datetime | None = None
    latency: float | None = None
    tokens: int | None = None


class Overlay(NamedTuple):
    """Turn times by message id or index, and breaks; ``session`` None fits any session."""

    session: str | None = None
    turns: dict[str | int, TurnTime] = {}
    breaks: tuple[Break, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether it says nothing."""
        return not self.turns and not self.breaks

    def turn(self, message_id: str, index: int) -> TurnTime:
        """What is known of a turn."""
        return self.turns.get(message_id) or self.turns.get(index) or TurnTime()

    def over(self, other: Overlay) -> Overlay:
        """Both together; this one wins."""
        breaks = sorted({*self.breaks, *other.breaks}, key=lambda interval: (interval.start, interval.end))
        return Overlay(self.session, other.turns | self.turns, tuple(breaks))


NONE = Overlay()


def read_beside(path: Path, name: str) -> Iterator[Overlay | InputFile | Problem]:
    """The overlay in a file, the file itself as an input, and what could not be read of it."""
    try:
        with OpenInput(path, name) as opened:
            yield InputFile(name=opened.name, sha256=opened.sha256, size=opened.size, source_format="telemetry")
            for source in opened.sources(path.stem):
                for record in records(source):
                    if isinstance(record, Problem):
                        yield record
                    else:
                        turn_overlay = overlay(record.value)
                        yield turn_overlay
                        if turn_overlay.empty:
                            yield Problem(
                                what="telemetry without 'turn_times' or 'breaks'",
                                where=str(record.ref),
                                remedy="see docs/formats.md",
                            )
    except InputError as error:
        yield Problem(what=error.what, where=error.where, remedy=error.remedy, kind="file")


def overlay(value: Any) -> Overlay:
    """The overlay that an object gives; parts that cannot be read are left out."""
    if not isinstance(value, dict):
        return NONE
    turns: dict[str | int, TurnTime] = {}
    listed = value.get("turn_times")
    for number, entry in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(entry, dict):
            index = values.count(entry.get("index"))
            key = values.name(entry.get("id")) or (number if index is None else index)
            time = values.time_or_none(entry.get("ts", entry.get("time")))
            latency = values.seconds(entry.get("latency_ms"), 1e3)
            turns[key] = TurnTime(time, latency, values.count(entry.get("tokens")))
        else:
            turns[number] = TurnTime(values.time_or_none(entry))
    listed = value.get("breaks")
    breaks = (_break(each) for each in listed) if isinstance(listed, list) else ()
    session = value.get("session")
    return Overlay(values.name(session), turns, tuple(each for each in breaks if each))


def _break(value: Any) -> Break | None:
    if not isinstance(value, dict):
        return None
    start, end = values.time_or_none(value.get("start")), values.time_or_none(value.get("end"))
    return Break(start=start, end=end) if start and end and start <= end else None
