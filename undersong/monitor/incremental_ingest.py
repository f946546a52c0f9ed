"""Lines of messages as they come → the conversations that grew, each as an audit of all lines so far would see it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Protocol

import msgspec

from undersong.errors import UsageError
from undersong.formats import Format, Item, jsonl
from undersong.formats.ingest import stem_of
from undersong.formats.normalize import normalize_conversation
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog
from undersong.models import Conversation, Problem

UNSURE = ("text",)  # formats in which what comes later changes which messages there are
Parts = dict[str, list[Conversation]]


class Input(Protocol):
    """The parts of conversations that some lines bring."""

    def take(self, lines: list[bytes]) -> Iterator[Problem | tuple[str, list[Conversation]]]:
        """What could not be read, and each conversation that may have grown, with all its parts so far."""
        ...


class IncrementalIngest(AbstractContextManager["IncrementalIngest"]):
    """The conversations of an input that grows, and what of them is new.

    Of our own JSON Lines each line is read once. Of any other format all lines are read again whenever some came, since
    one of them may say something of another; they wait in a temporary file.
    """

    def __init__(self, form: Format, path: str | Path, name: str) -> None:
        if form.name in UNSURE:
            what = "of a plain-text transcript it is known at its end only who speaks"
            raise UsageError(what, where=name, remedy="use `undersong audit` when it is whole, or watch JSON Lines")
        self._whole = None if form.name == "jsonl" else _Whole(form, path, name)
        self._input: Input = self._whole or _Lines(stem_of(Path(path)), name)
        self._hashes: dict[str, dict[str, int]] = {}  # conversation → message id → what it was
        self._heads: dict[str, Conversation] = {}
        self._reported: set[tuple[str, str]] = set()
        self._notes: dict[str, tuple[Problem, ...]] = {}

    def __exit__(self, *exc: object) -> None:
        if self._whole is not None:
            self._whole.close()

    def take(self, lines: list[bytes]) -> Iterator[Problem | Conversation]:
        """What these lines bring: problems, and conversations with the messages that are new or other than before."""
        for item in self._input.take(lines):
            if isinstance(item, Problem):
                yield from self._once(item)
                continue
            conversation, self._notes[item[0]] = normalize_conversation(item[1])
            yield from self._news(conversation)

    def notes(self) -> Iterator[Problem]:
        """Notes on what was read otherwise than it is written: messages that repeat others, and the like."""
        yield from (note for notes in self._notes.values() for note in notes)

    def _once(self, problem: Problem) -> Iterator[Problem]:
        place = problem.where, problem.what
        if problem.kind == "note":
            self._notes[problem.what.partition("× ")[2] or str(place)] = (problem,)
        elif place not in self._reported:
            self._reported.add(place)
            yield problem

    def _news(self, conversation: Conversation) -> Iterator[Problem | Conversation]:
        """The conversation with what is new of it; nothing where all was there."""
        before, now = self._hashes.get(conversation.id, {}), dict[str, int]()
        changed = []
        for message in conversation.messages:
            now[message.id] = digest = hash(msgspec.json.encode(message))
            if before.get(message.id) != digest:
                changed.append(message)
        for name in sorted(before.keys() - now.keys()):
            what = f"message {name[:80]!r} of conversation {conversation.id[:80]!r} has another id by now"
            remedy = "give messages that may come late an id"
            yield from self._once(Problem(what=what, where=str(conversation.source_ref or ""), remedy=remedy))
        self._hashes[conversation.id] = now
        head = msgspec.structs.replace(conversation, messages=())
        if changed or self._heads.get(conversation.id) != head:
            self._heads[conversation.id] = head
            yield msgspec.structs.replace(conversation, messages=tuple(changed))


class _Lines:
    """Our own JSON Lines; the parts of each conversation are held encoded."""

    def __init__(self, stem: str, name: str) -> None:
        self._stem, self._name = stem, name
        self._number, self._notes = 0, SkipLog()
        self._parts: dict[str, list[bytes]] = {}

    def take(self, lines: list[bytes]) -> Iterator[Problem | tuple[str, list[Conversation]]]:
        grown: dict[str, None] = {}
        for line in lines:
            self._number += 1
            for item in jsonl.read_line(line, self._number, self._name, self._stem, self._notes):
                if isinstance(item, Conversation):
                    self._parts.setdefault(item.id, []).append(_encode(item))
                    grown[item.id] = None
                elif isinstance(item, Problem):
                    yield item
        yield from self._notes.problems()
        yield from ((name, [_decode(part) for part in self._parts[name]]) for name in grown)


class _Whole:
    """Any other format: all lines so far are one input."""

    def __init__(self, form: Format, path: str | Path, name: str) -> None:
        self._form = form
        self._copy = TemporaryFile()  # noqa: SIM115 - closed with the growth
        where = None if str(path) == "-" else Path(path)
        self._source = TextSource(name, stem_of(Path(path)), self._again, path=where)

    def close(self) -> None:
        """Let the lines go."""
        self._copy.close()

    def take(self, lines: list[bytes]) -> Iterator[Problem | tuple[str, list[Conversation]]]:
        self._copy.seek(0, os.SEEK_END)
        self._copy.writelines(line + b"\n" for line in lines)
        if not any(line.strip() for line in lines):
            return
        parts: Parts = {}
        for item in self._form.reader().read(self._source):
            yield from _taken(item, parts)
        yield from parts.items()

    def _again(self) -> IO[bytes]:
        self._copy.flush()
        copy = os.fdopen(os.dup(self._copy.fileno()), "rb")
        copy.seek(0)
        return copy


def _taken(item: Item, parts: Parts) -> Iterable[Problem]:
    """Put a part where it belongs; a problem is given back."""
    if isinstance(item, Conversation):
        parts.setdefault(item.id, []).append(item)
    return (item,) if isinstance(item, Problem) else ()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Conversation).decode
