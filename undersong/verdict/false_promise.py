"""The false promise in its three kinds: unchanged code, a check that fails after the claim, a tool's error."""

from __future__ import annotations

from undersong.verdict.contradicted import contradicted, evidence
from undersong.verdict.course import Course
from undersong.verdict.found import Found
from undersong.verdict.unchanged import MECHANISM, unchanged

__all__ = ["MECHANISM", "false_promises"]
NOTHING_TO_COMPARE = (
    "no agent shows code twice and no tool answers in this session, so no claim can be held against anything"
)


def false_promises(course: Course) -> Found:
    """One deduction a message at most, in order; unchanged code goes before a tool's answer."""
    same, compared = unchanged(course)
    found = {each.message_id: each for each in (*contradicted(course), *same)}
    ordered = tuple(sorted(found.values(), key=lambda each: each.position))
    return Found(ordered, absent="" if ordered or compared or evidence(course) else NOTHING_TO_COMPARE)
