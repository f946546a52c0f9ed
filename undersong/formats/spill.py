"""Bytes that wait on disk until their turn comes, written and read by any of a run's processes."""

from __future__ import annotations

import os
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, NamedTuple

from undersong.errors import StoreError


class SpillLocation(NamedTuple):
    """Where bytes lie: the process that wrote them, and where in its file."""

    process: int
    offset: int
    size: int


class SpillFile(AbstractContextManager["SpillFile"]):
    """A temporary folder with a file for each process, which vanishes with the run.

    A copy that is sent to another process knows the same folder. Raises StoreError where the disk is full.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._made = tempfile.TemporaryDirectory(prefix="undersong-") if folder is None else None
        self._folder = self._made.name if self._made else str(folder)

    def __reduce__(self) -> tuple[Any, ...]:
        return SpillFile, (self._folder,)

    def __exit__(self, *exc: object) -> None:
        for key in [key for key in _files if key[1] == self._folder]:
            _files.pop(key).close()
        if self._made:
            self._made.cleanup()

    def put(self, *parts: bytes | bytearray) -> SpillLocation:
        """Keep the parts, one after the other, in the file of this process."""
        process = os.getpid()
        try:
            file = self._file(process, "ab")
            offset = file.tell()
            for part in parts:
                file.write(part)
            file.flush()
        except OSError as error:
            raise StoreError(f"no room for what waits: {error}", remedy="free space in TMPDIR") from error
        return SpillLocation(process, offset, file.tell() - offset)

    def get(self, place: SpillLocation) -> bytes:
        """What lies there; of any process."""
        file = self._file(place.process, "rb")
        file.seek(place.offset)
        data: bytes = file.read(place.size)
        return data

    def _file(self, process: int, mode: str) -> IO[Any]:
        """An open file; none is shared between processes, since reading moves its place."""
        key = os.getpid(), self._folder, process, mode
        if key not in _files:
            _files[key] = (Path(self._folder) / f"{process}.bytes").open(mode)
        return _files[key]


_files: dict[tuple[int, str, int, str], IO[Any]] = {}
