"""The lines of a file that somebody still writes, or of standard input, in the pieces in which they come."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import IO, TypeAlias

from undersong.errors import InputError

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
