"""What a program holds as input: paths, conversations, and plain dicts of them, all read as files of them would be."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from undersong.core.owned_folder import scratch_folder
from undersong.errors import UsageError
from undersong.formats.field_map import FieldMap
from undersong.formats.ingest import read
from undersong.formats.normalize import normalize_conversation
from undersong.formats.sources import DateOrder
from undersong.models import Conversation, InputFile, Problem, encode

Item = Conversation | Problem | InputFile
Source: TypeAlias = str | Path | Conversation | Mapping[str, Any] | Sequence[Mapping[str, Any]]
Inputs: TypeAlias = Source | Sequence[Source]
REMEDY = "give paths, Conversations, dicts with 'messages', or lists of messages as dicts"


def read_inputs(
    inputs: Inputs,
    *,
    source_format: str | None = None,
    dates: DateOrder | None = None,
    fields: FieldMap | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Iterator[Item]:
    """Settled conversations of all inputs, as ``formats.ingest.read`` gives them of files.

    A mapping with ``messages`` is a conversation, a sequence of other mappings is the messages of one; keys are those
    of any input format, such as ``role`` and ``content``, or ``author`` and ``text``. ``progress`` is told how many
    bytes of the files are read, of how many. Raises UsageError for anything else.
    """
    sources = _sources(inputs)
    with scratch_folder() as folder:
        paths = [_path(source, folder, number) for number, source in enumerate(sources)]
        files = [path for path in paths if path is not None]
        if files or not sources:
            yield from read(files, source_format=source_format, dates=dates, fields=fields, progress=progress)
    for source in sources:
        if isinstance(source, Conversation):
            yield _input_of(source)
            conversation, notes = normalize_conversation([source])
            yield from notes
            yield conversation


def _sources(inputs: Inputs) -> list[Source]:
    """The inputs one by one."""
    if isinstance(inputs, str | Path | Conversation | Mapping):
        return [inputs]
    if not isinstance(inputs, Iterable):
        raise UsageError(f"an input is {type(inputs).__name__}", remedy=REMEDY)
    several: list[Any] = list(inputs)
    if several and all(isinstance(part, Mapping) and "messages" not in part for part in several):
        return [several]  # the messages of one conversation
    return several


def _path(source: Source, folder: Path, number: int) -> str | Path | None:
    """The path to read for a source: its own, or that of a file of it; None for a conversation."""
    if isinstance(source, str | Path):
        return source
    if isinstance(source, Conversation):
        return None
    lines = [source] if isinstance(source, Mapping) else source
    if not isinstance(lines, Sequence) or not all(isinstance(line, Mapping) for line in lines):
        raise UsageError(f"is {type(source).__name__}", where=f"inputs[{number}]", remedy=REMEDY)
    path = folder / f"input-{number}.jsonl"
    try:
        path.write_bytes(b"".join(msgspec.json.encode(dict(line)) + b"\n" for line in lines))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"is no JSON: {error}", where=f"inputs[{number}]", remedy=REMEDY) from error
    return path


def _input_of(conversation: Conversation) -> InputFile:
    body = encode(conversation)
    return InputFile(
        name=f"conversation {conversation.id}",
        sha256=hashlib.sha256(body).hexdigest(),
        size=len(body),
        source_format=conversation.source_format,
        conversations=1,
        messages=len(conversation.messages),
    )
