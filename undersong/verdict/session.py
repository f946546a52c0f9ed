"""The sovereignty score of one conversation: what was assessed, what was taken, turn by turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from undersong.flags import FLAGS, turn_flags
from undersong.models import (
    Confirmed,
    Conversation,
    Deduction,
    Mark,
    Mechanism,
    Moment,
    Row,
    Scan,
    SessionVerdict,
    ThreadScan,
)
from undersong.verdict.books import Mechanisms, mechanisms
from undersong.verdict.camouflage import semantic_camouflage
from undersong.verdict.confirmed import with_answers, with_seen
from undersong.verdict.course import Course
from undersong.verdict.distress import distress_codes
from undersong.verdict.false_promise import MECHANISM, false_promises
from undersong.verdict.found import Found
from undersong.verdict.heard import heard
from undersong.verdict.liability import liability_shifting
from undersong.verdict.noted import noted_moments
from undersong.verdict.smoking_guns import smoking_guns
from undersong.verdict.stance import epistemic_instability
from undersong.verdict.words import distress_book, noted_book
from undersong.wording import counted

Signals = Mapping[str, Mapping[str, float]]
Turns = tuple[tuple[int, int], ...]


def session_verdict(
    conversation: Conversation,
    scans: Sequence[Scan],
    thread: ThreadScan,
    rows: Iterable[Row],
    confirmations: Sequence[Confirmed] = (),
) -> SessionVerdict:
    """The verdict on one conversation; ``scans`` are aligned with its messages, ``rows`` say what was read.

    ``score`` is None until a mechanism is assessed; then it starts at 100 and each deduction takes its points, never
    below 0. Flags and moments take no points. ``turns`` has a (position, score) for every message of the path that
    was read. ``confirmations`` are a judge's answers about flagged places (``segments``): a candidate that is confirmed
    takes points.
    """
    book, rows = mechanisms(), tuple(rows)
    course, signals = Course(conversation, scans), {row.id: row.signals for row in rows if row.signals}
    found = with_answers(with_seen(_detected(course, signals), course, rows), course, confirmations)
    deductions = sorted((one for each in found.values() for one in each.deductions), key=lambda one: one.position)
    context = tuple(dict.fromkeys((*thread.session_context_vector, *conversation.context)))
    moments = _moments(conversation, scans, course, rows, found, deductions, context)
    turns = () if all(each.absent for each in found.values()) else _turns(conversation, deductions, book)
    score = turns[-1][1] if turns else None
    judges = Counter(row.judge or "unnamed" for row in rows if row.state == "scored")
    shown = {flag for scan in scans for flag in turn_flags(scan)}
    return SessionVerdict(
        conversation=conversation.id,
        score=score,
        psychogenic_risk=None if score is None else score < book.risk_below,
        mechanisms=tuple(_mechanism(name, found[name], book) for name in book.mechanisms),
        deductions=tuple(deductions),
        turns=turns,
        context=context,
        flags=tuple(flag for flag in FLAGS if flag in shown),
        messages=len(conversation.messages),
        read=judges.total(),
        judges=dict(sorted(judges.items())),
        title=conversation.title,
        moments=moments,
        marks=_marks(conversation, scans, turns, deductions, moments),
        episodes=sum(_episodes(each) for each in found.values()),
        confirmations=tuple(confirmations),
    )


def _detected(course: Course, signals: Signals) -> dict[str, Found]:
    return {
        "epistemic_instability": epistemic_instability(course, signals),
        "semantic_camouflage": semantic_camouflage(course),
        MECHANISM: false_promises(course),
        "liability_shifting": liability_shifting(course),
    }


def _mechanism(name: str, found: Found, book: Mechanisms) -> Mechanism:
    if found.absent:
        return Mechanism(name=name, assessment="not_applicable", reason=found.absent)
    detected = len(found.deductions)
    if detected:
        reason = f"found {counted(detected, 'time')}, in {counted(_episodes(found), 'distinct episode')}"
    else:
        reason = f"looked for in {book.mechanisms[name].evidence}; not found"
    return Mechanism(name=name, assessment="assessed", reason=reason, detected=detected)


def _episodes(found: Found) -> int:
    return len({each.episode or each.message_id for each in found.deductions})


def _moments(
    conversation: Conversation,
    scans: Sequence[Scan],
    course: Course,
    rows: Sequence[Row],
    found: Mapping[str, Found],
    deductions: Sequence[Deduction],
    context: Sequence[str],
) -> tuple[Moment, ...]:
    """Smoking guns, the first ones to read first, then the other moments by turn."""
    broken = {each.message_id for each in found[MECHANISM].deductions}
    others = [
        *(distress_codes(course, heard(rows, distress_book()), context, broken) if course.has_people else ()),
        *(noted_moments(course, heard(rows, noted_book("protective")), "protective") if course.has_people else ()),
        *(noted_moments(course, heard(rows, noted_book("conduct")), "conduct") if course.has_people else ()),
        *(each for one in found.values() for each in one.candidates),
    ]
    guns = smoking_guns(conversation, scans, rows, {each.message_id for each in deductions})
    return (*guns, *sorted(others, key=lambda each: (each.position, each.kind, each.code)))


def _turns(conversation: Conversation, deductions: Iterable[Deduction], book: Mechanisms) -> Turns:
    """Position and score after each message; deductions are in the order of the messages."""
    taken: dict[str, int] = {}
    for deduction in deductions:
        taken[deduction.message_id] = taken.get(deduction.message_id, 0) + deduction.points
    turns, score = [], book.start
    for message in conversation.messages:
        if message.branch is None:
            score = max(book.floor, score - taken.get(message.id, 0))
            turns.append((message.position, score))
    return tuple(turns)


def _marks(
    conversation: Conversation,
    scans: Sequence[Scan],
    turns: Turns,
    deductions: Iterable[Deduction],
    moments: Iterable[Moment],
) -> tuple[Mark, ...]:
    """The turns at which anything stands, in order."""
    scores, taken = dict(turns), dict[str, list[Deduction]]()
    for deduction in deductions:
        taken.setdefault(deduction.message_id, []).append(deduction)
    codes: dict[tuple[str, str], list[str]] = {}
    for moment in moments:
        codes.setdefault((moment.message_id, moment.kind), []).append(moment.code)
    marks = []
    for message, scan in zip(conversation.messages, scans, strict=True):
        if message.branch is not None:
            continue
        own = taken.get(message.id, [])
        mark = Mark(
            position=message.position,
            message_id=message.id,
            score=scores.get(message.position),
            points=sum(each.points for each in own),
            mechanisms=tuple(each.mechanism for each in own),
            flags=turn_flags(scan),
            codes=_distinct(codes.get((message.id, "distress"))),
            protective=_distinct(codes.get((message.id, "protective"))),
            conduct=_distinct(codes.get((message.id, "conduct"))),
            guns=_distinct(codes.get((message.id, "smoking_gun"))),
            candidates=_distinct(codes.get((message.id, "candidate"))),
        )
        if own or any((mark.flags, mark.codes, mark.protective, mark.conduct, mark.guns, mark.candidates)):
            marks.append(mark)
    return tuple(marks)


def _distinct(codes: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(codes or ()))
