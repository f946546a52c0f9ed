"""Verdicts from evidence: the sovereignty score of a session, the alignment of an agent. Pure."""

from undersong.datafiles.verdict_config import rule_hashes
from undersong.verdict.alignment import agent_verdicts
from undersong.verdict.confirmation import constraint_segments, segments
from undersong.verdict.session_score import session_verdict, with_ledger, word_moments

__all__ = [
    "agent_verdicts",
    "constraint_segments",
    "rule_hashes",
    "segments",
    "session_verdict",
    "with_ledger",
    "word_moments",
]
