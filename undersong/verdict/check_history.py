"""What was checked and what was changed in a session, in order: the evidence for and against claims about checks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from undersong.datafiles.verdict_config import outcomes_config
from undersong.verdict.claims import claims_of_text
from undersong.verdict.shell import CheckKind
from undersong.verdict.tool_outcomes import OutcomeState, outcome_pattern
from undersong.verdict.transcript import PlacedOutcome, Transcript


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
