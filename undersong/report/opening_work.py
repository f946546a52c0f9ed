"""What a first screen says of work: claims of the ledger, ways round a check, and where time was lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from undersong.core.sanitize import one_line
from undersong.core.text import turn_at, turn_number
from undersong.models import Bypass, Case, Deduction, LedgerClaim, SessionVerdict
from undersong.models.verdict import EDITED, FEWER, NOT_RUN, PASTED_ERROR
from undersong.report.claims_view import CHECKED, coding_sessions
from undersong.report.opening_choice import DatedLine, Point, State
from undersong.report.opening_phrases import (
    QUOTE,
    at_turn,
    in_title,
    name_of,
    sentence_start,
    session_name,
    shown_words,
)
from undersong.report.opening_sentences import sentences
from undersong.report.work_view import duration_words

CLAIM_STATES: dict[str, State] = {"contradicted": "sure", "disputed": "finding"}  # of a claim; a lead otherwise
HIDDEN, MISCOUNTED, OVERSTATED_CHECK, DISCLOSED, UNSEEN = range(5)  # gravities of ways round a check

COMMAND, PARTS = 80, 3  # characters of a command, and last parts of a path, that are shown
PEOPLE = ("user", "participant")  # who pastes what a program printed


def claim_points(case: Case, states: Sequence[str]) -> Iterator[Point]:
    """Claims of the ledger in these states, those of the states named first, the latest first."""
    chosen: list[tuple[int, SessionVerdict, LedgerClaim]] = []
    for session in coding_sessions(case):
        taken = {each.message_id for each in session.deductions}
        for claim in session.claims:
            checkable = claim.state != "unsupported" or claim.kind in CHECKED
            if claim.state in states and claim.message_id not in taken and checkable:
                chosen.append((states.index(claim.state), session, claim))
    chosen.sort(key=lambda item: (item[0], *_latest(item[2])))
    seen = set[object]()
    for _, session, claim in chosen:
        copy = claim.time or (claim.conversation, claim.message_id)
        if copy not in seen:
            seen.add(copy)
            yield _claim(case, session, claim)


def _latest(claim: LedgerClaim) -> tuple[float, str, int]:
    return -claim.time.timestamp() if claim.time else 0.0, claim.conversation, claim.position


def _claim(case: Case, session: SessionVerdict, claim: LedgerClaim) -> Point:
    words = sentences()
    who = name_of(claim.agent, session.conversation)
    state: str = "pasted" if claim.reason == PASTED_ERROR else claim.state
    if claim.state == "contradicted" and not claim.evidence:
        state = _by_its_reason(claim.reason)
    reason = one_line(claim.reason.removeprefix(NOT_RUN).removeprefix(FEWER).removeprefix(EDITED), QUOTE)
    against = words.against[state].format(reason=reason)
    answer = shown_words(claim.evidence[:1]) if claim.state != "unsupported" else ""
    where = f"{at_turn(case, session, claim.position)}{_on(claim.time)}"
    return Point(
        kind="claim",
        sentence=f"{sentence_start(who)} said {words.claims[claim.kind]}, {against}{answer} ({where}).",
        sure=words.how_sure[state],
        quote=claim.sentence.text,
        speaker=who,
        conversation=session.conversation,
        message_id=claim.message_id,
        id=claim.message_id,
        title=session_name(session),
        state=CLAIM_STATES.get(claim.state, "lead"),
    )


def _by_its_reason(reason: str) -> str:
    """How a contradiction is worded that the calls of the session show, and no line of an output."""
    states = {NOT_RUN: "not_run", FEWER: "fewer", EDITED: "edited"}
    return next((state for beginning, state in states.items() if reason.startswith(beginning)), "by_reason")


def _on(time: datetime | None) -> str:
    return f", {time:%Y-%m-%d}" if time else ""


def against_work(case: Case) -> tuple[Iterator[Point], ...]:
    """What speaks against work, gravest first: outputs, checks that were silently passed by, people, weaker checks."""
    return (
        claim_points(case, ("contradicted",)),
        bypass_points(case, (HIDDEN,)),
        claim_points(case, ("disputed",)),
        bypass_points(case, (MISCOUNTED, OVERSTATED_CHECK, DISCLOSED)),
    )


def bypass_points(case: Case, gravities: Sequence[int]) -> Iterator[Point]:
    """Ways round a check of these gravities, the gravest first."""
    items = [(gravity(item), session, item) for session in case.sessions for item in session.bypasses]
    for place, session, item in sorted(items, key=lambda entry: entry[0]):
        if place in gravities:
            yield _bypass(case, session, item)


def gravity(item: Bypass) -> int:
    """The place of a way round a check: what nobody was told, then counts that an output contradicts, then what ran and
    says less than was claimed, then what the agent itself speaks of, then what nobody saw fail."""
    if item.is_lead:
        return UNSEEN
    if item.kind == "counts_differ":  # the output itself says fewer
        return MISCOUNTED
    if not item.disarms:
        return OVERSTATED_CHECK
    return DISCLOSED if item.disclosed else HIDDEN


def _bypass(case: Case, session: SessionVerdict, item: Bypass) -> Point:
    words = sentences()
    lines = tuple(_bypass_lines(session, item))
    done = f"{words.bypasses[item.kind]}{aside_words(item, session)}"
    return Point(
        kind="bypass",
        sentence=f"{sentence_start(done)} ({at_turn(case, session, item.position)}).",
        sure=words.how_sure["bypass"],
        quote=lines[-1].quote if lines else "",
        speaker=lines[-1].speaker if lines else "",
        conversation=session.conversation,
        message_id=item.message_id,
        id=item.message_id,
        title=session_name(session),
        state="lead" if item.is_lead else "finding",
        lines=lines,
    )


def aside_words(item: Bypass, session: SessionVerdict) -> str:
    """Whether what the assistant wrote on the same request speaks of a check that was passed by."""
    if not item.disarms or item.is_lead:
        return ""
    return sentences().disclosed["yes" if item.disclosed else "unread" if session.unread else "no"]


def _bypass_lines(session: SessionVerdict, item: Bypass) -> Iterator[DatedLine]:
    """What failed, then what was taken away and what was put in its place; of other ways what was run or written."""
    if item.failed_check:
        place = f"`{one_line(item.failed_check, COMMAND)}` at {turn_at(item.failed_at)}"
        yield DatedLine("", f"what failed, by {place}", one_line(item.failed_line or item.failed_check, QUOTE))
    where = short_path(item.path)
    removed, added = (
        one_line(" | ".join(line[2:] for line in item.diff if line.startswith(sign)), QUOTE) for sign in "-+"
    )
    if removed:
        yield DatedLine("" if added else item.message_id, f"taken out of {where}", removed)
    if added:
        place = "what stands there now" if removed else f"put into {where}"
        yield DatedLine(item.message_id, place, added)
    if item.diff or not item.lines:
        return
    first, *rest = item.lines
    labels = ("what was run", name_of(item.agent, session.conversation)) if rest else ("what was done", "")
    yield DatedLine("" if rest else item.message_id, labels[0], one_line(first, QUOTE))
    if rest:
        yield DatedLine(item.message_id, labels[1], one_line(rest[-1], QUOTE))


def short_path(path: str) -> str:
    """The end of a long path: ``…/ledger/tests/test_interest.py``."""
    parts = path.split("/")
    return one_line(path if len(parts) <= PARTS + 1 else f"…/{'/'.join(parts[-PARTS:])}", COMMAND)


def failure_points(case: Case) -> Iterator[Point]:
    rows = [(session, row) for session in case.sessions for row in session.repeated]
    rows.sort(key=lambda pair: (-pair[1].times, -(pair[1].seconds or 0.0), pair[0].conversation, pair[1].first))
    for session, row in rows[:1]:
        yield Point(
            kind="failure",
            sentence=f"`{one_line(row.command, 80)}` failed {duration_words(row)} without a success between (turns "
            f"{turn_number(row.first)} to {turn_number(row.last)}{in_title(case, session)}): time was lost there.",
            sure=sentences().how_sure["failure"],
            quote=one_line(row.line, QUOTE),
            speaker="the output",
            conversation=session.conversation,
            message_id="",
            id="",
            title=session_name(session),
        )


def is_pasted(case: Case, session: SessionVerdict, deduction: Deduction) -> bool:
    """Whether the failure that speaks against a claim stands in the words of a person, who pasted it."""
    people = {each.id for each in case.cited if each.conversation == session.conversation and each.role in PEOPLE}
    return any(quote.message_id in people for quote in deduction.quotes[1:2])
