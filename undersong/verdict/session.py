"""The sovereignty score of one conversation: what was assessed, what was taken, turn by turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from undersong.flags import FLAGS, turn_flags
from undersong.models import Conversation, Deduction, Mechanism, Row, Scan, SessionVerdict, ThreadScan
from undersong.verdict.books import Mechanisms, mechanisms
from undersong.verdict.course import Course
from undersong.verdict.false_promise import MECHANISM, false_promises
from undersong.verdict.smoking_guns import smoking_guns
from undersong.wording import counted

NOT_FOUND = "looked for, not found"
Turns = tuple[tuple[int, int], ...]
NOTHING_TO_COMPARE = (
    "no agent shows code twice and no tool answers in this session, so no claim can be held against anything"
)


def session_verdict(
    conversation: Conversation, scans: Sequence[Scan], thread: ThreadScan, rows: Iterable[Row]
) -> SessionVerdict:
    """The verdict on one conversation; ``scans`` are aligned with its messages, ``rows`` say what was read.

    ``score`` is None until a mechanism is assessed; then it starts at 100 and each deduction takes its points, never
    below 0. Flags take no points. ``turns`` has a (position, score) for every message of the path that was read.
    """
    book, rows = mechanisms(), tuple(rows)
    course = Course(conversation, scans)
    deductions, compared = false_promises(course)
    episodes = len({deduction.episode for deduction in deductions})
    found = tuple(_mechanism(name, book, deductions, episodes, compared) for name in book.mechanisms)
    assessed = any(mechanism.assessment == "assessed" for mechanism in found)
    turns = _turns(conversation, deductions, book) if assessed else ()
    score = turns[-1][1] if turns else None
    judges = Counter(row.judge or "unnamed" for row in rows if row.state == "scored")
    shown = {flag for scan in scans for flag in turn_flags(scan)}
    return SessionVerdict(
        conversation=conversation.id,
        score=score,
        psychogenic_risk=None if score is None else score < book.risk_below,
        mechanisms=found,
        deductions=tuple(deductions),
        turns=turns,
        context=tuple(dict.fromkeys((*thread.session_context_vector, *conversation.context))),
        flags=tuple(flag for flag in FLAGS if flag in shown),
        messages=len(conversation.messages),
        read=judges.total(),
        judges=dict(sorted(judges.items())),
        title=conversation.title,
        moments=smoking_guns(conversation, scans, rows, {each.message_id for each in deductions}),
    )


def _mechanism(
    name: str, book: Mechanisms, deductions: Sequence[Deduction], episodes: int, compared: bool
) -> Mechanism:
    rule = book.mechanisms[name]
    if rule.not_assessed is not None:
        return Mechanism(name=name, assessment="not_assessed", reason=rule.not_assessed)
    if name == MECHANISM and not compared:
        return Mechanism(name=name, assessment="not_applicable", reason=NOTHING_TO_COMPARE)
    detected = sum(deduction.mechanism == name for deduction in deductions)
    reason = f"found {counted(detected, 'time')}, in {counted(episodes, 'distinct episode')}" if detected else NOT_FOUND
    return Mechanism(name=name, assessment="assessed", reason=reason, detected=detected)


def _turns(
    conversation: Conversation, deductions: Iterable[Deduction], book: Mechanisms
) -> tuple[tuple[int, int], ...]:
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
