"""The row: one message with its signals, route and evaluation, and the structural flags of its turn."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from undersong.models.evaluation import Evaluation, Indicator, Reading, Route
from undersong.models.message import (
    Domain,
    Message,
    Observed,
    Record,
    Role,
    Scale,
    SourceRef,
    State,
    Tier,
    TraitScores,
    Width,
    applicable_scores,
)
from undersong.models.scan import Deference, Hit, Loop, Scan

_JUDGED = ("state", "reason", "traits", "indicators", "signals", "domain", "engines", "spans", "judge", "judge_hash",
           "reading")  # fmt: skip


class Row(Record, frozen=True):
    """One message as the steps pass it on: the JSON Lines row of `scan`, `evaluate` and `detect`.

    Each step adds keys; ``traits`` is None with the ``state`` that says why. A trait in it that is None does not apply
    to the message, one that is not in it was not given; to rules both are unknown. ``tier`` None = not routed.
    ``scale`` "rank": the traits are ranks within the corpus (0 lowest, 1 highest), since the judge was not measured on
    such text (``domain``); only their order counts. ``spans`` is ``text[start:end]`` of a signal's strongest sentence.
    ``labels`` are the traits and labels of the hits, each once, in order: they stay where the hits are left out.
    ``bands`` names the table of null bands that hold for ``signals``: that of the case, or of a file beside the rows.
    """

    id: str
    conversation: str = ""
    position: int = 0
    time: datetime | None = None
    agent: str = ""
    target: str | None = None
    role: Role = "agent"
    observed: Observed = "unknown"
    branch: str | None = None
    text: str | None = None
    tier: Tier | None = None
    tier_before: Tier | None = None
    width: Width | None = None
    sampled: bool = False
    reasons: tuple[str, ...] = ()
    triage: float | None = None
    flags: dict[str, int] = {}
    total: int = 0
    density: float = 0.0
    hits: tuple[Hit, ...] = ()
    labels: tuple[str, ...] = ()
    hard_constraints: tuple[str, ...] = ()
    loops: tuple[Loop, ...] = ()
    deference: Deference | None = None
    sentiment_score: float | None = None
    code_change_delta: float | None = None
    latency_drop: bool | None = None
    state: State = "unread"
    reason: str | None = None
    traits: TraitScores | None = None
    indicators: tuple[Indicator, ...] | None = None
    signals: dict[str, float] = {}
    domain: Domain | None = None
    scale: Scale | None = None
    engines: dict[str, str] = {}
    spans: dict[str, tuple[int, int]] = {}
    judge: str | None = None
    judge_hash: str | None = None
    source_ref: SourceRef | None = None
    reading: Reading | None = None
    bands: str | None = None

    @property
    def absolute_scores(self) -> dict[str, float] | None:
        """The scores that may be held against a threshold, of the traits that apply; None for ranks and unread rows."""
        traits = self.traits
        return None if traits is None or self.scale == "rank" else applicable_scores(traits)

    @classmethod
    def of(cls, message: Message, scan: Scan, route: Route, evaluation: Evaluation | None = None) -> Row:
        """The row of one message from what the steps said of it; without an evaluation it is unread."""
        row = cls(
            id=message.id,
            conversation=message.conversation,
            position=message.position,
            time=message.time,
            agent=message.agent,
            target=message.target,
            role=message.role,
            observed=message.observed,
            branch=message.branch,
            text=message.text,
            tier=route.tier,
            tier_before=route.tier_before,
            width=route.width,
            sampled=route.sampled,
            reasons=route.reasons,
            triage=scan.triage,
            flags=scan.flags,
            total=scan.total,
            density=scan.density,
            hits=scan.hits,
            labels=_names(scan.hits),
            hard_constraints=scan.hard_constraints,
            loops=scan.loops,
            deference=scan.deference,
            sentiment_score=scan.sentiment_score,
            code_change_delta=scan.code_change_delta,
            latency_drop=scan.latency_drop,
            reason="not evaluated",
            source_ref=message.source_ref,
        )
        return row if evaluation is None else _judged(row, evaluation)


class DownstreamRow(Row, frozen=True):
    """A row of an agent that another one addressed, as it stands in the sequence of that other one towards it.

    ``target`` is its own author there, so that it belongs to that sequence; ``passed_to`` is whom it was addressed to
    (None: everybody).
    """

    passed_to: str | None = None


def _names(hits: tuple[Hit, ...]) -> tuple[str, ...]:
    """The traits and labels of hits, each once, in alphabetical order."""
    return tuple(sorted({name for hit in hits for name in (hit.label, hit.trait)})) if hits else ()


def _judged(row: Row, evaluation: Evaluation) -> Row:
    """The row with its evaluation: the fields that both have, and the scale of the scores."""
    scale = None if evaluation.traits is None else "level"
    return msgspec.structs.replace(row, scale=scale, **{name: getattr(evaluation, name) for name in _JUDGED})


DEATH_SPIRAL = "Death Spiral"
HIGH_DEFERENCE = "High Deference"
LAZY_OUTPUT = "Lazy Output"
CANNED_RESPONSES = "Canned Responses"
THREAD_SIGNAL, REPEAT_FLAGS = "thread signal: ", "repeat flags: "  # how a route's reason names a thread signal
FLAGS = (DEATH_SPIRAL, HIGH_DEFERENCE, LAZY_OUTPUT, CANNED_RESPONSES)


def turn_flags(signals: Scan | Row) -> tuple[str, ...]:
    """The flags of one turn in a fixed order; a flag routes and informs, it is never a deduction.

    A sudden drop in latency is "Canned Responses" where the turn also repeats itself or earlier turns, else
    "Lazy Output": the drop has both readings, and nothing else decides between them.
    """
    repeated = own_loops(signals)
    loops = bool(repeated) and all(loop.scope != "held" for loop in repeated)  # to decline again is to hold
    flags = [DEATH_SPIRAL] if loops else []
    if signals.deference is not None and signals.deference.high:
        flags.append(HIGH_DEFERENCE)
    if signals.latency_drop:
        flags.append(CANNED_RESPONSES if loops else LAZY_OUTPUT)
    return tuple(flags)


def own_loops(signals: Scan | Row) -> tuple[Loop, ...]:
    """The loops in which an agent repeats itself: an echo repeats somebody else."""
    return tuple(loop for loop in signals.loops if loop.scope != "echo")


def flagged_before(agent: str) -> str:
    """How the reason of a route names an agent that was flagged before; the number of messages follows."""
    return f"{REPEAT_FLAGS}{agent} was flagged in "


def thread_signals(reasons: Iterable[str]) -> tuple[str, ...]:
    """The thread signals among the reasons of a route, in words: ``escalation``, ``cycling``, ``repeat flags``."""
    signals = []
    for reason in reasons:
        if reason.startswith(THREAD_SIGNAL):
            signals.append(reason.removeprefix(THREAD_SIGNAL).replace("_", " "))
        elif reason.startswith(REPEAT_FLAGS):
            signals.append("repeat flags")
    return tuple(dict.fromkeys(signals))
