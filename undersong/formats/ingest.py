"""Files → Conversations: found, detected, read record by record, settled; nothing is dropped in silence."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from undersong.core.manifest import NAME, is_report
from undersong.core.text import counted
from undersong.errors import InputError, UsageError
from undersong.formats import SIZES, Format, detect, format_by_name, is_cut
from undersong.formats.field_map import FieldMap, MappedSource, suggested_map
from undersong.formats.neighbours import Neighbours, RunInputs
from undersong.formats.normalize import normalize_conversation
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import (
    SUFFIXES,
    DateOrder,
    OpenInput,
    TextSource,
    is_mac_note,
    public_name,
    unused_stem,
)
from undersong.formats.spool import Spool, SpooledConversation
from undersong.formats.unread_words import UnreadWords
from undersong.models import Conversation, InputFile, Problem

MOST_REPORTED = 100  # problems of one input that are told one by one; the rest is counted
IN_A_FOLDER = "_chat"  # what WhatsApp on iOS calls the text of every chat
TRANSCRIPT_SUFFIXES = (".txt", ".md")  # endings of what people paste
NAMED = 3  # members of an archive that a note names
Item = Conversation | Problem | InputFile
Gathered = Problem | InputFile | SpooledConversation


class CandidateFile(NamedTuple):
    """A file to read, and its name in reports; one that a folder led to may be of no known format."""

    path: Path
    folder: str | None
    name: str


def read(
    paths: str | Path | Iterable[str | Path],
    *,
    source_format: str | None = None,
    dates: DateOrder | None = None,
    fields: FieldMap | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Iterator[Item]:
    """Settled conversations of all files, with an InputFile per file and a Problem for everything that was not read.

    One path may stand alone. Folders are searched, ``-`` is standard input, gzip and ZIP are unpacked. A file that
    cannot be read is a Problem of kind ``file`` and the others go on. Messages of one conversation may come from
    several files; conversations follow when all files are read. A folder with a report of undersong is passed over.
    ``dates`` decides where the dates of a messenger's export can be read in two ways. ``progress`` is told how many
    bytes of the files are read, of how many. ``fields`` renames keys first (``field_map``). Raises UsageError for an
    unknown ``source_format`` or an empty path, and StoreError where the temporary space is full.
    """
    with Spool() as spool:
        read_items = gather(paths, spool, source_format=source_format, dates=dates, fields=fields, progress=progress)
        yield from (item for item in read_items if not isinstance(item, SpooledConversation))
        for parts in spool.conversations():
            conversation, notes = normalize_conversation(parts)
            yield from notes
            yield conversation


def gather(
    paths: str | Path | Iterable[str | Path],
    spool: Spool,
    *,
    source_format: str | None = None,
    dates: DateOrder | None = None,
    fields: FieldMap | None = None,
    hashed: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Iterator[Gathered]:
    """Read all files into a spool, from which the conversations come afterwards; see ``read``.

    What a spool that is ``early`` hands out comes at once, too. Not ``hashed``: no InputFile comes out, for who does
    not say what was read.
    """
    wanted = format_by_name(source_format) if source_format else None
    candidates = list(_expand(_paths(paths)))
    inputs = RunInputs({each.name: each.path for each in candidates if isinstance(each, CandidateFile)})
    bytes_read = _BytesRead(candidates, progress) if progress else None
    reading = _IngestRun(spool, wanted, hashed, bytes_read, inputs, dates, fields)
    for candidate in candidates:
        if isinstance(candidate, Problem):
            yield candidate
        else:
            yield from reading.file(candidate)
    yield from reading.unread_folders()
    yield from reading.clashes()


class _Count(msgspec.Struct):
    """What became of one file; ``unknown``: members of no known format; ``failed``: a part could not be read.

    ``suggested``: what its keys may mean. ``scored``: such a member has rows of scores; ``by_name``: the key under
    which it has an object of conversations.
    """

    name: str
    messages: int = 0
    skipped: int = 0
    notes: int = 0
    suggested: str = ""
    formats: list[str] = []
    unknown: list[str] = []
    failed: bool = False
    scored: bool = False
    by_name: str = ""


class _BytesRead:
    """How far reading has come: the bytes of the files before, and the place in the open one."""

    def __init__(self, candidates: Iterable[CandidateFile | Problem], progress: Callable[[int, int], object]) -> None:
        files = [each.path for each in candidates if isinstance(each, CandidateFile)]
        self._total = sum(path.stat().st_size for path in files if path.is_file())
        self._before, self._progress = 0, progress

    def tell(self, opened: OpenInput, *, whole: bool = False) -> None:
        """Say how far it is in the open file, or that it is at its end."""
        self._progress(min(self._before + (opened.size if whole else opened.position), self._total), self._total)
        self._before += opened.size if whole else 0


class _IngestRun:
    """The state over all files of a run: unique stems, companions already read, folders that gave nothing."""

    def __init__(
        self, spool: Spool, wanted: Format | None, hashed: bool, bytes_read: _BytesRead | None, inputs: RunInputs,
        dates: DateOrder | None, fields: FieldMap | None,
    ) -> None:  # fmt: skip
        self.spool, self.wanted, self.hashed, self.bytes_read = spool, wanted, hashed, bytes_read
        self.inputs, self.dates, self.fields = inputs, dates, fields
        self.number = 0
        self.names = [""]  # of each number
        self.stems: set[str] = set()
        self.companions: dict[str, int] = {}
        self.folders: dict[str, bool] = {}

    def file(self, candidate: CandidateFile) -> Iterator[Gathered]:
        """One file: its conversations go to the spool, problems and the InputFile come out."""
        if candidate.folder is not None:
            self.folders.setdefault(candidate.folder, False)
        if candidate.name in self.companions and candidate.path.stat().st_size == self.companions[candidate.name]:
            return
        try:
            with OpenInput(candidate.path, candidate.name) as opened:
                yield from self._read_opened(opened, candidate)
        except InputError as error:
            yield _file_problem(error)

    def unread_folders(self) -> Iterator[Problem]:
        """Folders in which no file was of a known format."""
        for folder, fruitful in self.folders.items():
            if not fruitful:
                what, remedy = "no file of a known format in this folder", "see: undersong formats"
                yield Problem(what=what, where=folder, remedy=remedy, kind="file")

    def clashes(self) -> Iterator[Problem]:
        """Conversations of different formats that share an id and are no one conversation."""
        for clash in self.spool.clashes():
            what = f"conversation {clash.conversation[:80]!r} is of another format in {self.names[clash.first]}"
            remedy = f"kept apart as {clash.name[:90]!r}"
            yield Problem(what=what, where=self.names[clash.file], remedy=remedy, kind="note")

    def _read_opened(self, opened: OpenInput, candidate: CandidateFile) -> Iterator[Gathered]:
        self.number += 1
        self.names.append(opened.name)
        count = _Count(name=opened.name)
        try:
            for source in opened.sources(self._stem(candidate.path)):
                try:
                    mapped = MappedSource(source, self.fields) if self.fields else source
                    yield from self._source(mapped, count, opened)
                except InputError as error:  # the other members of an archive are read all the same
                    count.failed = True
                    yield _file_problem(error)
            yield from _packed(opened, count)
            if count.formats or not (opened.packed or opened.encrypted):
                yield from self._explain_nothing_read(opened.name, count, candidate)
        except InputError as error:
            yield _file_problem(error)
        yield from _unreported(opened.name, count)
        if self.bytes_read is not None:
            self.bytes_read.tell(opened, whole=True)
        if candidate.folder is not None and count.formats:
            self.folders[candidate.folder] = True
        if self.hashed:
            yield InputFile(
                name=opened.name,
                sha256=opened.sha256,
                size=opened.size,
                source_format=count.formats[0] if count.formats else None,
                conversations=self.spool.count(self.number),
                messages=count.messages,
                skipped=count.skipped,
            )

    def _source(self, source: TextSource, count: _Count, opened: OpenInput) -> Iterator[Gathered]:
        source.neighbours, source.dates = Neighbours(self.inputs, opened.name), self.dates
        form = self._format(source)
        count.suggested = self._suggested(source, form)
        if source.encoding:
            what = f"is {source.encoding}, not UTF-8, and read as such"
            yield Problem(what=what, where=source.name, remedy="save it as UTF-8 if letters are wrong", kind="note")
        if form is None:
            if is_cut(source, SIZES[-1]):
                what = f"its first record is longer than the {SIZES[-1] >> 20} MiB by which formats are known"
                raise source.error(f"of no known format: {what}", "name the format with --from")
            count.unknown.append(source.name.removeprefix(f"{count.name}/"))
            sample = FormatSample(source)
            count.scored, count.by_name = sample.has("agent", "traits"), sample.by_name()
            return
        if form.name not in count.formats:
            count.formats.append(form.name)
        source.net = net = UnreadWords(form.name, source.name) if form.plugin is None else None
        items = form.reader().read(source)
        for item in items if net is None else net.watched(items):
            if self.bytes_read is not None:
                self.bytes_read.tell(opened)
            if isinstance(item, Conversation):
                yield from self._store(item, form, count)
            elif isinstance(item, InputFile):
                self.companions[item.name] = item.size
                yield item
            elif _is_reported(item, count):
                yield item

    def _suggested(self, source: TextSource, form: Format | None) -> str:
        """The ``--map`` for keys of somebody's own; "" where there is one, or the format is known by content."""
        is_own = form is None or (form.name == "jsonl" and self.wanted is form)
        return suggested_map(FormatSample(source)) if is_own and not self.fields else ""

    def _store(self, part: Conversation, form: Format, count: _Count) -> Iterator[Gathered]:
        """Put a conversation or a part of one into the spool, and say where it cannot be kept under its id."""
        distinct, remark = self.spool.distinct(part, self.number) if form.whole else (part, "")
        if distinct is not None:
            count.messages += self.spool.add(distinct, self.number)
            yield from self.spool.take_whole()
        if remark:
            note = Problem(what=remark, where=str(part.source_ref or count.name), kind="note")
            yield from (problem for problem in (note,) if _is_reported(problem, count))

    def _format(self, source: TextSource) -> Format | None:
        if self.wanted is None:
            return detect(source)
        return self.wanted if source.path is not None or self.wanted.knows(FormatSample(source)) else None

    def _explain_nothing_read(self, name: str, count: _Count, candidate: CandidateFile) -> Iterator[Problem]:
        """What to say of a file, or of members of an archive, that gave no message and of which nothing was said."""
        if count.failed and not count.unknown:
            return
        if count.formats and not count.messages:
            what, remedy = f"no message could be read as {count.formats[0]}", "see the problems above"
            if count.suggested:
                remedy = f"say what its keys mean: --map {count.suggested}"
            harmless = candidate.folder is not None and not count.skipped
            yield Problem(what=what, where=name, remedy=remedy, kind="note" if harmless else "file")
        elif not count.formats and candidate.folder is not None:
            yield Problem(what="of no known format, not read", where=name, kind="note")
        elif not count.formats:
            remedy = _remedy_for_unknown(candidate, count)
            yield Problem(what="of no known format", where=name, remedy=remedy, kind="file")
        elif count.unknown:
            what = f"{counted(len(count.unknown), 'member')} of no known format, not read: {_first(count.unknown)}"
            yield Problem(what=what, where=name, kind="note")

    def _stem(self, path: Path) -> str:
        """The name for conversations that have none, different for each file."""
        stem = stem_of(path)
        if stem == IN_A_FOLDER:  # the folder has the name of the chat
            stem = path.absolute().parent.name or stem
        return unused_stem(stem, self.stems)


def stem_of(path: Path) -> str:
    """The name of a file without its endings, for conversations that have none of their own."""
    stem = "stdin" if str(path) == "-" else path.name
    while stem.lower().endswith(SUFFIXES):
        stem = stem.rsplit(".", 1)[0]
    return stem.encode("utf-8", "replace").decode() or "input"


def _paths(paths: str | Path | Iterable[str | Path]) -> tuple[str | Path, ...]:
    several = (paths,) if isinstance(paths, str | Path) else tuple(paths)
    if "" in several:
        raise UsageError("a path is empty", remedy="name a file or a folder, . for this one, or - for standard input")
    return several


def _expand(paths: Iterable[str | Path]) -> Iterator[CandidateFile | Problem]:
    """Every file once, folders in sorted order, telemetry after the sessions that claim it."""
    seen: set[str] = set()
    late: list[CandidateFile] = []
    for argument in paths:
        path = Path(argument)
        alone = CandidateFile(path, None, public_name(path, path))
        for candidate in _in_folder(path) if path.is_dir() else (alone,):
            if isinstance(candidate, Problem):
                yield candidate
                continue
            place = os.path.abspath(candidate.path)
            if place in seen:
                continue
            seen.add(place)
            if candidate.path.name.endswith("telemetry.json"):
                late.append(candidate)
            else:
                yield candidate
    yield from late


def input_files(path: Path) -> Iterator[tuple[Path, str]]:
    """The files that ``read`` opens for a path, each with its name in reports: itself, or those of a folder."""
    candidates = _in_folder(path) if path.is_dir() else (CandidateFile(path, None, public_name(path, path)),)
    yield from ((each.path, each.name) for each in candidates if isinstance(each, CandidateFile))


def _in_folder(folder: Path) -> Iterator[CandidateFile | Problem]:
    other, empty, closed = 0, True, list[OSError]()
    shown_folder = public_name(folder, folder)
    for where, folders, files in os.walk(folder, onerror=closed.append):
        if NAME in files and is_report(Path(where)):
            folders.clear()
            yield Problem(what="a report of undersong, not read", where=public_name(Path(where), folder), kind="note")
            continue
        folders.sort()
        yield from _links((Path(where) / name for name in folders), folder)
        read_names = sorted(name for name in files if not is_mac_note(name))
        other += len(files) - len(read_names)
        for name in read_names:
            path = Path(where) / name
            if name.lower().endswith(SUFFIXES) and path.is_symlink() and path.is_file():
                what, remedy = "a link to a file, not followed", "give the file itself"
                yield Problem(what=what, where=public_name(path, folder), remedy=remedy, kind="note")
            elif name.lower().endswith(SUFFIXES) and path.is_file():
                empty = False
                yield CandidateFile(path, shown_folder, public_name(path, folder))
            elif name.lower().endswith(SUFFIXES):
                yield _no_file(path, public_name(path, folder))
            else:
                other += 1
    for error in closed:
        place = public_name(Path(error.filename or folder), folder)
        yield Problem(what=f"cannot be opened: {error.strerror}", where=place, remedy="check its rights", kind="file")
    if other:
        what = f"{counted(other, 'file')} of another ending than {', '.join(SUFFIXES)}, not read"
        yield Problem(what=what, where=shown_folder, kind="note")
    if empty:
        what, remedy = "no file to read in this folder", f"known endings: {', '.join(SUFFIXES)}"
        yield Problem(what=what, where=shown_folder, remedy=remedy, kind="file")


def _links(folders: Iterable[Path], argument: Path) -> Iterator[Problem]:
    for path in folders:
        if path.is_symlink():
            yield Problem(what="a link to a folder, not followed", where=public_name(path, argument), kind="note")


def _no_file(path: Path, name: str) -> Problem:
    """What is said of an entry of a folder that has a known ending and is no file."""
    if path.is_symlink() and not path.exists():
        return Problem(what="a link that leads nowhere", where=name, remedy="mend or remove it", kind="file")
    return Problem(what="no regular file, not read", where=name, kind="note")


def _packed(opened: OpenInput, count: _Count) -> Iterator[Problem]:
    """Members of an archive that are not read: packed ones, those that need a password, of macOS, of other endings."""
    if opened.encrypted:
        what = f"{counted(len(opened.encrypted), 'member')} encrypted, not read: {_first(opened.encrypted)}"
        remedy = "unpack it with its password and give the files"
        yield Problem(what=what, where=opened.name, remedy=remedy, kind="file")
    if opened.mac_notes:
        what = f"{counted(opened.mac_notes, 'member')} of macOS's own (__MACOSX, ._NAME), not read"
        yield Problem(what=what, where=opened.name, kind="note")
    if opened.others:
        what = f"{counted(len(opened.others), 'member')} of another ending, not read: {_first(opened.others)}"
        yield Problem(what=what, where=opened.name, kind="note")
    if opened.packed:
        packed = counted(len(opened.packed), "packed member")
        what, remedy = f"{packed} inside the ZIP, not read: {_first(opened.packed)}", "unpack it and give the files"
        yield Problem(what=what, where=opened.name, remedy=remedy, kind="note" if count.formats else "file")


def _remedy_for_unknown(candidate: CandidateFile, count: _Count) -> str:
    """What to do about a file of no known format, by what its keys are."""
    if count.by_name:
        return f"{count.by_name!r} holds an object: make it a list of objects with id and messages"
    if count.scored:
        return "these are rows of scores without texts: `undersong detect` reads them"
    if count.suggested:
        return f"say what its keys mean: --map {count.suggested}"
    remedy = "name the format with --from; known ones: undersong formats"
    if candidate.path.suffix.lower() in TRANSCRIPT_SUFFIXES:
        remedy += "; in a pasted talk, each turn begins with a name and a colon, such as 'Dana: …'"
    return remedy


def _first(names: list[str]) -> str:
    """The first few names."""
    return ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")


def _is_reported(problem: Problem, count: _Count) -> bool:
    """Count a problem; beyond SHOWN of a kind it is not told, so that a broken file of any size needs no memory."""
    if problem.kind == "record":
        count.skipped += 1
        return count.skipped <= MOST_REPORTED
    if problem.kind == "note":
        count.notes += 1
        return count.notes <= MOST_REPORTED
    return True


def _unreported(name: str, count: _Count) -> Iterator[Problem]:
    for number, kind in ((count.skipped, "records that could not be read"), (count.notes, "notes")):
        if number > MOST_REPORTED:
            yield Problem(what=f"{number - MOST_REPORTED} more {kind}", where=name, kind="note")


def _file_problem(error: InputError) -> Problem:
    return Problem(what=error.what, where=error.where, remedy=error.remedy, kind="file")
