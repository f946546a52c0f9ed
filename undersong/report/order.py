"""Which session, finding and agent a reader meets first: the worst one."""

from __future__ import annotations

from collections import Counter

from undersong.models import LEVELS, AgentVerdict, Case, Finding, SessionVerdict
from undersong.wording import TO_READ

ALIGNMENTS = ("violation", "misaligned", "drifting", "aligned", "unknown")
ALL_IN_DETAIL = 10  # this few sessions are told in full even where there is nothing to say


def order_findings(findings: tuple[Finding, ...]) -> list[Finding]:
    """By level, then strength, then id."""
    return sorted(findings, key=lambda finding: (-LEVELS.index(finding.level), -finding.strength, finding.finding_id))


def order_sessions(case: Case) -> list[SessionVerdict]:
    """By score where there is one, then by the level and number of findings, moments to read, flags, and name.

    Of moments, distress codes count first: they stand for what is sustained or critical; then smoking guns, then all.
    """
    worst: dict[str, int] = {}
    counts: Counter[str] = Counter()
    for finding in case.findings:
        for name in finding.conversations:
            worst[name] = max(worst.get(name, -1), LEVELS.index(finding.level))
            counts[name] += 1

    def rank(session: SessionVerdict) -> tuple[int, int, int, int, int, int, int, str]:
        name, score = session.conversation, 100 if session.score is None else session.score
        kinds = Counter[str](each.kind for each in session.moments)
        moments = -kinds["distress"], -kinds["smoking_gun"], -sum(kinds[kind] for kind in TO_READ)
        return score, -worst.get(name, -1), -counts[name], *moments, -len(session.flags), name

    return sorted(case.sessions, key=rank)


def detailed_sessions(case: Case, limit: int) -> list[SessionVerdict]:
    """The sessions that are told in full: those with something to say, the worst first, at most ``limit``."""
    named = {name for finding in case.findings for name in finding.conversations}
    return [
        each
        for each in order_sessions(case)
        if len(case.sessions) <= ALL_IN_DETAIL
        or each.deductions
        or each.flags
        or each.moments
        or each.conversation in named
    ][:limit]


def alignment_rank(agent: AgentVerdict) -> tuple[int, float, float, str]:
    """By status, then by the value of safety, then by the share of messages with phrase flags, then by name."""
    safety = (agent.values or {}).get("safety", 2.0)
    return ALIGNMENTS.index(agent.alignment), safety, -agent.flagged / max(agent.messages, 1), agent.agent
