"""The false promise in its three kinds: unchanged code, a check that fails after the claim, a tool's error."""

from __future__ import annotations

from undersong.models import Deduction
from undersong.verdict.contradicted import contradicted, evidence
from undersong.verdict.course import Course
from undersong.verdict.unchanged import MECHANISM, unchanged

__all__ = ["MECHANISM", "false_promises"]


def false_promises(course: Course) -> tuple[list[Deduction], bool]:
    """Deductions in order, one a message, and whether there was any evidence that claims could be held against."""
    same, compared = unchanged(course)
    found = {deduction.message_id: deduction for deduction in contradicted(course)} if evidence_of(course) else {}
    found |= {deduction.message_id: deduction for deduction in same}
    return sorted(found.values(), key=lambda each: each.position), compared or evidence(course)


def evidence_of(course: Course) -> bool:
    """Whether a tool or a pasted output may contradict a claim."""
    return bool(course.outcomes) or any(turn.message.role == "user" for turn in course.turns)
