"""Bytes that wait on disk until a whole run is known, written by several processes and read by one."""

from __future__ import annotations

import os
import tempfile
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import IO, NamedTuple

from undersong.errors import StoreError


class Place(NamedTuple):
    """Where bytes lie: the process that wrote them, and where in its file."""

    process: int
    offset: int
    size: int


class Waiting(AbstractContextManager["Waiting"]):
    """A temporary folder with a file for each process; it vanishes with the run. Raises StoreError for a full disk."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="undersong-")))
        self._own: tuple[int, IO[bytes]] | None = None
        self._others: dict[int, IO[bytes]] = {}

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def put(self, *parts: bytes) -> Place:
        """Keep the parts, one after the other, in the file of this process."""
        try:
            file = self._file()
            offset = file.tell()
            for part in parts:
                file.write(part)
            file.flush()
        except OSError as error:
            raise StoreError(f"no room for the rows: {error}", remedy="free space in TMPDIR") from error
        return Place(os.getpid(), offset, file.tell() - offset)

    def get(self, place: Place) -> bytes:
        """What lies there; of any process."""
        file = self._others.get(place.process)
        if file is None:
            file = self._others[place.process] = self._stack.enter_context(self._path(place.process).open("rb"))
        file.seek(place.offset)
        return file.read(place.size)

    def _file(self) -> IO[bytes]:
        if self._own is None or self._own[0] != os.getpid():  # a copy of a process has a file of its own
            self._own = os.getpid(), self._stack.enter_context(self._path(os.getpid()).open("ab"))
        return self._own[1]

    def _path(self, process: int) -> Path:
        return self._folder / f"{process}.rows"
