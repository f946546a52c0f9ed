"""The phrases of a first screen: names, turns, and quotes with the rest of their sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from types import MappingProxyType

from undersong.core.sanitize import one_line, title_line
from undersong.core.text import turn_at
from undersong.models import Case, Finding, Quote, SessionVerdict
from undersong.report.escape import own_name
from undersong.report.opening_sentences import sentences

_NAMES: ContextVar[Mapping[str, str]] = ContextVar("names", default=MappingProxyType({}))  # see ``naming``
QUOTE = 220  # characters of a quote
ENDS = (". ", "? ", "! ", ".\n", "\n")  # of a sentence, near enough for a quote
OF_CODE = ("same_hash", "comments_only")  # kinds of a false promise that say themselves what was promised
STARTS = ("the ", "tests ", "a ", "some ", "more ")  # of our own words, as against names


def whole(quote: str, text: str | None) -> str:
    """A quote with the rest of its sentence, on one line of at most QUOTE characters.

    "" where the message is held and the quote does not stand in it; as it is where the message is not held.
    """
    start = text.find(quote) if quote and text is not None else -1
    if text is None:
        return one_line(quote, QUOTE)
    if start < 0:
        return ""
    end = start + len(quote)
    before = max((text.rfind(mark, 0, start) for mark in ENDS), default=-1)
    after = min((place for mark in ENDS if (place := text.find(mark, end - 1)) >= 0), default=len(text))
    return one_line(text[before + 1 : after + 1], QUOTE)


@contextmanager
def naming(names: Mapping[str, str]) -> Iterator[None]:
    """Within it ``name_of`` gives these agents the names that people have."""
    token = _NAMES.set(names)
    try:
        yield
    finally:
        _NAMES.reset(token)


def name_of(agent: str, conversation: str) -> str:
    """The name that people have in a conversation; of an agent that is named by its role alone ``the assistant``.

    >>> name_of("WhatsApp Chat with Mark/Mark", "WhatsApp Chat with Mark")
    'Mark'
    """
    if agent in (names := _NAMES.get()):
        return names[agent]
    own = one_line(own_name(agent, conversation), 50)
    return sentences().sides.get(own.lower(), own)


def session_name(session: SessionVerdict) -> str:
    """The title of a session, or its id."""
    return title_line(session.title or session.conversation, 60)


def in_title(case: Case, session: SessionVerdict) -> str:
    """``, “Invoice numbers”``; nothing where there is one session."""
    return f", “{session_name(session)}”" if len(case.sessions) > 1 else ""


def at_turn(case: Case, session: SessionVerdict, position: int) -> str:
    """``turn 3, “Invoice numbers”``; of a conversation of one message the title alone."""
    if session.messages == 1 and len(case.sessions) > 1:
        return f"“{session_name(session)}”"
    return f"{turn_at(position)}{in_title(case, session)}"


def sentence_start(text: str) -> str:
    """A sentence begins with a capital, but nobody's name is changed."""
    return text[:1].upper() + text[1:] if text.startswith(tuple(STARTS)) or text[:1].isdigit() else text


def times_words(count: int) -> str:
    """``once``, ``twice``, ``3 times``."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def home_title(home: str, case: Case | None) -> str:
    """The title of a conversation, or its id; "" where the case has no other."""
    if case is None or case.conversations < 2:
        return ""
    session = next((each for each in case.sessions if each.conversation == home), None)
    return session_name(session) if session else title_line(home, 60)


def homes_words(finding: Finding, case: Case | None) -> str:
    """`` in “Late order”``; of two conversations that were read side by side both."""
    homes = finding.conversations if finding.compares else finding.conversations[:1]
    titles = [title for home in homes if (title := home_title(home, case))]
    return f" in {' and '.join(f'“{title}”' for title in titles)}" if titles else ""


def days_words(start: datetime | None, end: datetime | None) -> str:
    """`` on 2026-03-01``, `` from 2026-03-01 to 2026-03-04``; "" where the times are not known."""
    if start is None or end is None:
        return ""
    first, last = f"{start:%Y-%m-%d}", f"{end:%Y-%m-%d}"
    return f" on {first}" if first == last else f" from {first} to {last}"


def shown_words(quotes: Sequence[Quote]) -> str:
    """``: “1 failed”``, the first of some quotes behind a colon; "" without one."""
    return f": “{one_line(quotes[0].text, 100)}”" if quotes else ""
