"""Citations: anchors of the messages that a report quotes, and their quotes as marked text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from undersong.models import Message, Quote

EXCERPT = 360  # characters of a quote where a finding tells its stages; the message in full is one link away
FULL = 100_000  # characters of a message that a page shows; case.json or conversations.jsonl holds the rest


@dataclass(frozen=True)
class TextRun:
    """A run of text, marked where it is quoted as evidence."""

    text: str
    marked: bool = False


@dataclass(frozen=True)
class Cite:
    """A link to a message; ``message`` None where the case does not hold it, and then there is nothing to link to.

    ``page`` is the file on which a page links to it, "" for the report itself.
    """

    id: str
    anchor: str
    message: Message | None
    page: str = ""

    @property
    def href(self) -> str:
        """The address within the folder, as seen from the report."""
        return f"{self.page}#{self.anchor}"


@dataclass(frozen=True)
class Excerpt:
    """An excerpt beside a claim: verbatim text of one message, and whether it is cut."""

    cite: Cite
    text: str
    cut_before: bool
    cut_after: bool


class Citations:
    """Finds cited messages, and remembers which of them the report links to."""

    def __init__(self, messages: Iterable[Message], placed: Mapping[tuple[str, str], str] | None = None) -> None:
        """``placed`` maps the messages that stand in a transcript to its file, "" for the report itself."""
        self._placed = placed or {}
        self._by_key = {(message.conversation, message.id): message for message in messages}
        self._by_id: dict[str, list[Message]] = {}
        for message in self._by_key.values():
            self._by_id.setdefault(message.id, []).append(message)
        self._quotes: dict[tuple[str, str], list[Quote]] = {}
        self._linked: dict[tuple[str, str], Message] = {}

    def cite(self, message_id: str, conversations: Sequence[str]) -> Cite:
        """A link to a message of one of these conversations; the appendix will hold it."""
        keys = ((name, message_id) for name in conversations)
        message = next((self._by_key[key] for key in keys if key in self._by_key), None)
        if message is None and not conversations:
            message = next(iter(self._by_id.get(message_id, ())), None)
        if message is None:
            return Cite(message_id, "", None)
        self._linked[message.conversation, message.id] = message
        page = self._placed.get((message.conversation, message.id), "")
        return Cite(message_id, anchor_of(message), message, page)

    def href(self, conversation: str, message_id: str) -> str:
        """The address of a message in a transcript, "" where it stands in none."""
        place = (conversation, message_id)
        if place not in self._placed:
            return ""
        return f"{self._placed[place]}#{anchor_of(self._by_key[place])}"

    def excerpt(self, cite: Cite, quotes: Iterable[Quote]) -> Excerpt | None:
        """The first quote of a message, or where there is none its beginning; None for a message not held."""
        message = cite.message
        if message is None:
            return None
        own = [quote for quote in quotes if quote.message_id == message.id and is_verbatim(quote, message)]
        self._quotes.setdefault((message.conversation, message.id), []).extend(own)
        start, end = (own[0].start, own[0].end) if own else (0, len(message.text))
        cut = min(end, start + EXCERPT)
        return Excerpt(cite, message.text[start:cut], start > 0, cut < len(message.text))

    def appendix(self) -> list[tuple[Message, str, tuple[TextRun, ...], bool]]:
        """Every linked message in order, its anchor, its quotes marked, and whether it is longer than what is shown."""
        order = sorted(self._linked.values(), key=lambda message: (message.conversation, message.position, message.id))
        return [(message, anchor_of(message), *self.pieces(message)) for message in order]

    def unplaced(self) -> list[tuple[Message, str, tuple[TextRun, ...], bool]]:
        """As ``appendix``, without the messages that stand in a transcript."""
        return [each for each in self.appendix() if (each[0].conversation, each[0].id) not in self._placed]

    def pieces(self, message: Message) -> tuple[tuple[TextRun, ...], bool]:
        """The text with its quotes marked, and whether it is longer than what is shown."""
        pieces, last = list[TextRun](), 0
        quotes = self._quotes.get((message.conversation, message.id), ())
        for start, end in _joined((quote.start, quote.end) for quote in quotes):
            pieces += [TextRun(message.text[last:start]), TextRun(message.text[start : min(end, FULL)], marked=True)]
            last = min(end, FULL)
        shown = tuple(piece for piece in (*pieces, TextRun(message.text[last:FULL])) if piece.text)
        return shown, len(message.text) > FULL


def anchor_of(message: Message) -> str:
    """An HTML id of letters and digits for a message, whatever its own id is made of."""
    key = f"{message.conversation}\0{message.id}".encode("utf-8", "surrogatepass")
    return "m-" + hashlib.sha256(key).hexdigest()[:12]


def is_verbatim(quote: Quote, message: Message) -> bool:
    """Whether the quote is verbatim in the message; one that is not is never printed as a quote."""
    return 0 <= quote.start < quote.end and message.text[quote.start : quote.end] == quote.text


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Overlapping spans as one, in order, none beyond what is shown."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(span for span in spans if span[0] < FULL):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
