"""Any key of an input's own records, looked up again where a message says it stands."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import msgspec

from undersong.errors import InputError
from undersong.formats.ingest import input_files
from undersong.models import Message, SourceRef


class InputKeys:
    """The values of one key in JSON and JSON Lines, plain or gzip; None for any other input, and where it is missing.

    Looked for in the message's own record, its ``metadata``, and then in the records around it. Raises InputError for a
    file that was read before and is gone.
    """

    def __init__(self, paths: Iterable[str | Path], key: str) -> None:
        self._paths = {name: path for argument in paths for path, name in input_files(Path(argument))}
        self._key = key
        self._lines: dict[str, list[bytes]] = {}
        self._documents: dict[tuple[str, int | None], Any] = {}

    def of(self, message: Message) -> str | None:
        """The value at a message, as text."""
        ref = message.source_ref
        if ref is None or ref.file not in self._paths:
            return None
        return _nearest(self._document(ref), (ref.pointer or "").split("/")[1:], self._key)

    def _document(self, ref: SourceRef) -> Any:
        place = ref.file, ref.line
        if place not in self._documents:
            self._documents = {place: _decoded(self._bytes(ref))}  # the messages of a line follow one another
        return self._documents[place]

    def _bytes(self, ref: SourceRef) -> bytes:
        if ref.file not in self._lines:
            with _opened(self._paths[ref.file]) as file:
                self._lines = {ref.file: file.readlines()}
        lines = self._lines[ref.file]
        if ref.line is None:
            return b"".join(lines)
        return lines[ref.line - 1] if ref.line <= len(lines) else b""


def _opened(path: Path) -> IO[bytes]:
    try:
        return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]
    except OSError as error:
        what = f"cannot be read again for its keys: {error.strerror or error}"
        raise InputError(what, where=str(path), remedy="put it back, or leave --group-by away") from error


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _nearest(document: Any, pointer: Iterable[str], key: str) -> str | None:
    """The value in the innermost record on the way of ``pointer`` that has the key."""
    innermost = _value(document, key)
    for step in pointer:
        if isinstance(document, list):
            document = document[int(step)] if step.isdigit() and int(step) < len(document) else None
        else:
            document = document.get(step) if isinstance(document, dict) else None
        innermost = _value(document, key) or innermost
    return innermost


def _value(record: Any, key: str) -> str | None:
    if not isinstance(record, dict):
        return None
    metadata = record.get("metadata")
    value = record.get(key, metadata.get(key) if isinstance(metadata, dict) else None)
    return str(value) if isinstance(value, str | int | float) and str(value) else None
