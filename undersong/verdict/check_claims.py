"""Claims about checks held against the checks of the session: which stand, which nothing supports, which are wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from undersong.models.claim import ClaimState
from undersong.verdict.admissions import admits_check
from undersong.verdict.check_history import CheckEvent, CheckHistory, of_kinds, since_change
from undersong.verdict.claims import Claim, is_whole
from undersong.verdict.shell import CheckKind
from undersong.verdict.transcript import Transcript, TranscriptTurn

SILENT = frozenset({"build", "lint"})  # checks that print nothing where all is well
NEVER = "nothing of the kind was run before it"
STALE = "nothing of the kind was run since the last change"


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
