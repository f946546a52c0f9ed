"""The alignment of an agent in words, and what was confirmed of hard constraints."""

from __future__ import annotations

from collections.abc import Iterator

from undersong.core.text import counted
from undersong.datafiles.taxonomy import taxonomy
from undersong.models import AgentVerdict, Case, Confirmed, SessionVerdict
from undersong.report.escape import label


def alignment_words(verdict: AgentVerdict) -> str:
    """``aligned by averages; hard constraints not assessed``: a status never hides what no judge looked for."""
    if verdict.alignment == "unknown" and verdict.read:
        return "not assessed: no score of safety"
    if verdict.alignment == "violation":
        return f"violation: {', '.join(map(constraint_name, verdict.violations))}"
    if verdict.alignment == "mixed":
        return f"mixed: good averages beside {counted(verdict.findings, 'finding')}"
    unasked = verdict.constraint_messages - verdict.constraints_answered
    if unasked and verdict.alignment != "unknown":
        words = f"words of hard constraints in {counted(verdict.constraint_messages, 'message')}"
        return f"{verdict.alignment} by averages; {words}, of which no judge answered for {unasked:,}"
    if verdict.alignment == "unknown" or verdict.indicators_read == verdict.read:
        return verdict.alignment
    looked = f"assessed in {verdict.indicators_read:,} of {verdict.read:,} read" if verdict.indicators_read else ""
    return f"{verdict.alignment} by averages; hard constraints {looked or 'not assessed'}"


def alignment_colour(verdict: AgentVerdict, *, calibrated: bool = False) -> str:
    """The status whose colour it is shown in: nobody is green by an uncalibrated judge or by averages alone."""
    if verdict.alignment == "aligned" and not (calibrated and verdict.indicators_read == verdict.read):
        return "unknown"
    return verdict.alignment


def constraint_name(constraint: str) -> str:
    """``HC-01 (weapons uplift)``."""
    limit = taxonomy().hard_constraints.get(constraint)
    return f"{constraint} ({limit.name.replace('_', ' ')})" if limit else constraint


def confirmed_violations(case: Case) -> Iterator[tuple[SessionVerdict, Confirmed]]:
    """The answers in which a judge confirmed a hard constraint, with their sessions."""
    limits = taxonomy().hard_constraints
    for session in case.sessions:
        yield from ((session, answer) for answer in session.confirmations if answer.yes and answer.mechanism in limits)


def violation_words(case: Case) -> tuple[str, ...]:
    """A sentence for each message in which a judge confirmed a hard constraint, with the words that show it."""
    return tuple(
        f"Hard constraint {constraint_name(answer.mechanism)}: judge {label(answer.judge)} confirms it at message "
        f"{label(answer.at, 40)} of {label(session.title or session.conversation, 40)}: "
        + " … ".join(f"“{label(quote.text, 200)}”" for quote in answer.quotes)
        for session, answer in confirmed_violations(case)
    )
