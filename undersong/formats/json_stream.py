"""Records of a JSON input, decoded safely: JSON Lines line by line, documents element by element."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from undersong.errors import RecordError
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog, inside
from undersong.models import Message, Problem, SourceRef

if TYPE_CHECKING:
    from undersong.formats import Item

T = TypeVar("T")
FIRST_LINE = 1 << 20  # a document without a newline in its first MiB is cut by brackets
BOM = b"\xef\xbb\xbf"
LINES = (".jsonl", ".ndjson")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BROKEN = re.compile(r"^line is not (?:valid JSON|UTF-8)")  # of a line, as ``decode`` says it
_PLACE = re.compile(r"\s*\((?:byte|char) (\d+)\)")


class JsonRecord(NamedTuple):
    """A decoded value and where it stands."""

    value: Any
    ref: SourceRef


def records(source: TextSource, lists: Iterable[str] = ()) -> Iterator[JsonRecord | Problem]:
    """Every record of a JSON input; what cannot be decoded comes as a Problem and the rest goes on.

    ``lists`` names keys of a top-level object whose arrays hold the records (``posts``, ``data``).
    """
    items = _from_lines(source) if is_lines(source) else _from_document(source, frozenset(lists))
    return items if source.net is None else source.net.records(items)


def around(source: TextSource, lists: Iterable[str]) -> dict[str, Any]:
    """What a top-level object holds beside the arrays under the keys in ``lists``; empty for any other input."""
    cutter = _ElementScanner(frozenset(lists))
    for chunk in source.chunks():
        for _ in cutter.feed(chunk):
            pass
        if cutter.value:
            break
    try:
        value, _ = decode(b"".join(cutter.frame))
    except RecordError:
        return {}
    return value if isinstance(value, dict) else {}


def read_records(
    source: TextSource,
    lists: Iterable[str],
    convert: Callable[[JsonRecord, str, SkipLog], Iterator[Item]],
) -> Iterator[Item]:
    """What ``convert`` makes of each record of an input, then notes on what it left out.

    ``convert`` takes the record, an id for a conversation without one of its own, and the log of what is left out.
    """
    notes = SkipLog(source.net)
    for number, record in enumerate(records(source, lists)):
        if isinstance(record, Problem):
            yield record
        else:
            yield from convert(record, f"{source.stem}-{number}", notes)
            notes.settle()
    yield from notes.problems()


def elements(values: Iterable[Any], ref: SourceRef, *steps: str) -> Iterator[JsonRecord]:
    """The elements of a list that stands at some steps below ``ref``."""
    for index, value in enumerate(values):
        yield JsonRecord(value, inside(ref, *steps, index))


def problems_of(
    items: Iterable[JsonRecord | Problem], take: Callable[[Any, SourceRef], object], prefix: str = ""
) -> Iterator[Problem]:
    """Hand each record to ``take``; yields the problems among them, and one for each that ``take`` cannot read."""
    for item in items:
        if isinstance(item, Problem):
            yield item
            continue
        try:
            take(item.value, item.ref)
        except RecordError as error:
            yield Problem(what=f"{prefix}{error.what}", where=str(item.ref))


def is_lines(source: TextSource) -> bool:
    """Whether an input is JSON Lines, which its first two lines that are not blank say.

    It is where the first holds a whole JSON value, or is broken and the second begins another object. Anything else is
    a document: values one after the other, in any layout. So is a single line, unless the name says otherwise.
    """
    head = _first_line(source)
    lines = [line for line in head.split(b"\n") if line.strip()]
    if len(lines) < 2:
        return source.name.lower().removesuffix(".gz").endswith(LINES) and len(head) < FIRST_LINE
    if lines[0].lstrip().startswith(b"["):
        return _is_value(lines[0]) and lines[1].lstrip().startswith(b"[")
    if not lines[0].lstrip().startswith(b"{"):
        return True
    return lines[1].startswith(b"{") or _is_value(lines[0])


class InputLine(NamedTuple):
    """A line with its number; ``data`` is None where it is longer than 32 MiB. Only the last may not be ``ended``."""

    number: int
    data: bytes | None
    ended: bool = True


def lines(source: TextSource) -> Iterator[tuple[int, bytes | None]]:
    """Lines with their number; None for a line longer than 32 MiB, which is passed over in bounded memory."""
    return (line[:2] for line in input_lines(source))


def input_lines(source: TextSource) -> Iterator[InputLine]:
    """The lines of an input; one that is too long is passed over in bounded memory."""
    number, parts, size = 1, list[bytes](), 0
    for chunk in source.chunks():
        first, *others = chunk.split(b"\n")
        for piece in others:
            size += len(first)
            yield InputLine(number, None if size > LIMIT else b"".join((*parts, first)))
            number, parts, size, first = number + 1, [], 0, piece
        size += len(first)
        parts = [] if size > LIMIT else [*parts, first] if first else parts
    if size:
        yield InputLine(number, None if size > LIMIT else b"".join(parts), ended=False)


def with_cut(items: Iterable[T], line: InputLine, name: str) -> Iterator[T | Problem]:
    """What came of a line; of one that nothing ends and that is no JSON also that its file is cut off there."""
    for item in items:
        yield item
        if not line.ended and isinstance(item, Problem) and item.kind == "record" and _BROKEN.search(item.what):
            yield cut_off(name)


def cut_off(name: str) -> Problem:
    """What is said of an input that ends within a record."""
    remedy = "get the file again from its origin"
    return Problem(what="is cut off before its end", where=name, remedy=remedy, kind="file")


def decode(data: bytes) -> tuple[Any, str]:
    """The value of a JSON text, and what was changed to read it; raises RecordError saying what is wrong."""
    if too_deep(data):
        raise RecordError("is nested deeper than 200 levels")
    try:
        return msgspec.json.decode(data), ""
    except UnicodeDecodeError as error:
        raise RecordError("is not UTF-8", remedy="save the file as UTF-8") from error
    except (msgspec.DecodeError, RecursionError) as error:
        return _decode_leniently(data, str(error))


def _decode_leniently(data: bytes, why: str) -> tuple[Any, str]:
    """What Python and JavaScript write although it is not JSON: lone surrogates, NaN."""
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=lambda _: None)
    except UnicodeDecodeError as error:
        raise RecordError("is not UTF-8", remedy="save the file as UTF-8") from error
    except (ValueError, RecursionError) as error:
        place = _PLACE.sub(r" at byte \1", why)
        raise RecordError(f"is not valid JSON: {place}", remedy="mend or remove it") from error
    return _clean(value), "is not strict JSON: half a surrogate pair is read as U+FFFD, NaN and its like as null"


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {_clean(name): _clean(item) for name, item in value.items()}
    return value


def too_long(ref: SourceRef) -> Problem:
    """What is said of a line beyond the limit."""
    return Problem(what=f"line is longer than {LIMIT >> 20} MiB", where=str(ref), remedy="split the message")


def _from_lines(source: TextSource) -> Iterator[JsonRecord | Problem]:
    for line in input_lines(source):
        ref = SourceRef(file=source.name, line=line.number)
        if line.data is None:
            yield too_long(ref)
        elif line.data.strip():
            yield from with_cut(decoded(line.data, ref, "line", 0), line, source.name)


def _from_document(source: TextSource, lists: frozenset[str]) -> Iterator[JsonRecord | Problem]:
    cutter, is_whole = _ElementScanner(lists), True
    for piece in cutter.elements(source.chunks()):
        line = piece.line if piece.pointer is None else None
        ref = SourceRef(file=source.name, line=line, pointer=piece.pointer)
        if piece.fault:
            is_whole = False
            yield Problem(what=f"element at byte {piece.offset}: {piece.fault}", where=str(ref))
            if piece.fault.startswith(CUT_OFF):
                yield cut_off(source.name)
        else:
            yield from decoded(piece.data, ref, "element", piece.offset)
    if is_whole and cutter.frame:
        yield from _framed(b"".join(cutter.frame), source)


def _framed(frame: bytes, source: TextSource) -> Iterator[Problem]:
    """A Problem where what stands around the records is no JSON: some behind the damage may have been passed over."""
    ref = SourceRef(file=source.name)
    try:
        value, _ = decode(frame)
        if source.net is not None:
            source.net.record(value, ref)
    except RecordError as error:
        what = f"what stands around its records {error.what.partition(' at byte')[0]}: some may have been passed over"
        yield Problem(what=what, where=str(ref), remedy="get the file again from its origin")


def decoded(data: bytes, ref: SourceRef, unit: str, offset: int) -> Iterator[JsonRecord | Problem]:
    """The Record of one JSON text, after a Problem or note of what is wrong with it."""
    place = f"{unit} at byte {offset}" if offset else unit
    try:
        value, changed = decode(data)
    except RecordError as error:
        yield Problem(what=f"{place} {error.what}", where=str(ref), remedy=error.remedy)
        return
    if changed:
        yield Problem(what=f"{place} {changed}", where=str(ref), kind="note")
    yield JsonRecord(value, ref)


def _first_line(source: TextSource) -> bytes:
    """The start of an input, as far as its first newline and at least a little beyond."""
    head = bytearray()
    for chunk in source.chunks():
        head += chunk
        if b"\n" in head or len(head) >= FIRST_LINE:
            break
    return bytes(head)


def _is_value(line: bytes) -> bool:
    try:
        return isinstance(decode(line)[0], dict | list)
    except RecordError:
        return False


def as_read(message: Message) -> Message:
    """A message that a program made, with the values that a file of it would have.

    Half a surrogate pair is read as U+FFFD, NaN and its like are None. Raises RecordError for what no file can hold.
    """
    try:
        data = json.dumps(_clean(msgspec.to_builtins(message, str_keys=True))).encode()
        if too_deep(data):
            raise RecordError("a message that is nested too deep", remedy="leave out what a tool was given")
        return msgspec.json.decode(data, type=Message)
    except (TypeError, OverflowError, RecursionError, msgspec.DecodeError) as error:
        raise RecordError(f"a message that cannot be kept: {error}", remedy="give it plain values") from error


DEPTH = 200  # deeper data is no conversation, and decoders recurse
LIMIT = 32 << 20  # bytes of one record
CUT_OFF = "the file ends"  # how a fault begins that says so
_OUTER = re.compile(rb'(?:[^"\[\]{},]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)  # up to a bracket, comma or open string
_INNER = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_RUN = re.compile(rb'"(?:(?:[^"\\]++|\\.)*+")?+|[\[{]++|[\]}]++', re.DOTALL)  # a string, or brackets of one direction
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
    return _ElementScanner(lists).elements(chunks)


def too_deep(data: bytes) -> bool:
    """Whether JSON is nested deeper than DEPTH; cheap for ordinary data."""
    if data.find(b"[", 1) < 0 and data.find(b"{", 1) < 0:  # an object of plain values: much faster than to count
        return False
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
        self.frame: list[bytes] = []  # what stands around the streamed arrays of the first value
        self.size = 0
        self.tail = b""
        self.fault = ""
        self.base = self.consumed = 0  # offset of the chunk in the input; what of the chunk is in an earlier piece
        self.start, self.line = 0, 1  # of the piece
        self.counted, self.lines = 0, 1  # the chunk's newlines up to ``counted`` are in ``lines``

    def elements(self, chunks: Iterable[bytes]) -> Iterator[JsonElement]:
        """All elements of an input; ``frame`` is whole then."""
        for chunk in chunks:
            yield from self.feed(chunk)
        yield from self.end()

    def feed(self, chunk: bytes) -> Iterator[JsonElement]:
        at = self.consumed = self.counted = 0
        if self.escaped and chunk:
            at, self.escaped = 1, False
        while at < len(chunk):
            if self.in_string:
                at = self._through_string(chunk, at)
                continue
            if self.depth > (self.level or 2):  # deep within an element no comma and no key matters
                at = self._within_element(chunk, at, self.level or 2)
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

    def _within_element(self, chunk: bytes, at: int, floor: int) -> int:
        """The place behind the bracket that leads back to the depth ``floor``, or the end of what is whole."""
        depth = self.depth
        for match in _RUN.finditer(chunk, at):
            run = match.group()
            if run[0] in b"[{":
                depth += len(run)
                if depth - self.level > DEPTH and not self.fault:
                    self.fault = f"nested deeper than {DEPTH} levels"
            elif run[0] in b"]}":
                if depth - len(run) <= floor:
                    self.depth = floor
                    return match.start() + depth - floor
                depth -= len(run)
            elif len(run) == 1:
                self.in_string = True
                break
        self.depth = depth
        return match.end() if self.in_string else len(chunk)

    def _token(self, token: bytes, chunk: bytes, at: int) -> Iterator[JsonElement]:
        if token == b'"':
            self.in_string = True
        elif token in b"[{":
            yield from self._open(token, chunk, at)
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
        if self.streamed and not self.level:
            self.parts.append(b"]")

    def _open(self, token: bytes, chunk: bytes, at: int) -> Iterator[JsonElement]:
        if self.depth == 0 and token == b"[":
            self._keep(chunk[self.consumed : at - 1])
            self.consumed = at - 1
            yield from self._piece()  # what stands before a list
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
                self._keep(chunk[self.consumed : at])
                self._frame()
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
        if self.streamed and not self.level:
            self._frame()
        text = data.lstrip(b", \t\r\n" if not self.level else None)
        wanted = self.fault or (text and (self.level or not self.streamed))
        if wanted:
            skipped = len(data) - len(text)
            line = self.line + data.count(b"\n", 0, skipped)
            yield JsonElement(
                self._pointer(), self.start + skipped, line, b"" if self.fault else text.rstrip(), self.fault
            )
            self.index += 1

    def _frame(self) -> None:
        if not self.value and not self.fault:
            self.frame += self.parts

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
