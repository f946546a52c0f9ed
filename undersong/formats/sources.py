"""Inputs as bounded streams of UTF-8 bytes: files, standard input, gzip and the members of a ZIP."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import lzma
import os
import re
import select
import stat
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, cast

from undersong.errors import InputError
from undersong.formats.binary import PARQUET, otlp_lines, otlp_messages, parquet_lines, stream

if TYPE_CHECKING:
    from undersong.formats.neighbours import Neighbours
    from undersong.formats.unread_words import UnreadWords

CHUNK = 1 << 18
SAMPLE = 1 << 16  # what detection may read; facts on the formats, detection order
BOMB_RATIO = 200  # text packs 3-20 times, deflate ends at 1,032 times
BOMB_FREE = 64 << 20  # unpacked bytes below which the ratio is not looked at
BOMB_TOTAL = 16 << 30  # unpacked bytes that no input may reach
ZIP_MEMBERS = 20_000
ZSTD = 93  # the compression method's number in a ZIP
LOCAL_HEADER = struct.Struct("<26xHH")  # of a member: the lengths of its name and of its extra field
SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj", ".eval", ".parquet", ".pb", ".zip", ".txt", ".md", ".gz")
COPY_MOST = 16 << 30  # bytes that standard input or a pipe may give
PIPE_WAIT = 60  # seconds without a byte after which a pipe counts as one that nobody writes to
_UNPACK_ERRORS = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError, RuntimeError,
    ValueError, OverflowError, struct.error, LookupError,
)  # fmt: skip
# Pairs of UTF-8, its commonest first bytes, and bytes that are no letters, quotes or dashes of Windows-1252.
_NO_WESTERN = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
    rb"|[\x81\x83\x86-\x90\x98\x9a-\x9f\xc2\xc3\xd7\xf7\xfe\xff]"
)
_ENCODINGS = ((b"\xff\xfe\x00\x00", "UTF-32"), (b"\x00\x00\xfe\xff", "UTF-32"), (b"\xff\xfe", "UTF-16"),
              (b"\xfe\xff", "UTF-16"))  # fmt: skip

_MAGIC = (
    (b"\x89PNG\r\n", "an image (PNG)"), (b"\xff\xd8\xff", "an image (JPEG)"), (b"GIF87a", "an image (GIF)"),
    (b"GIF89a", "an image (GIF)"), (b"%PDF-", "a PDF"),
    (b"\x00\x00\x00\x18ftyp", "a recording or an image (MPEG-4)"), (b"SQLite format 3\x00", "an SQLite database"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"), (b"PK\x03\x04", "a ZIP"), (b"7z\xbc\xaf", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
)  # fmt: skip


DateOrder = Literal["day-first", "month-first"]


class TextSource:
    """Text to read: ``name`` stands in every SourceRef, ``stem`` names conversations that have no id of their own."""

    def __init__(
        self,
        name: str,
        stem: str,
        open_bytes: Callable[[], IO[bytes]],
        packed: int | None = None,
        path: Path | None = None,
    ) -> None:
        self.name, self.stem, self.path = name, stem, path
        self._open, self._packed = open_bytes, packed
        self.encoding = ""  # of an input that is no UTF-8, once its start was read
        self.neighbours: Neighbours | None = None  # the other inputs of the run, where there is one
        self.dates: DateOrder | None = None  # what the user says of dates that can be read in two ways
        self.net: UnreadWords | None = None  # what looks for words that no reader takes

    def chunks(self) -> Iterator[bytes]:
        """The unpacked bytes as UTF-8 without a byte order mark; raises InputError for what is not text or a bomb."""
        total, recode = 0, None
        try:
            with self._open() as stream:
                while chunk := stream.read(CHUNK):
                    if not total:
                        self.encoding = self._encoding_of(chunk)
                        recode = codecs.getincrementaldecoder(self.encoding or "utf-8")("replace")
                        chunk = chunk.removeprefix(b"\xef\xbb\xbf")
                    total += len(chunk)
                    self._refuse_bomb(total)
                    yield recode.decode(chunk).encode() if self.encoding and recode else chunk
            if self.encoding and recode:
                yield recode.decode(b"", final=True).encode()
        except _UNPACK_ERRORS as error:
            raise self.error(f"cannot be read to its end: {error}", "get the file again from its origin") from error

    def head(self, size: int = SAMPLE) -> bytes:
        """The first bytes, for detection; raises InputError for an empty input."""
        head = bytearray()
        for chunk in self.chunks():
            head += chunk
            if len(head) >= size:
                break
        if not head.strip():
            raise self.error("is empty", "give a file with messages")
        return bytes(head[:size])

    def sibling(self, name: str) -> Path | None:
        """A file of this name in the same folder, where the input is a file and not a member of an archive."""
        if self.path is None or self.name == "-":
            return None
        candidate = self.path.parent / name
        return candidate if candidate.is_file() else None

    def error(self, what: str, remedy: str = "") -> InputError:
        """An InputError at this input."""
        return InputError(what, where=self.name, remedy=remedy)

    def _encoding_of(self, chunk: bytes) -> str:
        """The encoding that the start of an input is in, "" for UTF-8; raises InputError for what is no text."""
        for mark, encoding in _ENCODINGS:
            if chunk.startswith(mark):
                return encoding
        kind = next((kind for magic, kind in _MAGIC if chunk.startswith(magic)), None)
        if kind:
            raise self.error(f"this is {kind}, not text", "undersong reads exported text; export the conversation")
        sample = chunk[:4096]
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        if (even + odd) * 8 > len(sample):
            wide = max(even, odd) * 4 > len(sample) and min(even, odd) * 40 < len(sample)
            if not wide:
                raise self.error("is binary data, not text", "undersong reads exported text; export the conversation")
            return "UTF-16-LE" if odd > even else "UTF-16-BE"
        return "Windows-1252" if _is_western(chunk) else ""

    def _refuse_bomb(self, total: int) -> None:
        if self._packed is not None and _is_bomb(total, self._packed):
            raise self.error(
                f"unpacks to more than {BOMB_RATIO} times its size (a bomb?)", "unpack it yourself and give the files"
            )


class OpenInput(AbstractContextManager["OpenInput"]):
    """A file opened once: its hash and every later read see the same bytes, even while something appends to it."""

    def __init__(self, path: Path, name: str | None = None) -> None:
        self.name, self.path = printable_path(path) if name is None else name, path
        self.packed: list[str] = []  # archives inside a ZIP, which are not unpacked; filled by sources()
        self.encrypted: list[str] = []  # members of a ZIP that need a password
        self.others: list[str] = []  # members of other endings, such as pictures
        self.mac_notes = 0  # members in which macOS keeps icons and the like beside a file
        try:
            self._handle = _open_seekable(path)
            self.size = self._handle.seek(0, os.SEEK_END)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(
                f"cannot be read: {reason}", where=printable_path(path), remedy="check the path"
            ) from error

    def __exit__(self, *exc: object) -> None:
        self._handle.close()

    def sources(self, stem: str) -> Iterator[TextSource]:
        """The text in this input: itself, or each readable member of a ZIP; raises InputError."""
        magic = self._raw().read(4)
        if magic.startswith(b"PK\x03\x04") or magic.startswith(b"PK\x05\x06"):
            yield from self._members(stem)
        elif magic.startswith(b"\x1f\x8b"):
            yield TextSource(self.name, stem, self._gunzipped, self.size, self.path)
        elif magic == PARQUET:
            opener = partial(self._binary, parquet_lines, "Parquet", "parquet")
            yield TextSource(self.name, stem, opener, self.size, self.path)
        elif magic[:1] in (b"\n", b"\0") and (places := otlp_messages(self._handle, self.size)):
            opener = partial(self._binary, partial(otlp_lines, places=places), "OTLP protobuf", "otlp")
            yield TextSource(self.name, stem, opener, self.size, self.path)
        else:
            yield TextSource(self.name, stem, self._raw, path=self.path)

    @property
    def position(self) -> int:
        """How many bytes from the start of the file the last read ended."""
        return self._handle.tell()

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes, in hex; raises InputError where they cannot be read."""
        digest = hashlib.sha256()
        try:
            with self._raw() as stream:
                while chunk := stream.read(CHUNK):
                    digest.update(chunk)
        except OSError as error:
            raise self._error(f"cannot be read: {error.strerror}", "check the disk") from error
        return digest.hexdigest()

    def _raw(self) -> IO[bytes]:
        self._handle.seek(0, os.SEEK_END)  # drops the buffer: a reader of _binary has moved the place that they share
        self._handle.seek(0)
        return io.BufferedReader(cast(io.RawIOBase, _Window(self._handle, self.size, self.name)))

    def _binary(self, lines: Callable[[IO[bytes]], Iterator[bytes]], what: str, extra: str) -> IO[bytes]:
        """A binary input as the lines that stand for it; raises InputError without the package that reads it."""

        def made() -> Generator[bytes]:
            with os.fdopen(os.dup(self._handle.fileno()), "rb") as file:
                file.seek(0)
                yield from lines(file)

        generator = made()
        try:
            first = next(generator, b"")
        except ImportError as error:
            raise self._error(f"is {what}", f"pip install 'undersong[{extra}]'") from error
        return stream(_with_first(first, generator))

    def _gunzipped(self) -> IO[bytes]:
        return cast(IO[bytes], gzip.GzipFile(fileobj=self._raw()))

    def _members(self, stem: str) -> Iterator[TextSource]:
        members = self._listed()
        every_file = [each for each in members if not each.is_dir()]
        files = [each for each in every_file if not is_mac_note(each.filename)]
        self.mac_notes = len(every_file) - len(files)
        texts = [each for each in files if each.filename.lower().endswith(SUFFIXES)]
        self.others = sorted(each.filename for each in files if not each.filename.lower().endswith(SUFFIXES))
        stems: set[str] = set()
        for member in sorted(texts, key=lambda info: info.filename):
            if member.flag_bits & 1:
                self.encrypted.append(member.filename)
                continue
            if member.filename.lower().endswith((".zip", ".gz")):
                self.packed.append(member.filename)
            if member.filename.lower().endswith((".zip", ".gz")) or member.file_size == 0:
                continue
            inner = stem if len(texts) == 1 else unused_stem(f"{stem}/{member.filename.rpartition('.')[0]}", stems)
            name = f"{self.name}/{member.filename}"
            yield TextSource(name, inner, self._opener(member), max(member.compress_size, 1))

    def _listed(self) -> list[zipfile.ZipInfo]:
        try:
            with zipfile.ZipFile(self._handle) as archive:
                members = archive.infolist()
        except _UNPACK_ERRORS as error:
            raise self._error(f"is a damaged ZIP: {error}", "get the file again from its origin") from error
        if len(members) > ZIP_MEMBERS:
            raise self._error(f"has more than {ZIP_MEMBERS} members", "unpack it yourself and give the files")
        if _is_bomb(sum(max(each.file_size, 0) for each in members), self.size):
            raise self._error(
                f"unpacks to more than {BOMB_RATIO} times its size (a ZIP bomb?)",
                "unpack it yourself and give the files",
            )
        return members

    def _opener(self, member: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
        if member.compress_type == ZSTD:
            return lambda: self._zstd(member)
        return lambda: zipfile.ZipFile(self._handle).open(member)

    def _zstd(self, member: zipfile.ZipInfo) -> IO[bytes]:
        """A member packed with Zstandard, which Python reads from 3.14 on; raises InputError without a reader."""
        try:
            import zstandard
        except ImportError as error:
            remedy = "pip install 'undersong[zstd]', or unpack it yourself"
            raise self._error(f"is packed with Zstandard ({member.filename})", remedy) from error
        self._handle.seek(member.header_offset)
        header = self._handle.read(LOCAL_HEADER.size)
        if len(header) < LOCAL_HEADER.size:
            raise self._error("is a damaged ZIP: a member is cut off", "get the file again from its origin")
        start = self._handle.tell() + sum(LOCAL_HEADER.unpack(header))  # behind the name and the extra field
        self._handle.seek(start)
        packed = io.BufferedReader(cast(io.RawIOBase, _Window(self._handle, member.compress_size, self.name)))
        stream = zstandard.ZstdDecompressor().stream_reader(packed, closefd=True)
        return cast(IO[bytes], _ZstdStream(stream, zstandard.ZstdError))

    def _error(self, what: str, remedy: str) -> InputError:
        return InputError(what, where=self.name, remedy=remedy)


def _with_first(first: bytes, rest: Generator[bytes]) -> Generator[bytes]:
    with closing(rest):
        yield first
        yield from rest


def _is_western(chunk: bytes) -> bool:
    """Whether text that is no UTF-8 has letters beyond ASCII that all are those of Windows-1252."""
    return not chunk.isascii() and not _NO_WESTERN.search(chunk)


def is_mac_note(name: str) -> bool:
    """Whether a file is one that macOS adds beside another one, for its icon and the like: ``__MACOSX/._chat.txt``."""
    return name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith("._")


def unused_stem(stem: str, taken: set[str]) -> str:
    """A stem that is not taken yet, which it then is: STEM, STEM~2, STEM~3, …"""
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}~{number}", number + 1
    taken.add(name)
    return name


def public_name(path: Path, argument: Path) -> str:
    """The name under which an input stands in a report, which others may read: as it was given, but without the
    folders above an ``argument`` that is absolute or climbs with ``..``, since they may name a person."""
    if not argument.is_absolute() and ".." not in argument.parts:
        return printable_path(path)
    if argument.name in ("", ".."):
        return printable_path(Path(argument.resolve().name) / path.relative_to(argument))
    return printable_path(path.relative_to(argument.parent))


def printable_path(path: Path) -> str:
    """A path as text that JSON can carry, whatever bytes the file system has in it."""
    return str(path).encode("utf-8", "backslashreplace").decode()


class _Window(io.RawIOBase):
    """The first ``size`` bytes of a handle, without owning it; raises InputError where they are there no more."""

    def __init__(self, handle: IO[bytes], size: int, name: str) -> None:
        self._handle, self._left, self._name = handle, size, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data = self._handle.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        if not data and self._left and len(buffer):
            remedy = "read a copy that nothing writes to"
            raise InputError("changed while it was read", where=self._name, remedy=remedy)
        return len(data)


class _ZstdStream(io.RawIOBase):
    """Unpacked bytes of a Zstandard reader, whose own error becomes the one that other packed inputs raise."""

    def __init__(self, stream: IO[bytes], own_error: type[Exception]) -> None:
        self._stream, self._own_error = stream, own_error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        try:
            data = self._stream.read(len(buffer))
        except self._own_error as error:
            raise zlib.error(str(error)) from error
        buffer[: len(data)] = data
        return len(data)


def _open_seekable(path: Path) -> IO[bytes]:
    """A file, or a copy of what standard input or a pipe gives; raises OSError and ValueError for anything else."""
    if str(path) == "-":
        return _seekable_copy(sys.stdin.buffer)
    kind = path.stat().st_mode
    if stat.S_ISREG(kind):
        return path.open("rb")
    if not stat.S_ISFIFO(kind) and not stat.S_ISSOCK(kind):
        raise ValueError("a device or folder, not a file")
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as pipe:
        return _seekable_copy(cast(IO[bytes], pipe), wait=True)


def _seekable_copy(stream: IO[bytes], *, wait: bool = False) -> IO[bytes]:
    """What a stream gives to its end, at most COPY_MOST bytes; from a pipe where nobody writes nothing is waited for
    longer than PIPE_WAIT seconds."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115  closed by OpenInput
    size = 0
    try:
        while chunk := _next_chunk(stream, wait=wait):
            size += len(chunk)
            if size > COPY_MOST:
                raise ValueError(f"more than {COPY_MOST >> 30} GiB come out of it")
            copy.write(chunk)
    except (OSError, ValueError):
        copy.close()
        raise
    copy.seek(0)
    return copy


def _next_chunk(stream: IO[bytes], *, wait: bool) -> bytes:
    if wait and not select.select([stream], [], [], PIPE_WAIT)[0]:
        raise ValueError(f"nothing was written into this pipe for {PIPE_WAIT} seconds")
    return stream.read(CHUNK) or b""


def _is_bomb(unpacked: int, packed: int) -> bool:
    return unpacked > BOMB_TOTAL or (unpacked > BOMB_FREE and unpacked > packed * BOMB_RATIO)
