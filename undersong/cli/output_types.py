"""The types of what commands print with ``--json``, where it is no record of its own."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from undersong.cli.gate_lines import FailedResult
from undersong.judges.llm.pricing import Price
from undersong.models import (
    Bypass,
    Emerging,
    Finding,
    Lead,
    LedgerClaim,
    Level,
    Missed,
    RepeatedFailure,
    Review,
    ReviewKind,
    SignalBand,
    Spending,
    Tier,
)
from undersong.models.review import DrawnBy
from undersong.models.verdict import ClaimState, LedgerKind, Profile
from undersong.pipeline.agent_profile import Profile as AgentHistoryProfile
from undersong.report.coverage import Coverage
from undersong.report.groups import GroupShare
from undersong.report.opening_choice import Point
from undersong.stores.protocol import AgentEntry


class PointToOpen(Point, frozen=True, kw_only=True):
    """One thing to look at; ``open`` is the command that explains it, "" where nothing was kept."""

    open: str


class JudgeNamed(TypedDict):
    """The judge of a run, and what is known of how far it agrees with labels."""

    name: str
    calibrated: Any
    replayed: bool


class ListedFinding(TypedDict):
    """A finding in a summary; findings.jsonl has all of it."""

    finding_id: str
    pattern: str
    level: Level
    agent: str
    target: str | None
    strength: float
    chance: float | None
    shuffles: tuple[int, int] | None
    q: float | None
    stability: float | None
    confidence: float | None
    lead: bool
    reading: bool
    messages: int
    start: str | None
    end: str | None
    first: str
    last: str


class ListedLead(TypedDict):
    """An agent to look at, and what was counted."""

    agent: str
    reason: str


class ClaimBalance(TypedDict):
    """Claims by state, in words too, and those that something speaks against."""

    states: dict[ClaimState, int]
    words: str
    against: list[LedgerClaim]


class WorkClaim(TypedDict):
    """A claim to look at first, and the command that opens it."""

    state: str
    date: str
    project: str
    kind: LedgerKind
    sentence: str
    against: str
    thought: str
    command: str


class WorkShare(TypedDict):
    """How many claims of a project, a model or a month are backed, unchecked, spoken against."""

    by: str
    name: str
    claims: int
    backed: int
    unchecked: int
    against: int
    words: str


class SubagentClaim(TypedDict):
    """A claim in the report of a subagent that its own checks contradict."""

    project: str
    conversation: str
    sentence: str
    against: str


class ProjectBypass(Bypass, frozen=True, kw_only=True):
    """A way round a check, and the project in which it was taken."""

    project: str


class ProjectFailure(RepeatedFailure, frozen=True, kw_only=True):
    """A command that failed again and again, in words too, and its project."""

    project: str
    words: str


class WorkSummary(TypedDict):
    """The page on the work of coding agents."""

    balance: str
    claims: list[WorkClaim]
    shares: list[WorkShare]
    subagents: list[SubagentClaim]
    bypasses: list[ProjectBypass]
    repeated: list[ProjectFailure]


class _SessionFacts(TypedDict):
    conversation: str
    title: str | None
    score: int | None
    profile: Profile
    assessed: int
    mechanisms: int
    deductions: list[tuple[str, int, str]]
    candidates: int
    to_read: Any
    flags: list[str]
    session_context_vector: list[str]
    messages: int
    read: int
    low_coverage: bool


class ListedSession(_SessionFacts, total=False):
    """A session in a summary; coding sessions have no ``psychogenic_risk``."""

    psychogenic_risk: bool | None


class _AuditFacts(TypedDict):
    next_step: str
    look_title: str
    look: list[PointToOpen]
    let_go: list[str]
    failed_readings: list[str]
    projects: list[str]
    more: str
    more_leads: int
    coverage: Coverage
    report: str
    digest: str
    inputs: int
    conversations: int
    messages: int
    tiers: dict[Tier, int]
    upgrades: dict[str, int]
    states: dict[str, int]
    missed: Missed | None
    missed_words: list[str]
    ranked: int
    kind_words: list[str]
    signals: dict[str, SignalBand]
    judge: JudgeNamed
    prevalence: str
    agreement: Any
    agreement_words: list[str]
    addresses: list[str]
    old_prices: list[str]
    answered_by: Any
    judge_calls: int
    cost_usd: float | None
    spent: Spending | None
    violations: list[str]
    findings: list[ListedFinding]
    look_at: list[ListedLead]
    cautions: list[str]
    smoking_guns: list[str]
    noted: list[str]
    flagged: list[str]
    not_looked_for: list[str]
    sequences: list[str]
    sequence_states: dict[str, int]
    sequence_outcomes: dict[str, int]
    chance: dict[str, int]
    rules: dict[str, list[str]]
    rules_not_run: dict[str, str]
    claims: ClaimBalance
    work: WorkSummary | None
    sessions: list[ListedSession]
    problems: dict[str, int]
    failed: list[str]
    failed_results: list[FailedResult]


class AuditSummary(_AuditFacts, total=False):
    """What ``audit --json`` prints; ``failed`` are the gates that did not hold, ``failed_results`` what they counted,
    ``groups`` come with ``--group-by``.
    """

    groups: list[GroupShare]


class CheckedClaim(TypedDict):
    """A claim that something speaks against."""

    conversation: str
    file: str
    turn: int
    state: ClaimState
    kind: LedgerKind
    sentence: str
    against: str
    check: str


class CheckedBypass(TypedDict):
    """A way round a check."""

    conversation: str
    file: str
    kind: str
    turn: int
    lines: list[str]


class ClaimedSession(TypedDict):
    """A session with a claim that something speaks against, or a way round a check, and the command that opens it."""

    conversation: str
    title: str
    date: str
    file: str
    open: str


class UnreadSession(TypedDict):
    """A session whose claims could not be read, with the reason."""

    conversation: str
    project: str
    why: str


class ClaimsCheck(TypedDict):
    """What ``claims --json`` prints; ``without_ledger`` counts talk without anything to hold claims against."""

    states: dict[ClaimState, int]
    words: str
    without_ledger: int
    unread: list[UnreadSession]
    sessions: list[ClaimedSession]
    against: list[CheckedClaim]
    bypasses: list[CheckedBypass]


class AgentLine(AgentEntry, frozen=True, kw_only=True):
    """An agent of a store with the number of its findings."""

    findings: int


class AgentPage(AgentHistoryProfile, frozen=True, kw_only=True):
    """An agent over its whole history; ``ranks``: the share of the other agents whose mean of a trait is below."""

    ranks: dict[str, float]
    findings: tuple[Finding, ...]
    leads: tuple[Lead, ...]


class EmergingLine(TypedDict):
    """An early warning: a sequence past the middle stage of a pattern."""

    emerging: Emerging


class LeadLine(TypedDict):
    """Where a person may look, which accuses nobody."""

    lead: Lead


class RetractedLine(TypedDict):
    """A finding that was printed and no longer holds."""

    retracted: str
    reason: str


class ConstraintLine(TypedDict):
    """A hard constraint that a judge confirmed of a message (``yes``), or why it was not asked (null)."""

    constraint: str
    agent: str
    conversation: str
    message: str
    yes: bool | None
    quotes: list[str]
    reason: str | None


class JudgeLine(TypedDict):
    """A judge that could be named on this machine."""

    judge: str
    because: str
    missing: str
    price: Price
    quality: str
    ready: bool


class PriceFileLine(TypedDict):
    """A list of prices that is in force."""

    name: str
    as_of: str
    sha256: str


class PriceList(TypedDict):
    """What ``prices --json`` prints."""

    files: list[PriceFileLine]
    judges: list[Price]


class TextEncodings(TypedDict):
    """In what encoding files, output and the locale are; ``output`` null where there is none."""

    files: str
    output: str | None
    locale: str


class Installation(TypedDict):
    """What ``--version --json`` prints: versions, the hash of the data that ship, the packages (null = not there)."""

    undersong: str
    data: str
    python: str
    implementation: str
    system: str
    release: str
    machine: str
    processors: int | None
    sqlite: str
    encoding: TextEncodings
    packages: dict[str, str | None]


class FormatLine(TypedDict):
    """An input format: its name for ``--from``, by what content it is known, how people get such a file."""

    name: str
    title: str
    detected: str
    export: str


class MessageLabel(TypedDict):
    """What reviews say of a message, for ``judge validate``: 1 in a confirmed finding, 0 in a rejected one."""

    author: str
    text: str
    traits: dict[str, float]


class HookAnswer(TypedDict, total=False):
    """What ``claims --hook`` prints: to go on working, and why; what the person should see; or nothing."""

    decision: Literal["block"]
    reason: str
    systemMessage: str


SettingValue = TypedDict("SettingValue", {"value": Any, "from": str})


class DoctorLine(TypedDict):
    """A thing that was tried; ``missing`` is an option that is not there."""

    name: str
    state: Literal["ok", "missing", "failed"]
    detail: str
    remedy: str


class _DrawnFacts(TypedDict):
    kind: ReviewKind
    id: str
    drawn: DrawnBy
    propensity: float | None
    pool: int | None
    stale: Review | None


class DrawnLine(_DrawnFacts, total=False):
    """What is to be reviewed next, under the key of its kind, how it was drawn, and a review that no longer fits."""

    finding: Finding
    lead: Lead
    claim: LedgerClaim
