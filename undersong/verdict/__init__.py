"""Verdicts from evidence: the sovereignty score of a session, the alignment of an agent. Pure."""

from undersong.verdict.agents import agent_verdicts
from undersong.verdict.books import rule_hashes
from undersong.verdict.segments import segments
from undersong.verdict.session import session_verdict

__all__ = ["agent_verdicts", "rule_hashes", "segments", "session_verdict"]
