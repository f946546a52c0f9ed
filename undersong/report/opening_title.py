"""The title of a first screen: what there is to look at. It never sounds like an all-clear."""

from __future__ import annotations

from collections.abc import Sequence

from undersong.core.sanitize import one_line
from undersong.core.text import counted
from undersong.models import Case, SessionVerdict, by_pattern
from undersong.models.waiting import ANSWER_THERE, WAITING
from undersong.report.claims_view import is_work
from undersong.report.opening_choice import SHOWN, Point

OFFLINE = "offline"  # the judge that ships: it counts words and reads nothing
TO_READ = ("smoking_gun", "conduct", "candidate")  # kinds of noted turns that a person may want to read


def look_title(case: Case, points: Sequence[Point], findings_in_all: int = 0) -> str:
    """``1 finding and 2 leads to look at``; without a finding or anything at all, why that is no all-clear.

    ``points`` are those that a first screen names; of more findings the title has the whole number.
    """
    waiting = waiting_words(case)
    if waiting and not points:
        return f"{waiting}; until then nothing can be said"
    return "; ".join(filter(None, (waiting, _what_to_look_at(case, points, findings_in_all))))


def waiting_words(case: Case) -> str:
    """``60 questions wait for an answer in asked``; "" where none does."""
    folders = case.parameters.get(WAITING, {})
    number = sum(folders.values())
    wait = "waits for its" if number == 1 else "wait for an"
    return f"{counted(number, 'question')} {wait} answer in {one_line(', '.join(folders), 80)}" if folders else ""


def next_step(case: Case) -> str:
    """What to do about questions that wait for an answer; "" where none does."""
    if not case.parameters.get(WAITING):
        return ""
    return f"{ANSWER_THERE[0].upper()}{ANSWER_THERE[1:]}; until then `undersong leads PATH` says where to look first"


def _what_to_look_at(case: Case, points: Sequence[Point], findings_in_all: int) -> str:
    leads = sum(point.state == "lead" for point in points)
    findings = len(points) - leads
    if findings_in_all > findings and len(points) >= SHOWN:
        return f"{counted(findings_in_all, 'finding')} to look at, the first {findings}"
    if findings:
        others = f" and {counted(leads, 'lead')}" if leads else ""
        return f"{counted(findings, 'finding')}{others} to look at"
    if leads:
        none = "it is no finding" if leads == 1 else "nothing here is a finding"
        return f"{counted(leads, 'moment')} to look at; {none}{_since(case)}"
    turns = sum(map(noted_turns, case.sessions))
    if turns:
        return f"{counted(turns, 'turn')} noted, {_none_stands_out(case)}"
    return f"Nothing stands out{_not_looked_for(case)}"


def _none_stands_out(case: Case) -> str:
    none = "none of which stands out"
    return f"{none}: only words were counted, and no LLM judge read it" if _since(case) else none


def noted_turns(session: SessionVerdict) -> int:
    """The turns of a session that something is noted at, which a person may want to read."""
    return len({item.position for item in session.moments if item.kind in TO_READ and item.quotes})


def is_read(case: Case) -> bool:
    """Whether a judge that reads was asked about any of it."""
    return bool(case.sequences) or any(set(session.judges) - {OFFLINE} for session in case.sessions)


def _since(case: Case) -> str:
    return "" if is_work(case) or is_read(case) else ", since no LLM judge read it"


def _not_looked_for(case: Case) -> str:
    """The patterns that were not looked for, without a judge."""
    patterns = by_pattern(case.outcomes)
    missing = sum(each.status == "not_applicable" for each in patterns)
    if is_read(case) or not missing or is_work(case):
        return ""
    return f", but {missing} of {counted(len(patterns), 'pattern')} were not looked for, since no LLM judge read it"
