"""Plain-text transcripts: turns that begin with a name and a colon."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.notes import SkipLog
from undersong.formats.sample import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.turns import DateStamps, TurnHeader, is_media_placeholder, is_notice, role, speakers, turn_header
from undersong.models import Conversation, Message, SourceRef

LIMIT = 64 << 20  # bytes: a transcript is one conversation and stands in memory
_SAMPLE_LINES = 2000
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")


def sniff(sample: FormatSample) -> bool:
    """The first words are a turn, and two speakers take at least two turns."""
    lines = sample.text.splitlines()[:_SAMPLE_LINES]
    title = ("#", "---")
    content_lines = (line for line in lines if line.strip() and not is_notice(line))
    first = next((line for line in content_lines if turn_header(line) or not line.startswith(title)), "")
    heads = [header for line in lines if (header := turn_header(line))]
    return turn_header(first) is not None and len(speakers(heads)) > 1


def read(source: TextSource) -> Iterator[Item]:
    """One conversation; raises InputError where no turn is found or the file is too large for one."""
    notes = SkipLog()
    lines = _text(source).split("\n")
    fenced = _fenced(lines)
    heads = {
        number: header for number, line in enumerate(lines) if not fenced[number] and (header := turn_header(line))
    }
    who = speakers(heads.values())
    stamped = any(found.stamp for found in heads.values())
    starts = [number for number, found in heads.items() if found.name in who and (found.timed or not stamped)]
    if not starts:
        raise source.error("has no turn such as 'User: …'", "begin each turn with a name and a colon")
    if any(line.strip() for line in lines[: starts[0]]):
        notes.add("text before the first turn, not read", SourceRef(file=source.name, line=1))
    stamps = DateStamps([heads[number].stamp for number in starts if heads[number].stamp])
    messages = []
    for position, (start, end) in enumerate(zip(starts, [*starts[1:], len(lines)], strict=True)):
        turn_lines = _without_notices(source, lines[start:end], start, notes) if stamped else lines[start:end]
        ref = SourceRef(file=source.name, line=start + 1)
        time = _time(heads[start], stamps, ref, notes)
        message = _message(source.stem, turn_lines, heads[start], position, ref, time)
        if heads[start].stamp and is_media_placeholder(message.text):
            notes.add("picture, recording or deleted message, which the export leaves out", ref)
            message = msgspec.structs.replace(message, text="")
        messages.append(message)
    yield Conversation(
        id=source.stem,
        source_format="text",
        messages=tuple(messages),
        source_ref=SourceRef(file=source.name, line=starts[0] + 1),
    )
    yield from notes.problems()


def _text(source: TextSource) -> str:
    whole = bytearray()
    for chunk in source.chunks():
        whole += chunk
        if len(whole) > LIMIT:
            raise source.error(f"is longer than {LIMIT >> 20} MiB", "split the transcript, or write it as JSON Lines")
    try:
        return whole.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = whole.count(b"\n", 0, error.start) + 1
        raise RecordError("is not UTF-8", where=f"{source.name}:{line}", remedy="save the file as UTF-8") from error


def _without_notices(source: TextSource, lines: Sequence[str], start: int, notes: SkipLog) -> list[str]:
    """The lines of a turn without those in which the messenger itself speaks."""
    for number, line in enumerate(lines[1:], start + 2):
        if is_notice(line):
            notes.add("notice of the messenger, not read", SourceRef(file=source.name, line=number))
    return [lines[0], *(line for line in lines[1:] if not is_notice(line))]


def _time(header: TurnHeader, stamps: DateStamps, ref: SourceRef, notes: SkipLog) -> datetime | None:
    if header.stamp:
        time = stamps.time(header.stamp)
        if time is None:
            notes.add("date that may be day or month first, taken as unknown", ref)
        return time
    for text in header.times:
        try:
            return values.time(text)
        except ValueError:
            notes.add("time without a date or in an unknown form, taken as unknown", ref)
    return None


def _message(
    stem: str, lines: Sequence[str], header: TurnHeader, position: int, ref: SourceRef, time: datetime | None
) -> Message:
    return Message(
        id="",
        conversation=stem,
        position=position,
        author=header.name,
        role=role(header.name) or "participant",
        text="\n".join([lines[0][header.end :], *lines[1:]]).strip(),
        time=time,
        source_ref=ref,
    )


def _fenced(lines: list[str]) -> list[bool]:
    """Which lines stand in a code fence; a fence that is never closed is none."""
    marks = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    inside = [False] * len(lines)
    for start, end in zip(marks[::2], marks[1::2], strict=False):
        inside[start : end + 1] = [True] * (end + 1 - start)
    return inside
