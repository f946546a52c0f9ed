"""The projects of coding sessions: for each what its agents say of their work, and the gravest thing by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from undersong.core.sanitize import one_line
from undersong.core.text import counted
from undersong.models import Case
from undersong.report.claims_view import balance_words, is_work
from undersong.report.opening_choice import Point

NAME, SENTENCE = 60, 400  # characters
_HOME = re.compile(r"^-(?:home|Users)-[^-]+-(?=.)")  # how Claude Code begins the folder of a project in one's home


def project_lines(case: Case, every: Sequence[Point]) -> tuple[str, ...]:
    """``api: of 9 claims 5 backed; 1 way round a check; gravest: ...`` for each of several projects, the gravest first.

    ``every`` is what ``every_point`` gives, gravest first.
    """
    names = {session.conversation: session.project for session in case.sessions}
    if not is_work(case) or len(set(names.values())) < 2:
        return ()
    findings = [point for point in every if point.state != "lead"]
    order = [names[point.conversation] for point in findings if point.conversation in names]
    return tuple(_line(case, name, findings) for name in dict.fromkeys([*order, *sorted(names.values())]))


def _line(case: Case, name: str, findings: Sequence[Point]) -> str:
    own = {session.conversation: session for session in case.sessions if session.project == name}
    gravest = next((point.sentence for point in findings if point.conversation in own), "")
    parts = [balance_words(own.values()) or "no claim recognised", *_counts(case, name)]
    parts += [f"gravest: {one_line(gravest, SENTENCE)}"] if gravest else ["nothing speaks against it"]
    return f"{project_name(name)} ({counted(len(own), 'session')}): {'; '.join(parts)}"


def _counts(case: Case, name: str) -> Iterator[str]:
    own = [session for session in case.sessions if session.project == name]
    if passed := sum(not item.is_lead for session in own for item in session.bypasses):
        yield counted(passed, "way round a check", "ways round a check")
    if unread := sum(bool(session.unread) for session in own):
        yield f"{counted(unread, 'session')} not read"


def project_name(folder: str) -> str:
    """The folder without the beginning that all projects of a home have; of sessions without one, that.

    >>> project_name("-home-ida-src-ledger")
    'src-ledger'
    """
    return one_line(_HOME.sub("", folder), NAME) or "no folder"
