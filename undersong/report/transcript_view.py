"""The transcript as an appendix: turns with anchors and marks, folded, and divided into pages by size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from undersong.models import LEVELS, Conversation, Message
from undersong.report.aggregates import ChartTurn
from undersong.report.citations import FULL, Citations, TextRun, anchor_of
from undersong.report.order import Facet, Facets

PAGE_TURNS, PAGE_CHARACTERS = 6000, 6_000_000  # of one page: it opens at once in any browser
FOLD = 100  # turns of a fold
HERE = 60  # turns up to which transcripts stand in the report itself; else each conversation has pages of its own
TOOL = 1500  # characters of a tool's input or result; conversations.jsonl holds all

MessageKey = tuple[str, str]  # conversation, message id


@dataclass(frozen=True)
class TurnMark:
    """A mark at a turn: ``style`` is its CSS class, ``href`` leads to where it is described."""

    style: str
    text: str
    href: str
    kind: str
    level: str | None = None


@dataclass(frozen=True)
class Tool:
    """A tool's call or result, cut to what is shown."""

    title: str
    text: str
    cut: bool
    error: bool = False


@dataclass(frozen=True)
class TurnView:
    """One message of a transcript; ``read`` says what the judge made of it."""

    message: Message
    anchor: str
    pieces: tuple[TextRun, ...]
    longer: bool
    tools: tuple[Tool, ...]
    marks: tuple[TurnMark, ...]
    facet: Facet
    read: str
    scored: bool = False


@dataclass(frozen=True)
class Fold:
    """Turns that are folded together."""

    turns: tuple[TurnView, ...]
    open: bool

    @property
    def marked(self) -> int:
        """Turns at which something stands."""
        return sum(bool(turn.marks) for turn in self.turns)


@dataclass(frozen=True)
class TranscriptPart:
    """The turns of one session that stand on one page."""

    conversation: str
    title: str | None
    session: str
    folds: tuple[Fold, ...]
    turns: int


@dataclass(frozen=True)
class Origin:
    """A conversation with a transcript, the anchor of its session, and its turns by id."""

    conversation: Conversation
    session: str
    turns: Mapping[str, ChartTurn]


def page_name(number: int) -> str:
    """The file of a page; the first one is the report itself, "" in links within it."""
    return "" if number == 0 else f"conversation-{number}.html"


def pages_of(conversations: Iterable[Conversation]) -> dict[MessageKey, int]:
    """The page of every message: all on page 0, the report, where they are few, else pages of each conversation.

    No page is above PAGE_TURNS and PAGE_CHARACTERS.
    """
    listed = list(conversations)
    if sum(len(conversation.messages) for conversation in listed) <= min(HERE, PAGE_TURNS):
        return {(conversation.id, message.id): 0 for conversation in listed for message in conversation.messages}
    places: dict[MessageKey, int] = {}
    page = 0
    for conversation in listed:
        page, turns, characters = page + 1, 0, 0
        for message in conversation.messages:
            size = _size(message)
            if turns and (turns + 1 > PAGE_TURNS or characters + size > PAGE_CHARACTERS):
                page, turns, characters = page + 1, 0, 0
            places[conversation.id, message.id] = page
            turns, characters = turns + 1, characters + size
    return places


def _size(message: Message) -> int:
    return min(FULL, len(message.text)) + sum(min(TOOL, len(result.text)) for result in message.tool_results)


def transcript_pages(
    origins: Sequence[Origin], places: Mapping[MessageKey, int], marks: Mapping[MessageKey, Sequence[TurnMark]],
    citations: Citations, facets: Facets,
) -> tuple[tuple[TranscriptPart, ...], ...]:  # fmt: skip
    """The parts of every page; the quotes that ``citations`` knows are marked in them."""
    pages: list[list[TranscriptPart]] = [[] for _ in range(max(places.values(), default=0) + 1)]
    here = set(places.values()) <= {0}
    for origin in origins:
        by_page: dict[int, list[TurnView]] = {}
        for message in origin.conversation.messages:
            place = (origin.conversation.id, message.id)
            turn = _turn(message, origin, marks.get(place, ()), citations, facets)
            by_page.setdefault(places[place], []).append(turn)
        for page, turns in by_page.items():
            conversation = origin.conversation
            folds = tuple(_folds(turns, only=len(origins) == 1 or not here))
            pages[page].append(TranscriptPart(conversation.id, conversation.title, origin.session, folds, len(turns)))
    return tuple(map(tuple, pages))


def _folds(turns: Sequence[TurnView], *, only: bool) -> Iterator[Fold]:
    """Turns FOLD by FOLD; the first fold stands open where nothing else is beside it."""
    for start in range(0, len(turns), FOLD):
        yield Fold(tuple(turns[start : start + FOLD]), only and start == 0)


def _turn(
    message: Message, origin: Origin, marks: Sequence[TurnMark], citations: Citations, facets: Facets
) -> TurnView:
    turn = origin.turns.get(message.id)
    levels = [mark.level for mark in marks if mark.level]
    facet = facets.of(
        (message.agent or message.author,), (mark.kind for mark in marks), max(levels, key=_rank, default=None),
        origin.conversation.id,
    )  # fmt: skip
    pieces, longer = citations.pieces(message)
    return TurnView(
        message=message,
        anchor=anchor_of(message),
        pieces=pieces,
        longer=longer,
        tools=tuple(_tools(message)),
        marks=tuple(marks),
        facet=facet,
        read=_read(turn),
        scored=turn is not None and turn.score is not None,
    )


def _rank(level: str) -> int:
    return LEVELS.index(level) if level in LEVELS else -1


def _read(turn: ChartTurn | None) -> str:
    """``manipulation 0.23``, or the state that says why there is no score."""
    if turn is None:
        return ""
    if turn.score is None or turn.trait is None:
        return turn.state
    return f"{turn.trait.replace('_', ' ')} {turn.score:.2f}"


def _tools(message: Message) -> Iterator[Tool]:
    for call in message.tool_calls:
        text = call.input if isinstance(call.input, str) else _json(call.input)
        yield Tool(f"calls {call.name}", text[:TOOL], len(text) > TOOL)
    for result in message.tool_results:
        if result.text.strip() and result.text in message.text and result.is_error is not True:
            continue  # it stands in the message itself
        error = result.is_error is True
        yield Tool("tool error" if error else "tool result", result.text[:TOOL], len(result.text) > TOOL, error)


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
