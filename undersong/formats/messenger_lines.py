"""The lines of a phone messenger's export: dates, senders, and what the messenger itself writes into a message.

The layout is that of WhatsApp's "Export chat" on Android (``03/02/2026, 21:14 - Dana: …``) and iOS
(``[03.02.26, 9:14:05 PM] Dana: …``), which follows the language and region of the phone. On iOS the messenger's own
words have a left-to-right mark in front, in any language; on Android they are known by the phrases below, in English,
German, Spanish, French, Portuguese, Italian and Dutch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Literal, NamedTuple

Order = Literal["dmy", "mdy", "ymd"]
ORDERS: tuple[Order, ...] = ("dmy", "mdy", "ymd")
ORDER_WORDS: dict[Order, str] = {"dmy": "day first", "mdy": "month first", "ymd": "year first"}
LATE = timedelta(days=1)  # a message may stand behind one that was sent later, as where a phone was switched off
CLEARER = 4  # times as many steps back must the other order have

_SPACE = "[ \u202f\xa0]"
_STAMP = re.compile(
    r"[\u200e\u200f]{0,2}\[?"
    rf"(?P<stamp>(?!\d{{4}}[./-]\d+[./-]\d+[ ])\d{{1,4}}[./-]\d{{1,2}}[./-]\d{{1,4}},?"
    rf"{_SPACE}\d{{1,2}}[:.]\d{{2}}(?:[:.]\d{{2}})?(?:{_SPACE}?[ap]\.?{_SPACE}?m\.?)?)"
    r"(?:\]|[ ]-)[ ][\u200e\u200f]?",
    re.IGNORECASE,
)
_SENDER = re.compile(rf"(?:~{_SPACE}?)?(?P<name>[^:\n]{{1,60}}?):(?=\s|\Z)")
_QUOTES = (("“", "”"), ("«", "»"), ("„", "“”"))
_PARTS = re.compile(r"(\d+)[./-](\d+)[./-](\d+),?\s(\d+)[:.](\d+)(?:[:.](\d+))?\s?([ap])?", re.IGNORECASE)

# What WhatsApp on iOS writes at the top in the name of the other one: that the chat is encrypted, in seven languages.
_ENCRYPTED = re.compile(
    r"\s*\u200e[^\n]{0,160}(?:end-to-end|ende-zu-ende|extremo a extremo|bout en bout|ponta a ponta)", re.IGNORECASE
)
_DELETED = (
    "this message was deleted", "you deleted this message", "diese nachricht wurde gelöscht",
    "du hast diese nachricht gelöscht", "se eliminó este mensaje", "eliminaste este mensaje",
    "ce message a été supprimé", "vous avez supprimé ce message", "mensagem apagada", "você apagou esta mensagem",
    "esta mensagem foi apagada", "questo messaggio è stato eliminato", "hai eliminato questo messaggio",
    "dit bericht is verwijderd", "je hebt dit bericht verwijderd",
)  # fmt: skip
_EDITED = (
    "this message was edited", "diese nachricht wurde bearbeitet", "se editó este mensaje",
    "ce message a été modifié", "mensagem editada", "questo messaggio è stato modificato", "dit bericht is bewerkt",
)  # fmt: skip
_ATTACHED = (
    "file attached", "datei angehängt", "archivo adjunto", "fichier joint", "arquivo anexado", "file allegato",
    "bestand bijgevoegd",
)  # fmt: skip


def _any_of(phrases: Iterable[str]) -> str:
    return "|".join(map(re.escape, phrases))


# A whole message in place of a picture, or of words that were taken back: in angle brackets, behind a mark, a phrase.
_INSTEAD = re.compile(rf"\u200e[^\n]{{1,200}}|<[^<>\n]{{1,200}}>|(?:{_any_of(_DELETED)})\.?", re.IGNORECASE)
_MARK_BEHIND = re.compile(rf"\s*(?:\u200e<[^<>\n]{{1,200}}>|<(?:{_any_of(_EDITED)})\.?>)\Z", re.IGNORECASE)
_FILE_NAME = re.compile(r"\.\w{2,5}>\Z")
_FILE_BEFORE = re.compile(rf"\u200e?[^\n]{{1,200}}?\.\w{{2,5}} \((?:{_any_of(_ATTACHED)})\)(?:\n|\Z)", re.IGNORECASE)


class Sender(NamedTuple):
    """Who a line of a messenger's export is from; ``end``: where the words begin; ``stamp``: its date and time."""

    name: str
    end: int
    stamp: str


def has_stamp(line: str) -> bool:
    """Whether a line begins as each message, and each notice, of a messenger's export."""
    return _STAMP.match(line) is not None


def sender(line: str) -> Sender | None:
    """Who speaks in a line; None for a notice of the messenger, such as ``… changed the subject to "Trip: Rome"``."""
    stamped = _STAMP.match(line)
    named = _SENDER.match(line, stamped.end()) if stamped else None
    if stamped is None or named is None or _quotes(named["name"]) or _ENCRYPTED.match(line, named.end()):
        return None
    return Sender(named["name"].strip(), named.end(), stamped["stamp"])


def _quotes(name: str) -> bool:
    """Whether a quotation begins in what stands before a colon and ends behind it, as in no name."""
    if name.count('"') % 2:
        return True
    return any(name.count(begin) > sum(name.count(end) for end in ends) for begin, ends in _QUOTES)


class OwnWords(NamedTuple):
    """What a sender wrote, without what the messenger put in; ``remarks``: what that was."""

    text: str
    remarks: tuple[str, ...] = ()


def own_words(text: str) -> OwnWords:
    """The words of a message's sender."""
    if _INSTEAD.fullmatch(text):
        return OwnWords("", ("picture, recording or deleted message, which the export leaves out",))
    remarks = list[str]()
    while mark := _MARK_BEHIND.search(text):
        is_file = _FILE_NAME.search(mark[0]) is not None
        remarks.append("attached file, not read" if is_file else "edited message, read in its last wording")
        text = text[: mark.start()]
    if attached := _FILE_BEFORE.match(text):
        remarks.append("attached file, not read")
        text = text[attached.end() :]
    return OwnWords(text, tuple(remarks))


def date_orders(stamps: Sequence[str]) -> tuple[Order, ...]:
    """The orders of day, month and year in which the dates of an export can be meant: one, where all of them exist in
    no other order, go back in time less often than in another, or have points between the numbers, as where the day
    comes first; one, too, where all orders say the same."""
    steps_back = {order: number for order in ORDERS if (number := _steps_back(stamps, order)) is not None}
    if len(steps_back) < 2:
        return tuple(steps_back)
    best, second, *_ = sorted(steps_back, key=lambda order: steps_back[order])
    if steps_back[second] >= max(1, CLEARER * steps_back[best]):
        return (best,)
    dotted = "dmy" in steps_back and all("." in stamp.split()[0] for stamp in stamps)
    alike = all(len({moment(stamp, order) for order in steps_back}) == 1 for stamp in set(stamps))
    return ("dmy",) if dotted else (best,) if alike else tuple(steps_back)


def _steps_back(stamps: Sequence[str], order: Order) -> int | None:
    """How often a date lies well before the one above it; None where a date does not exist in this order."""
    moments = list(_moments(stamps, order))
    if not moments or None in moments:
        return None
    return sum(one - other > LATE for one, other in pairwise(moments) if one and other)


def _moments(stamps: Iterable[str], order: Order) -> Iterator[datetime | None]:
    return (moment(stamp, order) for stamp in stamps)


def moment(stamp: str, order: Order) -> datetime | None:
    """The moment of a date and time, taken as UTC; None where there is none in this order."""
    match = _PARTS.match(stamp)
    if match is None:
        return None
    *numbers, half = match.groups()
    first, second, third, hour, minute, seconds = (int(each or 0) for each in numbers)
    if order == "ymd" and first <= 31:  # a year of two digits stands behind
        return None
    year, month, day = _by_order(order, first, second, third)
    if half:
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    try:
        return datetime(year + 2000 if year < 100 else year, month, day, hour, minute, seconds, tzinfo=UTC)
    except ValueError:
        return None


def _by_order(order: Order, first: int, second: int, third: int) -> tuple[int, int, int]:
    if order == "ymd":
        return first, second, third
    return (third, second, first) if order == "dmy" else (third, first, second)
