"""The false promise in its three kinds: unchanged code, a check that fails after the claim, a tool's error."""

from __future__ import annotations

from undersong.verdict.contradicted import contradicted_claims, has_tool_evidence
from undersong.verdict.course import Transcript
from undersong.verdict.found import DetectorResult
from undersong.verdict.unchanged import MECHANISM, same_code_promises

__all__ = ["MECHANISM", "false_promises"]
NOTHING_TO_COMPARE = (
    "no agent shows code twice and no tool answers in this session, so no claim can be held against anything"
)


def false_promises(transcript: Transcript) -> DetectorResult:
    """One deduction a message at most, in order; unchanged code goes before a tool's answer."""
    same, compared = same_code_promises(transcript)
    by_message = {each.message_id: each for each in (*contradicted_claims(transcript), *same)}
    ordered = tuple(sorted(by_message.values(), key=lambda deduction: deduction.position))
    return DetectorResult(
        ordered, absent="" if ordered or compared or has_tool_evidence(transcript) else NOTHING_TO_COMPARE
    )
