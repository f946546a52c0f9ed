"""What a first screen says of requests that are worth a look together: a sentence for each speaker, and the words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from undersong.datafiles.verdict_config import requests_config
from undersong.models import Case, Moment, SessionVerdict
from undersong.models.verdict import REQUEST
from undersong.report.opening_choice import DatedLine
from undersong.report.opening_phrases import name_of, turns_words
from undersong.report.order import order_sessions

LINES = 8  # sentences of a speaker that a first screen shows


class RequestsTogether(NamedTuple):
    """The requests of one speaker, gravest first: ``does`` says all of it, ``lines`` are the sentences that do."""

    session: SessionVerdict
    does: str
    lines: tuple[DatedLine, ...]


def requests_together(case: Case) -> Iterator[RequestsTogether]:
    """Every speaker whose requests are noted, in the order of the sessions, who asks most kinds of things first."""
    for session in order_sessions(case):
        speakers: dict[str, list[Moment]] = {}
        for item in session.moments:
            if item.code == REQUEST and item.quotes:
                speakers.setdefault(item.agent, []).append(item)
        for own in sorted(speakers.values(), key=lambda items: -len({item.title for item in items})):
            ordered = sorted(own, key=lambda item: (_gravity(item), item.position))
            yield RequestsTogether(session, _does(ordered), _lines(ordered, session))


def _gravity(item: Moment) -> int:
    """The place of a request's kind among all kinds, 0 the gravest."""
    config = requests_config()
    does = [config.asks[kind].does for kind in config.gravest_first]
    return next((place for place, words in enumerate(does) if words == _kind(item)), len(does))


def _kind(item: Moment) -> str:
    return f"{item.title[0].lower()}{item.title[1:]}"


def _does(items: Sequence[Moment]) -> str:
    """``asks for money (turns 11 and 17) and asks that others are kept out of it (turn 13)``."""
    turns: dict[str, set[int]] = {}
    for item in items:
        turns.setdefault(_kind(item), set()).add(item.position)
    parts = [f"{kind} ({turns_words(sorted(places))})" for kind, places in turns.items()]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _lines(items: Sequence[Moment], session: SessionVerdict) -> tuple[DatedLine, ...]:
    """A line for each message, with all that it does."""
    kinds: dict[str, list[str]] = {}
    for item in items:
        kinds.setdefault(item.message_id, []).append(_kind(item))
    first = {item.message_id: item for item in reversed(items)}
    return tuple(
        DatedLine(message_id, name_of(first[message_id].agent, session.conversation),
                  first[message_id].quotes[0].text, "; ".join(dict.fromkeys(whys)))
        for message_id, whys in list(kinds.items())[:LINES]
    )  # fmt: skip
