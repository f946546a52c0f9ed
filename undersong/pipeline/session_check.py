"""Sessions held against themselves: the verdict on each conversation, without a judge, a store or a report."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from undersong.formats.ingest import input_files, read
from undersong.models import (
    Bypass,
    Conversation,
    Message,
    Problem,
    Scan,
    SessionVerdict,
    ThreadScan,
)
from undersong.scan import load_book, scan_conversation
from undersong.verdict import session_verdict
from undersong.verdict.bypass_context import diff_lines
from undersong.verdict.edits import edits_by_command, edits_of
from undersong.verdict.shell import command_of
from undersong.verdict.transcript import ASKS

SETTLE = 0.4  # seconds that a program gets to write the end of a session which it has just announced


class CheckedSession(NamedTuple):
    """The verdict on a session and where it is from.

    ``file`` is its name in reports, told apart from another input of that name; ``path`` the file, or the archive in
    which it is ``packed``, None where that is no file on disk. ``asked`` is the position of the last request, -1
    without one.
    """

    verdict: SessionVerdict
    source_format: str
    file: str
    began: datetime | None
    asked: int
    path: Path | None = None
    packed: bool = False

    @property
    def untold(self) -> list[Bypass]:
        """The checks that were passed by or silenced since the last request, and of which agents do not speak."""
        return [each for each in self.verdict.bypasses if each.position > self.asked and each.is_hidden]


def read_sessions(
    paths: Sequence[str | Path], source_format: str | None = None
) -> tuple[list[CheckedSession], list[Problem]]:
    """Every conversation of some inputs in order with its verdict, and what could not be read.

    Inputs of one name in different folders are read apart; a session of which another has every message counts once.
    """
    sessions, problems, apart = list[CheckedSession](), list[Problem](), batches(paths)
    copies = _Copies()
    for batch in apart:
        for item in read(batch.paths, source_format=source_format):
            if isinstance(item, Conversation) and (len(apart) == 1 or copies.is_new(item, batch)):
                sessions.append(_placed(_checked(item), batch))
            elif isinstance(item, Problem):
                problems.append(msgspec.structs.replace(item, where=batch.label(item.where)))
    return [session for session in sessions if not copies.is_replaced(session)], [*problems, *copies.notes]


def _placed(session: CheckedSession, batch: Batch) -> CheckedSession:
    name = session.file
    return session._replace(file=batch.label(name), path=batch.file(name), packed=batch.is_packed(name))


class _Copies:
    """Sessions of one id in several batches: which of them are copies, as a backup is, of one that has all of it."""

    def __init__(self) -> None:
        self._words: dict[str, list[tuple[Batch, str, frozenset[int]]]] = {}
        self._replaced: set[tuple[str, str]] = set()
        self.notes: list[Problem] = []

    def is_new(self, conversation: Conversation, batch: Batch) -> bool:
        """Whether no earlier batch has all of its messages; those that it has all of are replaced."""
        words = frozenset(hash((message.role, message.text)) for message in conversation.messages)
        file = batch.label(_file_of(conversation))
        for other, name, earlier in self._words.get(conversation.id, ()):
            if other is not batch and (words <= earlier or words > earlier):
                smaller, larger = (file, name) if words <= earlier else (name, file)
                what = f"the same session as in {larger}, which has all of it: counted once"
                self.notes.append(Problem(what=what, where=smaller, kind="note"))
                if words <= earlier:
                    return False
                self._replaced.add((conversation.id, name))
        self._words.setdefault(conversation.id, []).append((batch, file, words))
        return True

    def is_replaced(self, session: CheckedSession) -> bool:
        """Whether a later batch has all of it and more."""
        return (session.verdict.conversation, session.file) in self._replaced


def checked_sessions(
    paths: Sequence[str | Path], source_format: str | None = None
) -> tuple[list[SessionVerdict], list[Problem]]:
    """The verdict on every conversation of some inputs in order, and what could not be read."""
    sessions, problems = read_sessions(paths, source_format)
    return [each.verdict for each in sessions], problems


def ending_session(
    path: Path, name: str, last_message: str, source_format: str | None = None, settle: float = SETTLE
) -> tuple[CheckedSession | None, list[Problem]]:
    """The session ``name`` of a file, else its longest one, that ends with ``last_message``; None without messages.

    The file may lag behind: where it lacks the message even after ``settle`` seconds, the message is taken as its last.
    """
    conversation, problems = _longest(path, name, source_format)
    if last_message.strip() and not _ends_with(conversation, last_message):
        time.sleep(settle)
        conversation, problems = _longest(path, name, source_format)
        if conversation is not None and not _ends_with(conversation, last_message):
            conversation = _with_message(conversation, last_message)
    return (None if conversation is None else _checked(conversation)), problems


def _checked(conversation: Conversation) -> CheckedSession:
    scans, thread = scan_conversation(conversation, load_book())
    return CheckedSession(
        verdict=session_verdict(conversation, scans, thread, ()),
        source_format=conversation.source_format,
        file=_file_of(conversation),
        began=next((message.time for message in conversation.messages if message.time), None),
        asked=_asked(conversation),
    )


def _file_of(conversation: Conversation) -> str:
    first = conversation.source_ref or conversation.messages[0].source_ref
    return first.file if first else ""


def _asked(conversation: Conversation) -> int:
    return max((message.position for message in conversation.messages if message.role in ASKS), default=-1)


def _since(conversation: Conversation, position: int) -> Iterable[Message]:
    return (each for each in conversation.messages if each.position > position and each.role == "assistant")


def _longest(path: Path, name: str, source_format: str | None) -> tuple[Conversation | None, list[Problem]]:
    items = list(read([path], source_format=source_format))
    conversations = [item for item in items if isinstance(item, Conversation)]
    chosen = max(conversations, key=lambda one: (one.id == name, len(one.messages)), default=None)
    return chosen, [item for item in items if isinstance(item, Problem)]


def _ends_with(conversation: Conversation | None, text: str) -> bool:
    """Whether the message stands in the last request already."""
    if conversation is None:
        return False
    words = " ".join(text.split())
    return any(words in " ".join(each.text.split()) for each in _since(conversation, _asked(conversation)))


def _with_message(conversation: Conversation, text: str) -> Conversation:
    before = conversation.messages
    message = Message(
        id=f"{conversation.id}#last",
        conversation=conversation.id,
        position=len(before),
        author=next((each.author for each in reversed(before) if each.role == "assistant"), "assistant"),
        role="assistant",
        text=text,
    )
    return msgspec.structs.replace(conversation, messages=(*before, message))


def verdict_of(conversation: Conversation, scans: Sequence[Scan], thread: ThreadScan) -> SessionVerdict:
    """The verdict on a conversation without a judge, which has its ledger and its noted requests."""
    return session_verdict(conversation, scans, thread, ())


def edited(message: Message) -> Iterator[tuple[str, list[str]]]:
    """The path of each edit that a message makes, with the lines that it takes away and adds."""
    for call in message.tool_calls:
        for edit in (*edits_of(call), *edits_by_command(command_of(call) or "")):
            if lines := diff_lines(edit):
                yield edit.path, lines


class Batch:
    """Inputs that are read together; ``files`` by their names in reports, which are unique among them.

    No two have the same name below the folder of the argument through which they come.
    """

    def __init__(self) -> None:
        self.paths: list[str | Path] = []
        self.files: dict[str, Path] = {}
        self.labels: dict[str, str] = {}
        self._short: dict[str, Path] = {}

    def has_room(self, short: dict[str, Path]) -> bool:
        """Whether none of these has the short name of another file in it."""
        return all(_same(file, self._short.get(name, file)) for name, file in short.items())

    def add(self, path: str | Path, files: dict[str, Path], short: dict[str, Path]) -> None:
        """Take an argument with its files."""
        self.paths.append(path)
        self.files |= files
        self._short |= short

    def file(self, name: str) -> Path | None:
        """The file, or the archive, that a name in a report is of; None where it is no file on disk."""
        path = self.files.get(self._input(name))
        return path if path is not None and path.is_file() else None

    def is_packed(self, name: str) -> bool:
        """Whether the name is that of a text in an archive."""
        return name not in self.files

    def label(self, name: str) -> str:
        """The name, told apart from the same name of another input."""
        own = self._input(name)
        return self.labels.get(own, own) + name[len(own) :]

    def _input(self, name: str) -> str:
        """The input to which a name belongs: itself, or the archive in which it lies, or a line of it."""
        if name in self.files:
            return name
        ends = [place for place, letter in enumerate(name) if letter in "/:"]
        return next((name[:end] for end in reversed(ends) if name[:end] in self.files), name)


def batches(paths: Sequence[str | Path]) -> list[Batch]:
    """The inputs in order, those of one name in batches of their own; labels are the shortest paths that differ."""
    apart: list[Batch] = []
    for path in paths:
        own = {name: file for file, name in input_files(Path(path))} if path != "" else {}
        above = os.path.dirname(os.path.abspath(path))
        short = {os.path.relpath(os.path.abspath(file), above): file for file in own.values()}
        batch = next((each for each in apart if each.has_room(short)), None)
        if batch is None:
            apart.append(batch := Batch())
        batch.add(path, own, short)
    _label(apart)
    return apart


def _label(apart: Sequence[Batch]) -> None:
    for batch in apart[1:] and apart:
        for name, file in batch.files.items():
            others = [other.files[name] for other in apart if other is not batch and name in other.files]
            if others := [other for other in others if not _same(file, other)]:
                batch.labels[name] = distinguishing(file, others, len(Path(name).parts))


def distinguishing(file: Path, others: Iterable[Path], least: int = 1) -> str:
    """The shortest end of a path that none of the others has, of ``least`` parts or more."""
    parts = Path(os.path.abspath(file)).parts
    rivals = [Path(os.path.abspath(other)).parts for other in others]
    for count in range(least, len(parts)):
        if all(parts[-count:] != rival[-count:] for rival in rivals):
            return "/".join(parts[-count:])
    return str(Path(*parts))


def _same(file: Path, other: Path) -> bool:
    return os.path.abspath(file) == os.path.abspath(other)
