"""The claim ledger as a report shows it: the balance in words, and the claims to look at first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from undersong.core.sanitize import title_line
from undersong.core.text import counted
from undersong.models import Case, LedgerClaim, SessionVerdict
from undersong.models.verdict import AGAINST, PASTED_ERROR, ClaimState, balance
from undersong.report.citations import Citations, Cite

STATES: tuple[ClaimState, ...] = ("contradicted", "disputed", "withdrawn", "unsupported", "hedged", "backed")
WORDS: dict[ClaimState, str] = {
    "backed": "backed", "unsupported": "never checked", "contradicted": "contradicted", "disputed": "disputed",
    "hedged": "hedged", "withdrawn": "withdrawn",
}  # fmt: skip
IN_A_SENTENCE: tuple[ClaimState, ...] = ("backed", "unsupported", "contradicted", "disputed", "withdrawn", "hedged")
CHECKED = frozenset({"tests", "build", "lint"})  # claims that a program can check; others may well need no check
NAMED, TITLE = 3, 40  # sessions that were not read and are named, and characters of their titles
ROWS = 200  # claims of a session that are shown; claims.jsonl holds all


@dataclass(frozen=True)
class ClaimView:
    """A claim with a link to its message."""

    claim: LedgerClaim
    cite: Cite

    @property
    def state(self) -> str:
        """The state in the words of the report."""
        return state_words(self.claim)

    @property
    def against(self) -> str:
        """The words that speak against it, or for it."""
        return self.claim.evidence[0].text if self.claim.evidence else ""


def claim_views(verdict: SessionVerdict, citations: Citations) -> tuple[ClaimView, ...]:
    """The claims of a session, those to look at first, at most ROWS."""
    ordered = sorted(
        verdict.claims, key=lambda claim: (STATES.index(claim.state), claim.position, claim.sentence.start)
    )
    return tuple(
        ClaimView(claim, citations.cite(claim.message_id, (verdict.conversation,))) for claim in ordered[:ROWS]
    )


def state_words(claim: LedgerClaim) -> str:
    """The state of a claim, which says so where the check behind it was weakened."""
    return f"{WORDS[claim.state]}, by a check that was weakened" if claim.is_weakened else WORDS[claim.state]


def relation_words(claim: LedgerClaim) -> str:
    """What the words beside a claim are to it; of what a person answers, whether they say it or paste it."""
    if claim.state == "disputed":
        return "the person pasted" if claim.reason == PASTED_ERROR else "the person answered"
    return "against it" if claim.state in AGAINST else "why"


def against(verdict: SessionVerdict) -> int:
    """How many messages speak against a session: contradicted or disputed claims, points, ways round a check."""
    claims = {claim.message_id for claim in verdict.claims if claim.state in AGAINST}
    bypasses = {bypass.message_id for bypass in verdict.bypasses if not bypass.is_lead}
    return len(claims | bypasses | {deduction.message_id for deduction in verdict.deductions})


def balance_words(sessions: Iterable[SessionVerdict]) -> str:
    """``of 1,143 claims 1,020 backed, 96 never checked, 12 contradicted``; "" where nobody claims anything.

    Of the backed it says how many are so by a check that was weakened.
    """
    claims = [claim for session in sessions for claim in session.claims]
    counts = balance(claims)
    total = sum(counts.values())
    if not total:
        return ""
    weakened = len({claim.copy_key for claim in claims if claim.is_weakened})
    by = f" ({weakened:,} by a check that was weakened)" if weakened else ""
    parts = [f"{counts[state]:,} {WORDS[state]}{by if state == 'backed' else ''}" for state in IN_A_SENTENCE
             if counts.get(state)]  # fmt: skip
    return f"of {counted(total, 'claim')} {', '.join(parts)}"


def coding_sessions(case: Case) -> tuple[SessionVerdict, ...]:
    """The sessions whose agents speak of work that can be checked; elsewhere such words are talk."""
    return tuple(session for session in case.sessions if session.profile == "coding")


def is_work(case: Case) -> bool:
    """Whether coding agents at work are all that was seen: who speaks how is not what their reader asks."""
    return bool(case.sessions) and all(session.profile == "coding" for session in case.sessions)


def work_words(case: Case) -> str:
    """The balance of all coding sessions, the one figure of a case; "" where nothing is claimed.

    What a check of its kind backs is told apart from what only an edit or a call stands behind.
    """
    sessions = coding_sessions(case)
    claims = [claim for session in sessions for claim in session.claims]
    backed = balance(claims).get("backed", 0)
    checked = balance([claim for claim in claims if claim.kind in CHECKED]).get("backed", 0)
    words = balance_words(sessions)
    if not backed or checked == backed:
        return words
    how = f"{checked:,} by tests, a build or a linter, the rest" if checked else "none by a check, each"
    return f"{words}; of the backed {how} by an edit or a call alone"


def unread_sessions(case: Case) -> tuple[SessionVerdict, ...]:
    """The coding sessions whose claims could not be read: nothing found there says nothing."""
    return tuple(session for session in coding_sessions(case) if session.unread)


def unread_words(sessions: Iterable[SessionVerdict]) -> str:
    """``the claims of 2 sessions (“Title”, …) were not read``; "" where all were."""
    unread = [session for session in sessions if session.unread]
    if not unread:
        return ""
    names = ", ".join(f"“{title_line(session.title or session.conversation, TITLE)}”" for session in unread[:NAMED])
    more = f" and {len(unread) - NAMED:,} more" if len(unread) > NAMED else ""
    return f"what agents claim in {counted(len(unread), 'session')} ({names}{more}) was not read"


def ledger_words(case: Case) -> tuple[str, ...]:
    """The balance of a case in a sentence."""
    words = work_words(case)
    return (f"What agents say of their work: {words}.",) if words else ()
