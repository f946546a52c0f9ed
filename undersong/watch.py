"""A growing file of rows → findings as they become sure: rules over JSON Lines that somebody still writes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import IO

from undersong.errors import InputError
from undersong.models import Problem, Row
from undersong.patterns.live import Changes, Live
from undersong.rows import RowReader

_CHUNK = 1 << 24  # bytes that are looked at together: what is there already comes in few, large pieces


def watch(path: str | Path, live: Live, pause: Callable[[], object] | None = None) -> Iterator[Problem | Changes]:
    """What each piece of the file (``-``: standard input) brings, as it is written.

    ``pause`` is called at the end of the file, which is then read on; without it, and at the end of standard input,
    no row follows and what is open is closed. Of several lines with one id the first that was read stands, as in
    ``detect``. Raises InputError where the file cannot be opened, became shorter, or held no row to its end.
    """
    reader = RowReader(str(path))
    for lines in _pieces(path, pause):
        rows: list[Row] = []
        for line in lines:
            item = reader.read(line)
            if isinstance(item, Problem):
                yield item
            elif item is not None:
                rows.append(item)
        if rows:
            yield live.extend(rows)
    if not reader.seen:
        raise InputError("holds no row", where=str(path), remedy="`undersong evaluate` writes such rows")
    yield live.finish()


def _pieces(path: str | Path, pause: Callable[[], object] | None) -> Iterator[list[bytes]]:
    """The lines that are there, then those that come; the last one of all need not be ended."""
    rest = b""
    try:
        with nullcontext(sys.stdin.buffer) if str(path) == "-" else Path(path).open("rb") as file:
            while data := _next(file, pause if str(path) != "-" else None):
                *lines, rest = (rest + data).split(b"\n")
                yield lines
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from error
    yield [rest]


def _next(file: IO[bytes], pause: Callable[[], object] | None) -> bytes:
    """What has been written since; b"" at the end, where nobody waits for more."""
    read: Callable[[int], bytes] = getattr(file, "read1", file.read)
    while not (data := read(_CHUNK)) and pause is not None:
        pause()
        if Path(file.name).stat().st_size < file.tell():
            remedy = "write new rows at its end, or watch the new file from its beginning"
            raise InputError("became shorter while it was watched", where=file.name, remedy=remedy)
    return data
