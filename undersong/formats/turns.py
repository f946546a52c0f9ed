"""Where a turn begins in a plain-text transcript: a name and a colon, perhaps bold, perhaps with a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from undersong.formats import values
from undersong.models import Role

_HEAD = re.compile(
    r"\s{0,3}(?:[>#]{1,6}\s{0,3})?"
    r"(?:\[(?P<before>[^\]\n]{1,40})\]\s{0,3}-?\s{0,3})?"
    r"(?P<bold>\*\*|__)?(?P<name>[^\W\d_][\w .'’@-]{0,39}?)(?:\*\*|__)?"
    r"(?:\s{0,3}[\[(](?P<after>[^\])\n]{1,40})[\])])?(?:\*\*|__)?\s{0,3}(?::(?:\*\*|__)?(?=\s|\Z)|：(?:\*\*|__)?)"
)
# A line of a phone messenger's export: "03/02/2026, 21:14 - Dana: …" or "[03.02.26, 9:14:05 PM] Dana: …".
_STAMP = re.compile(
    r"[\u200e\u200f]{0,2}\[?"
    r"(?P<stamp>(?!\d{4}[./-]\d+[./-]\d+[ ])\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?"
    r"[ \u202f\xa0]\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:[ \u202f\xa0]?[ap]\.?[ ]?m\.?)?)"
    r"(?:\]|[ ]-)[ ][\u200e\u200f]?",
    re.IGNORECASE,
)
_SENDER = re.compile(r"(?:~[ \u202f\xa0]?)?(?P<name>[^:\n]{1,60}?):(?=\s|\Z)")
# What a messenger writes in place of a picture or of words that were taken back: in angle brackets, or behind a mark.
_INSTEAD = re.compile(
    r"\u200e[^\n]{1,200}|\u200e?<[^<>\n]{1,200}>|(?:this message was deleted|you deleted this message)\.?",
    re.IGNORECASE,
)
_PARTS = re.compile(r"(\d+)[./-](\d+)[./-](\d+),?\s(\d+)[:.](\d+)(?:[:.](\d+))?\s?([ap])?", re.IGNORECASE)
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
    stamped = _STAMP.match(line)
    if stamped and (sender := _SENDER.match(line, stamped.end())):
        return TurnHeader(sender["name"].strip(), sender.end(), stamp=stamped["stamp"])
    match = _HEAD.match(line)
    if match is None or _NOBODY.match(line):
        return None
    times = tuple(each for each in (match["before"], match["after"]) if each and any(map(str.isdigit, each)))
    return TurnHeader(match["name"].strip(), match.end(), times, bold=match["bold"] is not None)


def is_notice(line: str) -> bool:
    """Whether a line is a messenger's own: a date and a time, and nobody who speaks."""
    return _STAMP.match(line) is not None and turn_header(line) is None


def is_media_placeholder(text: str) -> bool:
    """Whether a turn of a messenger's export is no words of its sender, but a picture that was left out or the like."""
    return _INSTEAD.fullmatch(text) is not None


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


class DateStamps:
    """The dates of a messenger's export: which number is the day is told by all of them together."""

    def __init__(self, stamps: Sequence[str]) -> None:
        self._parts = {stamp: match.groups() for stamp in stamps if (match := _PARTS.match(stamp))}
        readings = [order for order in ("dmy", "mdy", "ymd") if self._fits(order, stamps)]
        self._order = readings[0] if len(readings) == 1 or self._alike(readings, stamps) else ""

    def time(self, stamp: str) -> datetime | None:
        """The moment, taken as UTC; None where it is unknown which number is the day."""
        return self._read(stamp, self._order) if self._order else None

    def _fits(self, order: str, stamps: Sequence[str]) -> bool:
        """Whether every date exists in an order and none lies before the one above it."""
        times = [self._read(stamp, order) for stamp in stamps]
        read_times = [each for each in times if each is not None]
        return (
            bool(read_times)
            and len(read_times) == len(times)
            and all(one <= other for one, other in pairwise(read_times))
        )

    def _alike(self, readings: Sequence[str], stamps: Sequence[str]) -> bool:
        """Whether the orders that fit say the same of every date, or points between the numbers say day first."""
        if len(readings) < 2:
            return False
        dotted = readings[0] == "dmy" and all("." in stamp.split()[0] for stamp in stamps)
        return dotted or all(len({self._read(stamp, order) for order in readings}) == 1 for stamp in stamps)

    def _read(self, stamp: str, order: str) -> datetime | None:
        if stamp not in self._parts:
            return None
        *numbers, half = self._parts[stamp]
        first, second, third, hour, minute, seconds = (int(each or 0) for each in numbers)
        year, month, day = _by_order(order, first, second, third)
        if half:
            hour = hour % 12 + (12 if half.lower() == "p" else 0)
        try:
            return datetime(year + 2000 if year < 100 else year, month, day, hour, minute, seconds, tzinfo=UTC)
        except ValueError:
            return None


def _by_order(order: str, first: int, second: int, third: int) -> tuple[int, int, int]:
    if order == "ymd":
        return (first if first > 31 else -1), second, third
    return (third, second, first) if order == "dmy" else (third, first, second)
