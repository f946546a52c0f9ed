"""Titles that tell conversations apart: those that begin alike show where they differ, and those that several share get
the time of their first message, else a number."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import msgspec

from undersong.core.text import shortened
from undersong.models import Case

WIDTH = 70  # characters of a title that a report shows
SEEN = 40  # characters within which titles that begin alike must differ
HEAD = 24  # characters of the beginning that is shared and stays


def with_distinct_titles(case: Case) -> Case:
    """The case in which no two conversations have one title, in the order of the sessions.

    Of long titles that begin alike the part that differs is shown: ``What is your … Is boxing fair?``. A shared title
    gets the first time that the case holds of the conversation, to the minute; what is still shared, or has no time,
    gets a number from 1 on. Short titles that stand alone stay as they are; a second call changes nothing.
    """
    whole = [session.title for session in case.sessions]
    apart = _apart({title for title in whole if title})
    titles = _numbered_titles(case, [apart.get(title, title) if title else title for title in whole])
    if titles == whole:
        return case
    sessions = (
        session if session.title == title else msgspec.structs.replace(session, title=title)
        for session, title in zip(case.sessions, titles, strict=True)
    )
    return msgspec.structs.replace(case, sessions=tuple(sessions))


def _apart(titles: set[str]) -> dict[str, str]:
    """Long titles as they are shown: with the part in which they differ from the titles that begin alike."""
    ordered = ["", *sorted(titles), ""]
    return {
        title: _differing(title, max(_alike(before, title), _alike(title, after)))
        for before, title, after in zip(ordered, ordered[1:], ordered[2:], strict=False)
        if len(title) > WIDTH
    }


def _alike(one: str, other: str) -> int:
    parts = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(parts, min(len(one), len(other)))


def _differing(title: str, alike: int) -> str:
    start = title.rfind(" ", 0, alike) + 1  # of the word in which they part
    if start <= SEEN:
        return shortened(title, WIDTH)
    head = title[:HEAD].rsplit(" ", 1)[0]
    return shortened(f"{head} … {title[start:]}", WIDTH)


def _numbered_titles(case: Case, titles: list[str | None]) -> list[str | None]:
    """The titles, of which those that several share get a time or a number."""
    shared = _shared(titles)
    if not shared:
        return titles
    homes = [session.conversation for session in case.sessions]
    pairs = list(zip(homes, titles, strict=True))
    times = _first_times(case, {home for home, title in pairs if title in shared})
    dated = [
        f"{title} ({times[home]:%Y-%m-%d %H:%M})" if title in shared and home in times else title
        for home, title in pairs
    ]
    still, numbers, taken = _shared(dated), Counter[str](), {title for title in dated if title}
    distinct: list[str | None] = []
    for before, title in zip(titles, dated, strict=True):
        if title is not None and title in still:
            numbers[title] += 1
            while (numbered := _numbered(title, numbers[title], dated=title != before)) in taken:
                numbers[title] += 1
            title = numbered
        distinct.append(title)
    return distinct


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
