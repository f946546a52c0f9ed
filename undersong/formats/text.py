"""Plain-text transcripts: turns that begin with a name and a colon."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

import msgspec

from undersong.errors import InputError, RecordError
from undersong.formats import Item, values
from undersong.formats.messenger_lines import ORDER_WORDS, Order, date_orders, has_stamp, moment, own_words, sender
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog
from undersong.models import Conversation, Message, Role, SourceRef

ASKED: dict[str, Order] = {"day-first": "dmy", "month-first": "mdy"}
REMEDY = "give --dates day-first or month-first"
BEFORE = "line of text before the first turn, not read"
LIMIT = 64 << 20  # bytes: a transcript is one conversation and stands in memory
_SAMPLE_LINES = 2000
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")


def sniff(sample: FormatSample) -> bool:
    """The first words are a turn, and two speakers take at least two turns; behind other words, known roles do."""
    lines = sample.text.splitlines()[:_SAMPLE_LINES]
    title = ("#", "---")
    content_lines = (line for line in lines if line.strip() and not is_notice(line))
    first = next((line for line in content_lines if turn_header(line) or not line.startswith(title)), "")
    fenced = _fenced(lines)
    heads = [header for number, line in enumerate(lines) if not fenced[number] and (header := turn_header(line))]
    if turn_header(first) is None:
        parties = Counter(role(header.name) for header in heads)
        return min(parties["user"], parties["assistant"]) > 0
    return len(speakers(heads)) > 1


def read(source: TextSource) -> Iterator[Item]:
    """One conversation; raises InputError where no turn is found or the file is too large for one."""
    notes = SkipLog()
    lines = whole_text(source).split("\n")
    fenced = _fenced(lines)
    heads = {
        number: header for number, line in enumerate(lines) if not fenced[number] and (header := turn_header(line))
    }
    who = speakers(heads.values())
    stamped = any(found.stamp for found in heads.values())
    starts = [number for number, found in heads.items() if found.name in who and (found.timed or not stamped)]
    if not starts:
        raise source.error("has no turn such as 'User: …'", "begin each turn with a name and a colon")
    _note_start(source, lines[: starts[0]], notes)
    order, remark = _date_order([heads[number].stamp for number in starts if heads[number].stamp], source)
    messages = []
    for position, (start, end) in enumerate(zip(starts, [*starts[1:], len(lines)], strict=True)):
        turn_lines = _without_notices(source, lines[start:end], start, notes) if stamped else lines[start:end]
        ref = SourceRef(file=source.name, line=start + 1)
        time = _time(heads[start], order, ref, notes)
        if heads[start].stamp and remark:
            notes.add(remark, ref)
        message = _message(source.stem, turn_lines, heads[start], position, ref, time)
        if heads[start].stamp:
            words = own_words(message.text)
            for what in words.remarks:
                notes.add(what, ref)
            message = msgspec.structs.replace(message, text=words.text)
        messages.append(message)
    yield Conversation(
        id=source.stem,
        source_format="text",
        messages=tuple(messages),
        source_ref=SourceRef(file=source.name, line=starts[0] + 1),
    )
    yield from notes.problems()


def whole_text(source: TextSource) -> str:
    """The text of an input that is read at once; raises InputError where it is too long or no UTF-8."""
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


def _note_start(source: TextSource, lines: Sequence[str], notes: SkipLog) -> None:
    """Note what stands before the first turn."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            what = "notice of the messenger, not read" if is_notice(line) else BEFORE
            notes.add(what, SourceRef(file=source.name, line=number))


def _without_notices(source: TextSource, lines: Sequence[str], start: int, notes: SkipLog) -> list[str]:
    """The lines of a turn without those in which the messenger itself speaks."""
    for number, line in enumerate(lines[1:], start + 2):
        if is_notice(line):
            notes.add("notice of the messenger, not read", SourceRef(file=source.name, line=number))
    return [lines[0], *(line for line in lines[1:] if not is_notice(line))]


def _date_order(stamps: Sequence[str], source: TextSource) -> tuple[Order | None, str]:
    """Which number of the dates is the day, None where it is unknown, and what there is to say of that."""
    orders = date_orders(stamps) if stamps else ()
    if len(orders) == 1 or not stamps:
        return (orders[0] if orders else None), ""
    beside = source.neighbours.ask(_orders_of) if source.neighbours else frozenset()
    shared = [order for order in orders if order in beside]
    if len(beside) == 1 and shared:
        words = ORDER_WORDS[shared[0]]
        return shared[0], f"date that may be day or month first, read as {words}, as in the files beside it"
    asked = ASKED.get(source.dates or "")
    if asked in orders:
        return asked, f"date that may be day or month first, read as {ORDER_WORDS[asked]}, as asked"
    return None, f"date that may be day or month first, taken as unknown ({REMEDY})"


def _orders_of(sources: Iterator[TextSource]) -> frozenset[Order]:
    """The orders of day and month in those exports of messengers that leave no doubt."""
    certain = set[Order]()
    for source in sources:
        with suppress(InputError, RecordError):
            head = source.head().decode("utf-8", "replace").splitlines()
            if any(map(has_stamp, head)):
                stamps = [header.stamp for line in whole_text(source).split("\n") if (header := sender(line))]
                orders = date_orders(stamps)
                certain.update(orders if len(orders) == 1 else ())
    return frozenset(certain)


def _time(header: TurnHeader, order: Order | None, ref: SourceRef, notes: SkipLog) -> datetime | None:
    if header.stamp:
        return moment(header.stamp, order) if order else None
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


_HEAD = re.compile(
    r"\s{0,3}(?:[>#]{1,6}\s{0,3})?"
    r"(?:\[(?P<before>[^\]\n]{1,40})\]\s{0,3}-?\s{0,3})?"
    r"(?P<bold>\*\*|__)?(?P<name>[^\W\d_][\w .'’@-]{0,39}?)(?:\*\*|__)?"
    r"(?:\s{0,3}[\[(](?P<after>[^\])\n]{1,40})[\])])?(?:\*\*|__)?\s{0,3}(?::(?:\*\*|__)?(?=\s|\Z)|：(?:\*\*|__)?)"
)
_SAID = re.compile(r"^(you|chatgpt|claude|gemini|copilot) said$", re.IGNORECASE)
_PASTED: dict[str, Role] = {
    "you": "user",
    "agent": "assistant",
    "claude": "assistant",
    "gemini": "assistant",
    "copilot": "assistant",
}
# The first and the last line of a program's error, pasted into a talk: nobody's turn.
_NOBODY = re.compile(r"\s*(?:Traceback \(most recent call last\):|[\w.]+(?:Error|Exception|Warning):)")


class TurnHeader(NamedTuple):
    """The head of a turn: who speaks, where the words begin, the times beside the name as they are written.

    ``stamp``: the date and time of a messenger's line. ``bold``: the name is set off.
    """

    name: str
    end: int
    times: tuple[str, ...] = ()
    stamp: str = ""
    bold: bool = False

    @property
    def marked(self) -> bool:
        """Whether more than a colon says that this is a name."""
        return self.bold or self.timed

    @property
    def timed(self) -> bool:
        """Whether a time stands beside the name."""
        return bool(self.times) or bool(self.stamp)


def turn_header(line: str) -> TurnHeader | None:
    """The head of a turn that a line begins with."""
    if has_stamp(line):
        header = sender(line)
        return TurnHeader(header.name, header.end, stamp=header.stamp) if header else None
    match = _HEAD.match(line)
    if match is None or _NOBODY.match(line):
        return None
    times = tuple(each for each in (match["before"], match["after"]) if each and any(map(str.isdigit, each)))
    return TurnHeader(match["name"].strip(), match.end(), times, bold=match["bold"] is not None)


def is_notice(line: str) -> bool:
    """Whether a line is a messenger's own: a date and a time, and nobody who speaks."""
    return has_stamp(line) and sender(line) is None


def speakers(heads: Iterable[TurnHeader]) -> Counter[str]:
    """Who takes turns. Where the known roles are two parties, such as User and Assistant, only roles and names that are
    bold or timed count; else the names that recur, and the first two, count as well: one party talks with somebody. In
    a messenger's export only lines with a time count."""
    considered = list(heads)
    if any(each.stamp for each in considered):
        considered = [each for each in considered if each.timed]
    names = Counter(each.name for each in considered)
    marked = {each.name for each in considered if each.marked}
    roles = {name for name in names if role(name)}
    parties = {role(name) for name in roles} - {"system", "tool"}
    accepted = roles | marked
    if len(parties) < 2:
        accepted |= {name for name in names if names[name] > 1} | set(list(names)[:2])
    return Counter({name: number for name, number in names.items() if name in accepted})


def role(name: str) -> Role | None:
    """The role that a name stands for, None for a name of somebody. "Agent" says who serves, not who it is."""
    pasted = _SAID.match(name)
    bare = (pasted[1] if pasted else name).lower()
    return _PASTED.get(bare) or values.role(bare)
