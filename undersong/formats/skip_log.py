"""What a reader left out on purpose, counted, so that nothing goes in silence."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from undersong.formats import values
from undersong.models import Problem, SourceRef

EMPTY = "conversation without messages"
UNREADABLE_TIME = "time that cannot be read, taken as unknown"


class SkipLog:
    """Counts per reason, with the first place of each."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, str]] = {}

    def add(self, what: str, ref: SourceRef | str, number: int = 1) -> None:
        """Count something once more."""
        count, first = self._counts.get(what, (0, str(ref)))
        self._counts[what] = (count + number, first)

    def time(self, value: Any, ref: SourceRef) -> datetime | None:
        """The time that a value means; one that cannot be read is noted and None."""
        try:
            return values.time(value)
        except ValueError:
            self.add(UNREADABLE_TIME, ref)
            return None

    def problems(self) -> Iterator[Problem]:
        """One note per reason, such as ``3 × hidden message, not read``."""
        for what, (count, first) in self._counts.items():
            yield Problem(what=f"{count} × {what}", where=first, kind="note")


def inside(ref: SourceRef, *steps: str | int) -> SourceRef:
    """The place below ``ref``: steps of a JSON pointer, escaped."""
    escaped = (str(step)[:200].replace("~", "~0").replace("/", "~1") for step in steps)
    return SourceRef(file=ref.file, line=ref.line, pointer="/".join((ref.pointer or "", *escaped)))
