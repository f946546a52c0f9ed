"""Titles that tell conversations apart: those that several share get the time of their first message, else a number."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import msgspec

from undersong.models import Case


def with_distinct_titles(case: Case) -> Case:
    """The case in which no two conversations have one title, in the order of the sessions.

    A shared title gets the first time that the case holds of the conversation, to the minute; what is still shared, or
    has no time, gets a number from 1 on. Titles that stand alone stay as they are; a second call changes nothing.
    """
    shared = _shared([session.title for session in case.sessions])
    if not shared:
        return case
    times = _first_times(case, {session.conversation for session in case.sessions if session.title in shared})
    dated = [
        f"{session.title} ({times[session.conversation]:%Y-%m-%d %H:%M})"
        if session.title in shared and session.conversation in times
        else session.title
        for session in case.sessions
    ]
    still, numbers, taken = _shared(dated), Counter[str](), {title for title in dated if title}
    sessions = []
    for session, title in zip(case.sessions, dated, strict=True):
        if title is not None and title in still:
            numbers[title] += 1
            while (numbered := _numbered(title, numbers[title], dated=title != session.title)) in taken:
                numbers[title] += 1
            title = numbered
        sessions.append(session if title == session.title else msgspec.structs.replace(session, title=title))
    return msgspec.structs.replace(case, sessions=tuple(sessions))


def _numbered(title: str, number: int, *, dated: bool) -> str:
    """``Fix it (2026-03-01 14:00, 2)`` or ``Fix it (2)``."""
    return f"{title.removesuffix(')')}, {number})" if dated else f"{title} ({number})"


def _shared(titles: list[str | None]) -> set[str]:
    counts = Counter(title for title in titles if title)
    return {title for title, count in counts.items() if count > 1}


def _first_times(case: Case, conversations: set[str]) -> dict[str, datetime]:
    """The earliest time of a cited message or a claim of each conversation that has one."""
    times = [(message.conversation, message.time) for message in case.cited]
    times += [(claim.conversation, claim.time) for session in case.sessions for claim in session.claims]
    first: dict[str, datetime] = {}
    for name, time in times:
        if name in conversations and time is not None and (name not in first or time < first[name]):
            first[name] = time
    return first
