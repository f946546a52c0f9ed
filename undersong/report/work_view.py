"""One page on the work of coding agents: the claims to look at, the balance, ways round checks, where time was lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from undersong.core.text import counted
from undersong.models import Bypass, Case, LedgerClaim, RepeatedFailure, SessionVerdict
from undersong.report.claims_view import WORDS, balance_words

CLAIMS = 12  # claims to look at that the page lists; claims.jsonl holds all
BYPASSES, FAILURES = 12, 6  # lines of the other parts; case.json holds all
URGENT = ("contradicted", "disputed", "unsupported")
CHECKABLE = frozenset({"tests", "build", "lint", "fixed", "pushed", "committed", "sent"})
MINUTE, HOUR = 60, 3600  # seconds


@dataclass(frozen=True)
class ClaimToCheck:
    """A claim to look at, with when and where it was made, what speaks against it, and a command that opens it."""

    claim: LedgerClaim
    project: str

    @property
    def date(self) -> str:
        """The day, "" where nobody says."""
        return self.claim.time.date().isoformat() if self.claim.time else ""

    @property
    def state(self) -> str:
        """The state in words."""
        return WORDS[self.claim.state]

    @property
    def against(self) -> str:
        """The line that speaks against it, else why nothing speaks for it."""
        quoted = self.claim.evidence[0].text.strip() if self.claim.evidence else ""
        return quoted if quoted and self.claim.state != "unsupported" else self.claim.reason

    @property
    def command(self) -> str:
        """What shows the message with all that led to it."""
        return f"undersong explain {self.claim.message_id}"


@dataclass(frozen=True)
class WorkView:
    """What the page shows."""

    balance: str
    claims: tuple[ClaimToCheck, ...]
    bypasses: tuple[tuple[str, Bypass], ...]
    failures: tuple[tuple[str, RepeatedFailure], ...]


def work_view(case: Case) -> WorkView | None:
    """The page over all sessions of coding agents, None where there is none."""
    sessions = [session for session in case.sessions if session.profile == "coding"]
    if not sessions:
        return None
    folders = _folders(case)
    bypasses = [(_project(session, folders), item) for session in sessions for item in session.bypasses]
    failures = [(_project(session, folders), row) for session in sessions for row in session.repeated]
    failures.sort(key=lambda pair: (-pair[1].times, -(pair[1].seconds or 0.0), pair[0], pair[1].first))
    return WorkView(
        balance=balance_words(sessions),
        claims=tuple(_claims(sessions, folders))[:CLAIMS],
        bypasses=tuple(bypasses[:BYPASSES]),
        failures=tuple(failures[:FAILURES]),
    )


def duration_words(row: RepeatedFailure) -> str:
    """``4 times over 12 minutes``, without the span where the source has no times."""
    times = counted(row.times, "time")
    if row.seconds is None or row.seconds < MINUTE:
        return times
    if row.seconds < HOUR:
        return f"{times} over {counted(round(row.seconds / MINUTE), 'minute')}"
    return f"{times} over {counted(round(row.seconds / HOUR), 'hour')}"


def _claims(sessions: Iterable[SessionVerdict], folders: Mapping[str, str]) -> list[ClaimToCheck]:
    """The claims to look at: what something speaks against first, then what nothing speaks for, the latest first."""
    chosen: dict[tuple[str, str, str], ClaimToCheck] = {}
    for session in sessions:
        for claim in session.claims:
            if claim.state in URGENT and (claim.state != "unsupported" or claim.kind in CHECKABLE):
                once = claim.sentence.text if claim.state == "contradicted" else claim.state
                key = (str(claim.time or session.conversation), claim.message_id, once)
                chosen.setdefault(key, ClaimToCheck(claim, _project(session, folders)))
    return sorted(chosen.values(), key=_rank)


def _rank(item: ClaimToCheck) -> tuple[int, float, str, int]:
    claim = item.claim
    latest = -claim.time.timestamp() if claim.time else 0.0
    return URGENT.index(claim.state), latest, claim.conversation, claim.position


def _folders(case: Case) -> dict[str, str]:
    """The folder that the file of a session is in, by conversation, where a cited message says so."""
    sources = ((message.conversation, message.source_ref) for message in case.cited if message.source_ref)
    return {name: PurePosixPath(source.file).parent.name for name, source in sources}


def _project(session: SessionVerdict, folders: Mapping[str, str]) -> str:
    """The folder that a session's file is in, else its title or id."""
    return folders.get(session.conversation) or session.title or session.conversation
