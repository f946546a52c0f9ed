"""A large JSON document cut into its elements, in memory bounded by one element."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

DEPTH = 200  # deeper data is no conversation, and decoders recurse
LIMIT = 32 << 20  # bytes of one record
CUT_OFF = "the file ends"  # how a fault begins that says so
_OUTER = re.compile(rb'(?:[^"\[\]{},]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)  # up to a bracket, comma or open string
_INNER = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_KEY = re.compile(rb'"([^"\\]{1,64})"\s*+:\s*+\Z')
_KEY_BYTES = 80


class JsonElement(NamedTuple):
    """One element with its byte ``offset``: ``pointer`` into the first top-level value, None in a later one, for
    which ``line`` says where it starts. ``data`` is empty where ``fault`` says what is wrong."""

    pointer: str | None
    offset: int
    line: int
    data: bytes
    fault: str = ""


def split(chunks: Iterable[bytes], lists: frozenset[str] = frozenset()) -> Iterator[JsonElement]:
    """The elements of each top-level array, of the arrays under a key in ``lists`` of a top-level object, or the
    object itself. Elements that are too long, too deep or cut off come with a ``fault``."""
    cutter = _ElementScanner(lists)
    for chunk in chunks:
        yield from cutter.feed(chunk)
    yield from cutter.end()


def too_deep(data: bytes) -> bool:
    """Whether JSON is nested deeper than DEPTH; cheap for ordinary data."""
    if data.count(b"[") + data.count(b"{") <= DEPTH:
        return False
    return any(piece.fault for piece in split((b"[", data, b"]")))


class _ElementScanner:
    """A scanner for brackets outside strings. ``level`` is the depth whose commas separate elements, 0 outside."""

    def __init__(self, lists: frozenset[str]) -> None:
        self.lists = lists
        self.depth = self.level = self.index = self.value = 0
        self.prefix = ""
        self.in_string = self.escaped = self.streamed = False
        self.parts: list[bytes] = []
        self.size = 0
        self.tail = b""
        self.fault = ""
        self.base = self.consumed = 0  # offset of the chunk in the input; what of the chunk is in an earlier piece
        self.start, self.line = 0, 1  # of the piece
        self.counted, self.lines = 0, 1  # the chunk's newlines up to ``counted`` are in ``lines``

    def feed(self, chunk: bytes) -> Iterator[JsonElement]:
        at = self.consumed = self.counted = 0
        if self.escaped and chunk:
            at, self.escaped = 1, False
        while at < len(chunk):
            if self.in_string:
                at = self._through_string(chunk, at)
                continue
            match = (_OUTER if self.depth <= self.level else _INNER).match(chunk, at)
            at = (match.end() if match else at) + 1
            if at <= len(chunk):
                yield from self._token(chunk[at - 1 : at], chunk, at)
        self._keep(chunk[self.consumed :])
        self._count_lines(chunk, len(chunk))
        self.base += len(chunk)

    def end(self) -> Iterator[JsonElement]:
        """What is left when the input has ended; a cut-off element is a fault."""
        closed = self.depth == self.level
        if not closed and not self.fault:
            self.fault = f"{CUT_OFF} inside this element"
        yield from self._piece()
        if closed and self.level:
            yield JsonElement(self._pointer(), self.start, self.line, b"", f"{CUT_OFF} before its list is closed")

    def _through_string(self, chunk: bytes, at: int) -> int:
        match = _STRING.match(chunk, at)
        stop = match.end() if match else at
        if chunk[stop : stop + 1] == b'"':
            self.in_string = False
            return stop + 1
        self.escaped = stop < len(chunk)  # a backslash is the last byte
        return len(chunk)

    def _token(self, token: bytes, chunk: bytes, at: int) -> Iterator[JsonElement]:
        if token == b'"':
            self.in_string = True
        elif token in b"[{":
            self._open(token, chunk, at)
        elif token == b"," and (not self.level or self.depth != self.level):
            return
        elif token == b"," or self.depth <= self.level:
            yield from self._end_of_element(token, chunk, at)
        else:
            self.depth -= 1
            if self.depth == 0:
                self._keep(chunk[self.consumed : at])
                yield from self._piece()
                self._next(chunk, at)

    def _end_of_element(self, token: bytes, chunk: bytes, at: int) -> Iterator[JsonElement]:
        """A comma between elements, the bracket that closes their list, or a bracket that nothing opened."""
        self._keep(chunk[self.consumed : at - 1])
        yield from self._piece()
        if token != b"," and self.depth:
            self.depth -= 1
            self.level = 0
        self._next(chunk, at)

    def _open(self, token: bytes, chunk: bytes, at: int) -> None:
        self.depth += 1
        if self.depth - self.level > DEPTH and not self.fault:
            self.fault = f"nested deeper than {DEPTH} levels"
        if self.level or token == b"{":
            return
        if self.depth == 1:
            self._enter("", chunk, at)
        elif self.depth == 2 and self.lists:
            key = _KEY.search(self.tail + chunk[max(self.consumed, at - 1 - _KEY_BYTES) : at - 1])
            name = key[1].decode("utf-8", "replace") if key else ""
            if name in self.lists:
                self.streamed = True
                self._enter(f"/{name}", chunk, at)

    def _enter(self, prefix: str, chunk: bytes, at: int) -> None:
        self.level, self.prefix, self.index = self.depth, prefix, 0
        self._next(chunk, at)

    def _next(self, chunk: bytes, at: int) -> None:
        """A new piece starts at ``at``."""
        self._count_lines(chunk, at)
        self.line = self.lines
        self.parts, self.size, self.tail, self.fault = [], 0, b"", ""
        self.start, self.consumed = self.base + at, at
        if self.depth == 0:
            self.streamed = False
            self.value += 1

    def _pointer(self) -> str | None:
        if self.value:
            return None
        return f"{self.prefix}/{self.index}" if self.level else ""

    def _piece(self) -> Iterator[JsonElement]:
        data = b"".join(self.parts)
        text = data.lstrip(b", \t\r\n" if not self.level else None)
        wanted = self.fault or (text and (self.level or not self.streamed))
        if wanted:
            skipped = len(data) - len(text)
            line = self.line + data.count(b"\n", 0, skipped)
            yield JsonElement(
                self._pointer(), self.start + skipped, line, b"" if self.fault else text.rstrip(), self.fault
            )
            self.index += 1

    def _count_lines(self, chunk: bytes, to: int) -> None:
        self.lines += chunk.count(b"\n", self.counted, to)
        self.counted = to

    def _keep(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > LIMIT:
            self.fault, self.parts = f"longer than {LIMIT >> 20} MiB", []
        elif data and not self.fault:
            self.parts.append(data)
            self.tail = (self.tail + data[-_KEY_BYTES:])[-_KEY_BYTES:]
