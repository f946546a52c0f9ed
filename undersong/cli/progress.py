"""A progress line on standard error: what is done, how much of how much, no faster than the eye."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from undersong.pipeline.options import Progress

EVERY = 0.1  # seconds between two drawings
BAR = 24  # columns
MEGABYTE = 1_000_000


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress line on stderr while it works, only on a terminal that can go back to the start of a line."""
    from undersong.pipeline.options import silent

    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield silent
        return
    line = ProgressLine(sys.stderr, shutil.get_terminal_size().columns)
    try:
        yield line.draw
    finally:
        line.clear()


class ProgressLine:
    """One line that is written over; ``columns`` is how wide it may be."""

    def __init__(self, stream: IO[str], columns: int) -> None:
        self._stream, self._columns = stream, columns
        self._step, self._drawn, self._width = "", 0.0, 0

    def draw(self, step: str, done: int, total: int) -> None:
        """Show a step, at most every tenth of a second; a new step and the end of one at once."""
        now = time.monotonic()
        if step == self._step and done != total and now - self._drawn < EVERY:
            return
        self._step, self._drawn = step, now
        self._write(line_of(step, done, total))

    def clear(self) -> None:
        """Leave an empty line."""
        self._write("")
        self._stream.write("\r")
        self._stream.flush()

    def _write(self, line: str) -> None:
        shown = line[: self._columns - 1]
        self._stream.write(f"\r{shown:<{min(self._width, self._columns - 1)}}")
        self._stream.flush()
        self._width = len(shown)


def line_of(step: str, done: int, total: int) -> str:
    """``scan      ████████          1,024 of 3,000 messages``."""
    from undersong.pipeline.options import UNITS

    if not done and not total:
        return f"{step:<9} …"
    unit = UNITS.get(step, "messages")
    bar = f"{'█' * (BAR * min(done, total) // total):<{BAR}} " if total else ""
    return f"{step:<9} {bar}{_amount(done, unit)}{f' of {_amount(total, unit)}' if total else ''} {_noun(unit)}"


def _amount(number: int, unit: str) -> str:
    return f"{number / MEGABYTE:,.1f}" if unit == "bytes" else f"{number:,}"


def _noun(unit: str) -> str:
    return "MB" if unit == "bytes" else unit
