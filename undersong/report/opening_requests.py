"""What a first screen says of requests that are worth a look together: one sentence for each speaker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from undersong.models import Case, Moment, SessionVerdict
from undersong.models.verdict import REQUEST
from undersong.report.opening_phrases import turns_words
from undersong.report.order import order_sessions


class RequestsTogether(NamedTuple):
    """The requests of one speaker: ``does`` says all of it with its turns, ``first`` is the one to quote."""

    session: SessionVerdict
    first: Moment
    does: str


def requests_together(case: Case) -> Iterator[RequestsTogether]:
    """Every speaker whose requests are noted, in the order of the sessions, who asks most kinds of things first."""
    for session in order_sessions(case):
        speakers: dict[str, list[Moment]] = {}
        for item in session.moments:
            if item.code == REQUEST and item.quotes:
                speakers.setdefault(item.agent, []).append(item)
        for own in sorted(speakers.values(), key=lambda items: -len({item.title for item in items})):
            yield RequestsTogether(session, own[0], _does(own))


def _does(items: list[Moment]) -> str:
    """``asks for money (turns 11 and 17) and asks that others are kept out of it (turn 13)``."""
    turns: dict[str, set[int]] = {}
    for item in items:
        turns.setdefault(item.title, set()).add(item.position)
    parts = [f"{title[0].lower()}{title[1:]} ({turns_words(sorted(places))})" for title, places in turns.items()]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
