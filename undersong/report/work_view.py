"""One page on the work of coding agents: the claims to look at, the balance, ways round checks, where time was lost."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from undersong.core.text import counted
from undersong.models import Bypass, Case, LedgerClaim, RepeatedFailure, SessionVerdict
from undersong.models.verdict import AGAINST, BROKEN, DECISIVE, NARROWED, NARROWER, PART
from undersong.report.claims_view import balance_words, relation_words, state_words
from undersong.routing.budget import clopper_pearson

CLAIMS = 12  # claims to look at that the page lists; claims.jsonl holds all
SHARES = 12  # rows of each kind of share
SUBAGENTS = ("/agent-", "/sidechain-")  # how readers name the sessions of subagents, below that of their caller
BYPASSES, FAILURES = 12, 6  # lines of the other parts; case.json holds all
URGENT = ("contradicted", "disputed", "unsupported")
CHECKABLE = ("tests", "build", "pushed", "committed", "sent", "fixed", "lint")  # what weighs more, first
LESS = (
    PART,
    NARROWER,
    NARROWED,
    BROKEN,
)  # reasons of a claim beside which a check of its kind was run and says less, or the contrary
_TIMED = re.compile(r"[ ]\d{4}-\d\d-\d\dT\S+$")  # a time that some exports write behind the name of a model
MINUTE, HOUR = 60, 3600  # seconds


@dataclass(frozen=True)
class ClaimToCheck:
    """A claim to look at, with when and where it was made, what speaks against it, and a command that opens it."""

    claim: LedgerClaim
    project: str
    title: str = ""

    @property
    def date(self) -> str:
        """The day, "" where nobody says."""
        return self.claim.time.date().isoformat() if self.claim.time else ""

    @property
    def state(self) -> str:
        """The state in words."""
        return state_words(self.claim)

    @property
    def heading(self) -> str:
        """The same for the page, which tells a check of a part, or one before the last change, from none at all."""
        reason = self.claim.reason if self.claim.state == "unsupported" and self.claim.check else ""
        if reason in (PART, NARROWER):
            return "checked in part"
        if reason == NARROWED:
            return "check narrowed"
        return "not checked since" if "since the last change" in reason else self.state

    @property
    def relation(self) -> str:
        """What that line is to it: against it, or the answer of the person."""
        return relation_words(self.claim) if self.claim.state in AGAINST else "against it"

    @property
    def against(self) -> str:
        """The line that speaks against it, else why nothing speaks for it."""
        quoted = self.claim.evidence[0].text.strip() if self.claim.evidence else ""
        return quoted if quoted and self.claim.state != "unsupported" else self.claim.reason

    @property
    def command(self) -> str:
        """What shows the message with all that led to it."""
        return f"undersong explain {shlex.quote(self.claim.message_id)}"


@dataclass(frozen=True)
class ClaimShare:
    """Of the claims of a project, a model or a month: how many are backed, unchecked, and spoken against."""

    by: str
    name: str
    claims: int
    backed: int
    unchecked: int
    against: int
    bypasses: int = 0
    sessions: int = 0
    unread: int = 0

    @property
    def backed_words(self) -> str:
        """``0.93 [0.91, 0.95]``: the share that is backed, with its interval at 95 %."""
        return self._share(self.backed)

    @property
    def against_words(self) -> str:
        """The same of those that something or somebody speaks against."""
        return self._share(self.against)

    def _share(self, number: int) -> str:
        if not self.claims:
            return "–"
        low, high = clopper_pearson(number, self.claims)
        return f"{number / self.claims:.2f} [{low:.2f}, {high:.2f}]"


@dataclass(frozen=True)
class WorkView:
    """What the page shows; ``shares`` begin with that of all claims."""

    balance: str
    shares: tuple[ClaimShare, ...]
    subagents: tuple[ClaimToCheck, ...]
    claims: tuple[ClaimToCheck, ...]
    more: int
    unread: tuple[SessionVerdict, ...]
    bypasses: tuple[tuple[str, Bypass], ...]
    failures: tuple[tuple[str, RepeatedFailure], ...]


def work_view(case: Case) -> WorkView | None:
    """The page over all sessions of coding agents, None where there is none."""
    sessions = [session for session in case.sessions if session.profile == "coding"]
    if not sessions:
        return None
    bypasses = [(_project(session), item) for session in sessions for item in session.bypasses]
    failures = [(_project(session), row) for session in sessions for row in session.repeated]
    failures.sort(key=lambda pair: (-pair[1].times, -(pair[1].seconds or 0.0), pair[0], pair[1].first))
    return WorkView(
        balance=balance_words(sessions),
        shares=tuple(_shares(sessions)),
        subagents=tuple(_of_subagents(sessions))[:CLAIMS],
        claims=first_claims(sessions),
        more=max(len(_claims(sessions)) - CLAIMS, 0),
        unread=tuple(session for session in sessions if session.unread),
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


def first_claims(sessions: Iterable[SessionVerdict]) -> tuple[ClaimToCheck, ...]:
    """The claims that the page lists."""
    return tuple(_claims(sessions)[:CLAIMS])


def _claims(sessions: Iterable[SessionVerdict]) -> list[ClaimToCheck]:
    """The claims to look at: what something speaks against first, then what nothing speaks for.

    Of those a run that shows less than is claimed weighs more than none, and a style check least; the latest first.
    """
    chosen: dict[tuple[str, str, str], ClaimToCheck] = {}
    for session in sessions:
        for claim in session.claims:
            if claim.state in URGENT and (claim.state != "unsupported" or claim.kind in CHECKABLE):
                once = claim.sentence.text if claim.state == "contradicted" else claim.state
                key = (str(claim.time or session.conversation), claim.message_id, once)
                chosen.setdefault(key, ClaimToCheck(claim, _project(session), session.title or ""))
    ranked = sorted(chosen.values(), key=_rank)
    spoken_against = {item.claim.message_id for item in ranked if item.claim.state != "unsupported"}
    return _varied([item for item in ranked
                    if item.claim.state != "unsupported" or item.claim.message_id not in spoken_against])  # fmt: skip


def _varied(ranked: Sequence[ClaimToCheck]) -> list[ClaimToCheck]:
    """The same with what repeats an unchecked claim of its kind in the same session behind all others."""
    first, repeated = list[ClaimToCheck](), list[ClaimToCheck]()
    seen = set[tuple[str, str]]()
    for item in ranked:
        key = (item.claim.conversation, item.claim.kind)
        (repeated if item.claim.state == "unsupported" and key in seen else first).append(item)
        seen.add(key)
    return first + repeated


def _of_subagents(sessions: Sequence[SessionVerdict]) -> Iterator[ClaimToCheck]:
    """The claims in reports of subagents, whose sessions stand below another's, that their own checks contradict."""
    names = {session.conversation for session in sessions}
    for session in sessions:
        above, below, _ = session.conversation.partition("/")
        if not below or (above not in names and not session.conversation.startswith(SUBAGENTS, len(above))):
            continue
        yield from (ClaimToCheck(claim, _project(session), session.title or "") for claim in session.claims
                    if claim.state == "contradicted")  # fmt: skip


def _shares(sessions: Sequence[SessionVerdict]) -> Iterator[ClaimShare]:
    """The shares of all claims, then by folder, by model and by month where there are several, most claims first."""
    claims = list(_once(sessions))
    if not claims and not any(session.unread or session.bypasses for session in sessions):
        return
    yield _share("all", "", [claim for _, claim in claims], sessions)
    projects: dict[str, list[LedgerClaim]] = {session.project: [] for session in sessions}
    groups: dict[str, dict[str, list[LedgerClaim]]] = {"project": projects, "model": {}, "month": {}}
    for project, claim in claims:
        groups["project"].setdefault(project, []).append(claim)
        month = claim.time.strftime("%Y-%m") if claim.time else ""
        for by, name in (("model", _TIMED.sub("", claim.model)), ("month", month)):
            groups[by].setdefault(name, []).append(claim)
    for by, named in groups.items():
        if len(named) > 1 and set(named) != {""}:
            shares = [_share(by, name or "unknown", own, _of(sessions, name) if by == "project" else ())
                      for name, own in named.items()]  # fmt: skip
            order = (lambda one: one.name) if by == "month" else (lambda one: (-one.against - one.bypasses,
                     -one.unread, -one.claims, one.name))  # fmt: skip
            yield from sorted(shares, key=order)[:SHARES]


def _once(sessions: Iterable[SessionVerdict]) -> Iterator[tuple[str, LedgerClaim]]:
    """Each claim with its project; copies of a message in resumed sessions count once, by what the fullest knows."""
    chosen: dict[tuple[object, ...], tuple[str, LedgerClaim]] = {}
    for session in sessions:
        for claim in session.claims:
            key = claim.copy_key
            before = chosen.get(key)
            if before is None or DECISIVE.index(claim.state) < DECISIVE.index(before[1].state):
                chosen[key] = (session.project, claim)
    yield from chosen.values()


def _of(sessions: Sequence[SessionVerdict], project: str) -> list[SessionVerdict]:
    return [session for session in sessions if session.project == project]


def _share(by: str, name: str, claims: Sequence[LedgerClaim], sessions: Sequence[SessionVerdict]) -> ClaimShare:
    states = Counter(claim.state for claim in claims)
    against = sum(states[state] for state in AGAINST)
    bypasses = sum(not item.is_lead for session in sessions for item in session.bypasses)
    unread = sum(bool(session.unread) for session in sessions)
    return ClaimShare(
        by, name, len(claims), states["backed"], states["unsupported"], against, bypasses, len(sessions), unread
    )


def _rank(item: ClaimToCheck) -> tuple[int, bool, int, float, str, int]:
    claim = item.claim
    latest = -claim.time.timestamp() if claim.time else 0.0
    bare = claim.state == "unsupported" and claim.reason not in LESS
    weight = CHECKABLE.index(claim.kind) if claim.state == "unsupported" else 0
    return URGENT.index(claim.state), bare, weight, latest, claim.conversation, claim.position


def _project(session: SessionVerdict) -> str:
    """The folder that a session's file is in, else its title or id."""
    return session.project or session.title or session.conversation
