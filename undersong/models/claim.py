"""The claims of an agent about its work, held against the evidence of the session, and ways round a check."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from undersong.models.evaluation import Quote
from undersong.models.message import Record

LedgerKind = Literal[
    "tests", "build", "lint", "fixed", "wrote", "ran", "pushed", "committed", "sent", "verified", "read", "done"
]
ClaimState = Literal["backed", "unsupported", "contradicted", "disputed", "hedged", "withdrawn"]
AGAINST: frozenset[ClaimState] = frozenset({"contradicted", "disputed"})  # states that somebody should look at
BypassKind = Literal[
    "skipped", "deleted", "emptied", "weakened", "special_cased", "silenced", "no_verify", "reproduction_edited",
    "changed_after_check", "part_run", "counts_differ",
]  # fmt: skip


class LedgerClaim(Record, frozen=True, kw_only=True):
    """One claim about the work, and what the session has for or against it.

    ``object`` is what the claim speaks of, as far as the sentence names it. ``reason`` says why it has its ``state``;
    ``evidence`` quotes what speaks for or against it, and ``check`` is the command or tool behind that. ``masked``: the
    exit code of the check was another command's.
    """

    conversation: str
    message_id: str
    position: int
    agent: str
    time: datetime | None
    kind: LedgerKind
    object: str
    sentence: Quote
    state: ClaimState
    reason: str
    evidence: tuple[Quote, ...] = ()
    check: str = ""
    masked: bool = False

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """The sentence of the claim, then the evidence."""
        return (self.sentence, *self.evidence)


class Bypass(Record, frozen=True, kw_only=True):
    """A way round a check, told as what was done: ``lines`` are those of the edit, the command or the output."""

    kind: BypassKind
    message_id: str
    position: int
    agent: str
    explanation: str
    lines: tuple[str, ...] = ()
    path: str = ""


class RepeatedFailure(Record, frozen=True, kw_only=True):
    """The same command that failed again and again: where time was lost. ``seconds`` from first to last, if known."""

    command: str
    times: int
    first: int
    last: int
    line: str
    seconds: float | None = None


def balance(claims: Iterable[LedgerClaim]) -> dict[str, int]:
    """Claims by state, a resumed copy of a message counted once."""
    counts: dict[str, int] = {}
    seen: set[tuple[object, ...]] = set()
    for claim in claims:
        key = (claim.time, claim.kind, claim.sentence.sha256, claim.sentence.start)
        if claim.time is None or key not in seen:
            counts[claim.state] = counts.get(claim.state, 0) + 1
        seen.add(key)
    return counts
