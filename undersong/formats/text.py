"""Plain-text transcripts: turns that begin with a name and a colon."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.notes import Notes
from undersong.formats.sample import Sample
from undersong.formats.sources import Source
from undersong.models import Conversation, Message, Role, SourceRef

LIMIT = 64 << 20  # bytes: a transcript is one conversation and stands in memory
_SAMPLE_LINES = 2000
_HEAD = re.compile(
    r"\s{0,3}(?:[>#]{1,6}\s{0,3})?"
    r"(?:\[(?P<before>[^\]\n]{1,40})\]\s{0,3}-?\s{0,3})?"
    r"(?P<bold>\*\*|__)?(?P<name>[^\W\d_][\w .'’@-]{0,39}?)(?:\*\*|__)?"
    r"(?:\s{0,3}[\[(](?P<after>[^\])\n]{1,40})[\])])?(?:\*\*|__)?\s{0,3}:(?:\*\*|__)?(?=\s|\Z)"
)
_SAID = re.compile(r"^(you|chatgpt|claude|gemini|copilot) said$", re.IGNORECASE)
_PASTED: dict[str, Role] = {"you": "user", "claude": "assistant", "gemini": "assistant", "copilot": "assistant"}
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")


def sniff(sample: Sample) -> bool:
    """The first words are a turn, and two speakers take at least two turns."""
    lines = sample.text.splitlines()[:_SAMPLE_LINES]
    title = ("#", "---")
    first = next((line for line in lines if line.strip() and (_HEAD.match(line) or not line.startswith(title))), "")
    heads = [found for line in lines if (found := _HEAD.match(line))]
    return bool(_HEAD.match(first)) and len(_speakers(heads)) > 1


def read(source: Source) -> Iterator[Item]:
    """One conversation; raises InputError where no turn is found or the file is too large for one."""
    notes = Notes()
    lines = _text(source).split("\n")
    fenced = _fenced(lines)
    heads = {number: found for number, line in enumerate(lines) if not fenced[number] and (found := _HEAD.match(line))}
    speakers = _speakers(list(heads.values()))
    starts = [number for number, found in heads.items() if _name(found) in speakers]
    if not starts:
        raise source.error("has no turn such as 'User: …'", "begin each turn with a name and a colon")
    if any(line.strip() for line in lines[: starts[0]]):
        notes.add("text before the first turn, not read", SourceRef(file=source.name, line=1))
    messages = []
    for position, (start, end) in enumerate(zip(starts, [*starts[1:], len(lines)], strict=True)):
        messages.append(_message(source, lines[start:end], heads[start], start, position, notes))
    yield Conversation(
        id=source.stem,
        source_format="text",
        messages=tuple(messages),
        source_ref=SourceRef(file=source.name, line=starts[0] + 1),
    )
    yield from notes.problems()


def _text(source: Source) -> str:
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


def _message(source: Source, lines: list[str], head: re.Match[str], start: int, position: int, notes: Notes) -> Message:
    ref = SourceRef(file=source.name, line=start + 1)
    author = _name(head)
    time = None
    for given in (head["before"], head["after"]):
        if given and time is None:
            try:
                time = values.time(given)
            except ValueError:
                notes.add("time without a date or in an unknown form, taken as unknown", ref)
    return Message(
        id="",
        conversation=source.stem,
        position=position,
        author=author,
        role=_role(author) or "participant",
        text="\n".join([lines[0][head.end() :], *lines[1:]]).strip(),
        time=time,
        source_ref=ref,
    )


def _speakers(heads: list[re.Match[str]]) -> Counter[str]:
    """Who takes turns. With a known role such as User, only roles and names that are bold or timed count; else the
    names that recur, and the first two."""
    names = Counter(_name(head) for head in heads)
    marked = {_name(head) for head in heads if head["bold"] or head["before"] or head["after"]}
    roles = {name for name in names if _role(name)}
    first = set(list(names)[:2])
    kept = roles | marked if roles else {name for name in names if names[name] > 1} | marked | first
    return Counter({name: number for name, number in names.items() if name in kept})


def _name(head: re.Match[str]) -> str:
    return head["name"].strip()


def _role(name: str) -> Role | None:
    pasted = _SAID.match(name)
    bare = pasted[1] if pasted else name
    return values.role(bare) or _PASTED.get(bare.lower())


def _fenced(lines: list[str]) -> list[bool]:
    """Which lines stand in a code fence; a fence that is never closed is none."""
    marks = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    inside = [False] * len(lines)
    for start, end in zip(marks[::2], marks[1::2], strict=False):
        inside[start : end + 1] = [True] * (end + 1 - start)
    return inside
