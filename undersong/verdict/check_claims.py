"""What was checked and what was changed in a session, in order, and the claims about checks that are held against it.

Of the claims: which stand, which nothing supports, which are wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from undersong.datafiles.verdict_config import outcomes_config
from undersong.models.verdict import ClaimState
from undersong.verdict.admissions import admits_check
from undersong.verdict.claims import Claim, claims_of_text, is_whole
from undersong.verdict.shell import CheckKind
from undersong.verdict.tool_outcomes import OutcomeState, outcome_pattern
from undersong.verdict.transcript import PlacedOutcome, Transcript, TranscriptTurn

SILENT = frozenset({"build", "lint", "types"})  # checks that print nothing where all is well
NEVER = "nothing of the kind was run before it"
STALE = "nothing of the kind was run since the last change"


class CheckEvent(NamedTuple):
    """A check or a change at a place of the transcript; ``outcome`` None is a change.

    ``reported``: a subagent says so, and its calls are not in the session.
    """

    place: int
    kinds: frozenset[CheckKind]
    outcome: PlacedOutcome | None = None
    reported: bool = False

    def state(self, kinds: Iterable[CheckKind]) -> OutcomeState:
        """What it says of some kinds of check: that one failed, else that one passed."""
        if self.outcome is None:
            return "unknown"
        if self.reported:
            return "passed"
        outcome, wanted = self.outcome.outcome, set(kinds)
        if outcome.failed_kinds & wanted:
            return "failed"
        return "passed" if outcome.passed_kinds & wanted else "unknown"


class CheckHistory:
    """The checks and changes of a transcript in order."""

    def __init__(self, transcript: Transcript) -> None:
        self._events = [event for placed in transcript.outcomes for event in _events(placed)]
        self._places = [event.place for event in self._events]

    def before(self, place: int) -> Sequence[CheckEvent]:
        """What came before a turn."""
        return self._events[: bisect_left(self._places, place)]

    def after(self, place: int) -> Sequence[CheckEvent]:
        """What came in a turn or after it."""
        return self._events[bisect_left(self._places, place) :]


def since_change(events: Sequence[CheckEvent]) -> Sequence[CheckEvent]:
    """The checks behind the last change."""
    last = max((number for number, event in enumerate(events) if event.outcome is None), default=-1)
    return events[last + 1 :]


def of_kinds(events: Iterable[CheckEvent], kinds: Iterable[CheckKind]) -> list[CheckEvent]:
    """The checks of some kinds."""
    wanted = set(kinds)
    return [event for event in events if event.outcome is not None and event.kinds & wanted]


def _events(placed: PlacedOutcome) -> list[CheckEvent]:
    outcome, place = placed.outcome, placed.turn.place
    changed = CheckEvent(place, frozenset())
    events = [changed] if outcome.changes else []
    if outcome.family == "check" and not outcome_pattern("not_run").search(_start(placed)):
        events.append(CheckEvent(place, outcome.kinds, placed))
    elif outcome.tool in outcomes_config().subagents:
        kinds = frozenset(kind for claim in claims_of_text(outcome.text) for kind in claim.checks if not claim.hedged)
        events += [changed] if outcome.state != "failed" else []
        events += [CheckEvent(place, kinds, placed, reported=True)] if kinds else []
    return [*events, changed] if outcome.changes_after else events


def _start(placed: PlacedOutcome) -> str:
    return placed.outcome.text[:400]


class Ruling(NamedTuple):
    """What the session says of a claim, and the check that says so."""

    state: ClaimState
    reason: str
    check: CheckEvent | None = None


class RuledClaim(NamedTuple):
    """A claim about a check in its turn, with the ruling."""

    turn: TranscriptTurn
    claim: Claim
    ruling: Ruling


def check_claims(transcript: Transcript, history: CheckHistory) -> Iterator[RuledClaim]:
    """Every claim about a check, in order."""
    for turn in transcript.turns:
        for claim in turn.claims:
            if claim.checks:
                yield RuledClaim(turn, claim, rule_on(turn, claim, history))


def rule_on(turn: TranscriptTurn, claim: Claim, history: CheckHistory) -> Ruling:
    """The ruling on one claim about a check, by what was run before it and behind the last change."""
    earlier = history.before(turn.place)
    recent = since_change(earlier)
    failing = _failing(turn, claim, recent)
    if failing is not None:
        return failing
    checked = of_kinds(recent, claim.checks)
    if not checked:
        ever = of_kinds(earlier, claim.checks)
        return Ruling("unsupported", STALE if ever else NEVER, ever[-1] if ever else None)
    passed = next((event for event in reversed(checked) if event.state(claim.checks) == "passed"), None)
    if passed is not None:
        return Ruling("backed", "a check passed after the last change", passed)
    silent = next((event for event in reversed(checked) if event.kinds & SILENT & set(claim.checks)), None)
    if silent is not None:
        return Ruling("backed", "a check ran after the last change and printed no failure", silent)
    return Ruling("unsupported", "the output of the check does not say that it passed", checked[-1])


def _failing(turn: TranscriptTurn, claim: Claim, recent: Sequence[CheckEvent]) -> Ruling | None:
    """The ruling where the latest check of a kind failed, and nothing was changed since."""
    for kind in claim.checks:
        own = of_kinds(recent, (kind,))
        if not own or own[-1].state((kind,)) != "failed":
            continue
        failed = own[-1]
        if failed.outcome is None or _is_about_a_part(turn, claim, own[:-1]):
            continue
        if admits_check(turn, claim, failed.outcome.outcome, (kind,)):
            return Ruling("hedged", "the message says that some of it fails", failed)
        return Ruling("contradicted", "the latest check of the kind failed, and nothing was changed since", failed)
    return None


def _is_about_a_part(turn: TranscriptTurn, claim: Claim, before: Sequence[CheckEvent]) -> bool:
    """Whether a claim speaks of some tests only, and a run of them had passed."""
    return not is_whole(turn.prose, claim) and any(event.state(claim.checks) == "passed" for event in before)


def kinds_of(claim: Claim) -> tuple[CheckKind, ...]:
    """What a claim says was checked; a fix or work that is done is held against every check."""
    return claim.checks or ("tests", "build", "lint", "run")
