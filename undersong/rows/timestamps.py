"""Times as stores keep them: whole microseconds since 1970, UTC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from undersong.models import Row

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(time: datetime) -> int:
    """Whole microseconds since 1970, exact; a time without a zone counts as UTC."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def from_microseconds(time: int | None) -> datetime | None:
    """The time back from its microseconds."""
    return None if time is None else _EPOCH + time * _MICROSECOND


def with_event_times(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of one whole conversation, each with its event time: without one it has its predecessor's.

    Before the first known time it has that one; a conversation without times stays so. An abandoned branch has no part
    in this.
    """
    ordered = sorted(rows, key=lambda row: (row.position, row.id))
    last_time = next((row.time for row in ordered if row.time is not None and row.branch is None), None)
    for row in ordered:
        if row.branch is None:
            last_time = row.time if row.time is not None else last_time
        yield row if row.time is not None or last_time is None else msgspec.structs.replace(row, time=last_time)
