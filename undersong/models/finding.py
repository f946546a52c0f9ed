"""Findings of the pattern detector with their explanations, and the outcome of each rule."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal

import msgspec

from undersong.models.evaluation import Quote
from undersong.models.frame import FrameLibrary, frame_of
from undersong.models.message import Answer, Level, Record
from undersong.models.notebook import finding_html

FindingStatus = Literal["open", "settled"]
OWN_RULE = "found by a rule of your own, for which no confidence was measured"
UNMEASURED_READER = (
    "its confidence is that of the readers that were measured and decides what is a lead; how often this reader is"
    " right was not measured"
)
SURE = 0.5  # the confidence below which a finding is a lead


class Outcome(Record, frozen=True, kw_only=True):
    """What came of a sequence towards somebody: the agent's first request after it began, and what was answered.

    ``not_answered`` and ``no_request`` are stated of the conversations of the finding alone; ``unclear`` is an answer
    with no phrase of either kind, or of both.
    """

    answer: Answer
    conversation: str | None = None
    request: Quote | None = None
    reply: Quote | None = None


class Why(Record, frozen=True, kw_only=True):
    """What moved one score of one message of a finding, where the judge can tell.

    ``name`` is the trait or signal, ``score`` the judge's own (0-1). ``words`` are words or pairs of neighbours of the
    message with what each added to the trait's raw score (below 0: took from it), the weightiest first; ``sentence`` is
    the one that shows a signal most.
    """

    conversation: str
    message_id: str
    name: str
    score: float
    words: tuple[tuple[str, float], ...] = ()
    sentence: Quote | None = None


class Finding(Record, frozen=True, kw_only=True, eq=False):
    """A sequence that is consistent with a pattern.

    ``message_conversations`` names the conversation of each of ``message_ids``, since ids may repeat between them.
    ``stages`` pairs each read message with its DEFINE variable; ``gap_ids`` are read rows passed over, ``unread_ids``
    holes. ``strength`` 0-1 is the rule's own measure, not a probability. ``chance``, ``q`` and ``stability`` are None
    where they were not computed (docs/statistics.md); ``shuffles`` = (as strong, drawn) are the counts of ``chance``,
    ``replicas`` the number of which ``stability`` is a share. ``q`` belongs to a run: it is outside equality, as it is
    outside the id.
    ``reading`` is the id of the sequence reading that says so, None where rules over scores alone do; ``nominated_by``
    are the reasons for which the sequence was read. ``confidence`` is the share of findings like this one that are
    true in the reference sets at the stated prevalence, None where that is not known; ``notes`` say where it was
    measured of other readers than the one that named it.
    ``status`` is ``open`` while later messages could extend or replace the sequence, else ``settled``. ``replaces`` is
    the id of a finding over some of the same messages, reported before, whose place this one takes.
    ``balance`` is the agent's mean per dimension. ``start`` and ``end`` are message times. ``outcome`` is None without
    a target or without texts. ``why`` is what moved the scores that the rule asks for; None where that is not told.
    """

    finding_id: str
    pattern: str
    title: str
    level: Level
    rule_hash: str
    agent: str
    target: str | None
    message_ids: tuple[str, ...]
    message_conversations: tuple[str, ...] = ()
    gap_ids: tuple[str, ...] = ()
    unread_ids: tuple[str, ...] = ()
    stages: tuple[tuple[str, str], ...] = ()
    start: datetime | None = None
    end: datetime | None = None
    strength: float = 0.0
    measures: dict[str, float] = {}
    chance: float | None = None
    q: float | None = None
    stability: float | None = None
    shuffles: tuple[int, int] | None = None
    replicas: int | None = None
    conversations: tuple[str, ...] = ()
    quotes: tuple[Quote, ...] = ()
    balance: dict[str, float] = {}
    judges: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    outcome: Outcome | None = None
    why: tuple[Why, ...] | None = None
    confidence: float | None = None
    reading: str | None = None
    nominated_by: tuple[str, ...] = ()
    status: FindingStatus = "settled"
    replaces: str | None = None

    def _repr_html_(self) -> str:
        """What a notebook shows: the stages with their quotes."""
        return finding_html(self)

    def to_frame(self, library: FrameLibrary = "polars") -> Any:
        """The messages of the finding as a data frame, one row each: stage, message and quote; see ``to_frame``."""
        return frame_of(self, library)

    @property
    def is_lead(self) -> bool:
        """Whether it is something to look at and no accusation: true less often than not, or how often is not known."""
        return self.confidence is None or self.confidence < SURE

    def counts_from(self, confidence: float | None) -> bool:
        """Whether a gate heeds it: from ``confidence`` (0-1, None: .5) on, and where its own is not known."""
        return self.confidence is None or self.confidence >= (SURE if confidence is None else confidence)

    @property
    def is_read(self) -> bool:
        """Whether it rests on a reading of the sequence itself, and not on rules over scores."""
        return "certainty" in self.measures

    @property
    def compares(self) -> bool:
        """Whether it rests on a reading of messages of two conversations side by side."""
        return self.is_read and len(self.conversations) > 1

    @property
    def survived(self) -> int | None:
        """In how many of the ``replicas`` the match was found again."""
        return None if self.stability is None or self.replicas is None else round(self.stability * self.replicas)

    def __eq__(self, other: object) -> bool:
        """Equal in everything but ``q`` and ``replaces``, which follow from what else was found, or before."""
        if not isinstance(other, Finding):
            return NotImplemented
        return _compared(self) == _compared(other)

    def __ne__(self, other: object) -> bool:
        """What ``==`` denies; a Struct does not derive it."""
        same = self.__eq__(other)
        return same if same is NotImplemented else not same

    def __hash__(self) -> int:
        """By id: equal findings have the same."""
        return hash(self.finding_id)


_compared = attrgetter(*(name for name in Finding.__struct_fields__ if name not in ("q", "replaces")))


def distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings without those that repeat another: same pattern, agent and target, and a message in common.

    Several rules look for one pattern, each in its own way. Of findings that repeat each other the likeliest stays,
    then the strongest, then that of the first id. The order is that of the input.
    """
    stays: set[str] = set()
    bound: dict[tuple[str, str, str | None], set[tuple[str, str]]] = {}
    for finding in sorted(findings := tuple(findings), key=_likeliest):
        taken = bound.setdefault((finding.pattern, finding.agent, finding.target), set())
        places = set(zip(finding.message_conversations, finding.message_ids, strict=False))
        if taken.isdisjoint(places):
            stays.add(finding.finding_id)
            taken |= places
    return tuple(finding for finding in findings if finding.finding_id in stays)


def _likeliest(finding: Finding) -> tuple[float, float, str]:
    confidence = SURE if finding.confidence is None else finding.confidence  # as a gate counts it
    return -confidence, -finding.strength, finding.finding_id


class RetractedFinding(Record, frozen=True, kw_only=True):
    """A finding that was reported and no longer holds, and why."""

    finding_id: str
    reason: str


class Emerging(Record, frozen=True, kw_only=True):
    """An early warning, and no finding: a sequence past the middle stage of a pattern that is still open.

    ``seen`` and ``missing`` are stages that every match has; ``start`` and ``last`` are message times.
    """

    pattern: str
    title: str
    level: Level
    agent: str
    target: str | None
    seen: tuple[str, ...]
    missing: tuple[str, ...]
    message_ids: tuple[str, ...]
    message_conversations: tuple[str, ...]
    start: datetime | None = None
    last: datetime | None = None


class RuleOutcome(Record, frozen=True, kw_only=True):
    """What became of one rule in a run: never a bare "0 findings". ``pattern`` is the rule's own id.

    ``variant_of`` names the pattern that the rule finds in another way than the rule of that name.
    """

    pattern: str
    rule_hash: str
    status: Literal["ran", "not_applicable", "gave_up"]
    partitions: int = 0
    findings: int = 0
    reason: str = ""
    variant_of: str | None = None


def looked_for(outcomes: Iterable[RuleOutcome]) -> tuple[int, int]:
    """For how many patterns rules looked, of how many. Rules of one pattern count once, as does that for months."""
    ran: dict[str, bool] = {}
    for outcome in outcomes:
        name = (outcome.variant_of or outcome.pattern).removesuffix("_slow")
        ran[name] = ran.get(name, False) or outcome.status == "ran"
    return sum(ran.values()), len(ran)


def by_pattern(outcomes: Iterable[RuleOutcome]) -> tuple[RuleOutcome, ...]:
    """One outcome a pattern: ``ran`` where any of its rules ran, else that of the rule of its own name."""
    chosen: dict[str, RuleOutcome] = {}
    for outcome in outcomes:
        name = outcome.variant_of or outcome.pattern
        before = chosen.get(name)
        better = before is None or (before.status != "ran" and (outcome.status == "ran" or outcome.variant_of is None))
        if better:
            chosen[name] = outcome
    return tuple(msgspec.structs.replace(outcome, pattern=name) for name, outcome in chosen.items())
