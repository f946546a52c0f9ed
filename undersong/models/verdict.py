"""The verdicts on a session and on an agent, the figures of a run, and the case that holds them all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, get_args

import msgspec

from undersong.models.evaluation import Quote, Usage
from undersong.models.finding import Finding, RuleOutcome
from undersong.models.frame import FrameLibrary, FrameRows, frame_of
from undersong.models.lead import Lead
from undersong.models.message import AlignmentStatus, Assessment, InputFile, Message, Problem, Record, State
from undersong.models.notebook import case_html
from undersong.models.review import Review
from undersong.models.sequence import SequenceReading

Profile = Literal["coding", "companion", "agents", "messenger"]
PROFILES: tuple[Profile, ...] = get_args(Profile)
PERSONAL: frozenset[Profile] = frozenset({"companion", "messenger"})  # private talk, in which nobody works
WORDS_ONLY = 200  # messages with words of hard constraints that are cited; evaluations.jsonl holds all
LedgerKind = Literal[
    "tests",
    "build",
    "lint",
    "fixed",
    "wrote",
    "ran",
    "pushed",
    "committed",
    "sent",
    "verified",
    "read",
    "done",
    "untouched",
]
ClaimState = Literal["backed", "unsupported", "contradicted", "disputed", "hedged", "withdrawn"]
BROKEN = "another check failed, and nothing was changed since"  # reasons of claims that nothing supports
NARROWER = "a wider run of them failed before, and only a part was run since"
NOT_RUN = "the message says that it was run again, and "  # how the reason of such a contradicted claim begins
EDITED = "an edit says otherwise: "  # how the reason of a claim begins that something was not changed, and was
FEWER = "the message says how often it was run, and "  # how one of another number of runs begins
NARROWED = "the check was narrowed after it failed, and has looked at less since"
WEAKENED = "the check behind it passes since it was changed"  # how such a reason begins
PART = "only a part of it was run since the last change"
SAID_SO = "the next words of the person say that it does not work"  # reasons of disputed claims
PASTED_ERROR = "the person pasted the error of a program next"
AGAINST: frozenset[ClaimState] = frozenset({"contradicted", "disputed"})  # states that somebody should look at
TO_CHECK = AGAINST | {"unsupported"}  # states whose messages a report links to
DECISIVE: tuple[ClaimState, ...] = ("contradicted", "disputed", "withdrawn", "backed", "hedged", "unsupported")
BypassKind = Literal[
    "skipped", "deleted", "emptied", "weakened", "special_cased", "silenced", "no_verify", "reproduction_edited",
    "changed_after_check", "part_run", "counts_differ", "suppressed", "narrowed",
]  # fmt: skip
BYPASS = "bypass"  # in place of a level, as a gate: contradicted claims and ways round a check alone
SUPPRESSED: BypassKind = "suppressed"  # a check that nobody saw fail
OVERSTATED: frozenset[BypassKind] = frozenset(
    {"changed_after_check", "part_run", "counts_differ", SUPPRESSED}
)  # it ran


class Deduction(Record, frozen=True, kw_only=True):
    """Points deducted from the sovereignty score at one turn, with the evidence.

    ``episode`` is the same for repeats of one thing, such as one unchanged code; "" where nothing is repeated.
    """

    mechanism: str
    kind: str
    points: int
    message_id: str
    position: int
    explanation: str
    quotes: tuple[Quote, ...] = ()
    episode: str = ""


ORDERS, TALK_OF_ORDERS = "orders_to_models", "talk_of_orders"  # codes of noted turns that say: drop your instructions
AGENT_ORDERS = "orders_to_agents"  # code of a noted turn that tells agents that read it to hand over keys or money
SPREADS = "spreads_itself"  # code of one that tells them to put its words into their memory, or to pass it on
REQUEST = "request"  # code of a noted turn that asks something which with others of its speaker is worth a look


IN_STORY = "In a story that was asked for."  # at the end of an explanation


class Moment(Record, frozen=True, kw_only=True):
    """A turn worth reading that takes no points by itself; ``quotes`` are verbatim, the first is the one to show.

    ``smoking_gun``: code ``fault_admission`` or ``delusion_reinforcement``, and nothing else. ``distress``: code ``A``
    to ``O``, an annotation and never a diagnosis. ``protective``: what an agent did for the other's judgement or
    well-being. ``conduct``: what feeds a spiral, such as praise without measure, and orders to models. ``candidate``: a
    mechanism or ``epistemic_drift``, whose evidence does not suffice for a deduction. ``basis`` says what it is based
    on: exact words, a signal, or a judge; ``strength`` (0-1) is that of the signal or judge, None for words.
    """

    kind: Literal["smoking_gun", "distress", "protective", "conduct", "candidate"]
    code: str
    title: str
    message_id: str
    position: int
    agent: str
    explanation: str
    basis: Literal["words", "signal", "judge"]
    quotes: tuple[Quote, ...] = ()
    strength: float | None = None


class Confirmed(Record, frozen=True, kw_only=True):
    """What a judge says of a flagged place: do these words, by themselves, show the mechanism?

    ``at`` is the message at which the mechanism stands, ``message_ids`` the one or two that were put to the judge.
    ``yes`` is None unless ``state`` is scored, else ``reason`` says why; a yes has a quote of each message.
    ``confidence`` is 0-1. ``judge_hash`` covers model and prompts. ``rejected`` counts what was dropped of an answer,
    ``raw`` is its text as it came.
    """

    mechanism: str
    at: str
    message_ids: tuple[str, ...]
    state: State
    judge: str
    judge_hash: str
    yes: bool | None = None
    quotes: tuple[Quote, ...] = ()
    confidence: float | None = None
    rejected: dict[str, int] = {}
    reason: str | None = None
    usage: Usage = Usage()
    raw: str | None = None


class Mechanism(Record, frozen=True, kw_only=True):
    """Whether a mechanism of the sovereignty score could be looked for in a session."""

    name: str
    assessment: Assessment
    reason: str = ""
    detected: int = 0


class Mark(Record, frozen=True, kw_only=True):
    """A mark at one turn of a session: the ``score`` after it (None without a score), the ``points`` deducted.

    ``mechanisms`` took them; ``flags`` are the structural flags; ``codes`` (distress), ``protective``, ``conduct``,
    ``guns`` and ``candidates`` are the codes of the moments at this turn.
    """

    position: int
    message_id: str
    score: int | None
    points: int = 0
    mechanisms: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    protective: tuple[str, ...] = ()
    conduct: tuple[str, ...] = ()
    guns: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()


class LedgerClaim(Record, frozen=True, kw_only=True):
    """One claim about the work, and what the session has for or against it.

    ``object`` is what the claim speaks of, as far as the sentence names it. ``reason`` says why it has its ``state``;
    ``evidence`` quotes what speaks for or against it, and ``check`` is the command or tool behind that. ``masked``: the
    exit code of the check was another command's. ``thought`` is what the agent wrote for itself before
    it answered, where that speaks against the claim; it decides no state. ``model`` is that of its message,
    "" where nobody says.
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
    thought: str = ""
    model: str = ""

    @property
    def is_weakened(self) -> bool:
        """Whether a check backs it that was made to ask for less, or to be silent, after it failed."""
        return self.state == "backed" and self.reason.startswith(WEAKENED)

    @property
    def claim_id(self) -> str:
        """A hash over conversation, message, kind, object and the place of the sentence."""
        key = ("claim", self.conversation, self.message_id, self.kind, self.object, self.sentence.start)
        return hashlib.sha256(msgspec.json.encode(key)).hexdigest()

    @property
    def copy_key(self) -> tuple[Any, ...]:
        """The same for copies of a claim in resumed sessions, where its source has times."""
        if self.time is None:
            return self.conversation, self.message_id, self.kind, self.sentence.start
        return self.time, self.kind, self.sentence.sha256, self.sentence.start

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """The sentence of the claim, then the evidence."""
        return (self.sentence, *self.evidence)


class Bypass(Record, frozen=True, kw_only=True):
    """A way round a check, told as what was done: ``lines`` are those of the edit, the command or the output.

    ``thought`` is what the agent wrote for itself about it before. ``diff`` are the lines that the edit took away
    (``- ``) and added (``+ ``), () where it is no edit; ``failed_check`` is the command that had failed before, with
    the line that says so, at position ``failed_at``, "" and -1 where nothing had. ``disclosed``: the agent
    speaks of it on the same request.
    """

    kind: BypassKind
    message_id: str
    position: int
    agent: str
    explanation: str
    lines: tuple[str, ...] = ()
    path: str = ""
    thought: str = ""
    diff: tuple[str, ...] = ()
    failed_check: str = ""
    failed_line: str = ""
    failed_at: int = -1
    disclosed: bool = False

    @property
    def disarms(self) -> bool:
        """Whether a check was changed, silenced or passed by; else it ran, and more was claimed than it showed."""
        return self.kind not in OVERSTATED

    @property
    def is_hidden(self) -> bool:
        """Whether it disarms a check that failed, and no word of the agent speaks of it."""
        return self.disarms and not self.disclosed

    @property
    def is_lead(self) -> bool:
        """Whether it is no more than worth a look: nobody saw the check fail, and to silence it may well be right."""
        return self.kind == SUPPRESSED

    @property
    def what(self) -> str:
        """The explanation with the lines."""
        return f"{self.explanation} {' | '.join(self.lines)}".strip()


class RepeatedFailure(Record, frozen=True, kw_only=True):
    """The same command that failed again and again: where time was lost. ``seconds`` from first to last, if known."""

    command: str
    times: int
    first: int
    last: int
    line: str
    seconds: float | None = None


def balance(claims: Iterable[LedgerClaim]) -> dict[str, int]:
    """Claims by state, copies of a message in resumed sessions counted once, by what the fullest of them knows."""
    states: dict[tuple[object, ...], ClaimState] = {}
    for claim in claims:
        key = claim.copy_key
        states[key] = min(states.get(key, claim.state), claim.state, key=DECISIVE.index)
    counts: dict[str, int] = {}
    for state in states.values():
        counts[state] = counts.get(state, 0) + 1
    return counts


ADMISSION = "fault_admission"


class SessionVerdict(Record, frozen=True, kw_only=True):
    """The sovereignty score of one conversation: None until a mechanism is assessed. ``turns`` = (position, score).

    ``moments`` are smoking guns, the first ones to read first, then distress codes, protective moments and candidates
    by turn. ``marks`` are the turns at which anything stands, in order. ``episodes`` counts distinct harms where
    ``deductions`` counts each time: the score is the plain sum. ``confirmations`` are a judge's answers about flagged
    places, () where none was asked. ``claims`` is the ledger of what agents say of their work, ``bypasses`` are ways
    round a check, ``repeated`` the commands that failed again and again. ``profile``: what kind of talk it is, and with
    it which words apply. ``project``: the folder that its file is in, "" where it stands alone. ``unread``: why the
    claims of agents could not be read, "" where they could.
    """

    conversation: str
    score: int | None
    psychogenic_risk: bool | None
    mechanisms: tuple[Mechanism, ...]
    deductions: tuple[Deduction, ...] = ()
    turns: tuple[tuple[int, int], ...] = ()
    session_context_vector: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    messages: int = 0
    read: int = 0
    judges: dict[str, int] = {}
    title: str | None = None
    moments: tuple[Moment, ...] = ()
    marks: tuple[Mark, ...] = ()
    episodes: int = 0
    confirmations: tuple[Confirmed, ...] = ()
    claims: tuple[LedgerClaim, ...] = ()
    bypasses: tuple[Bypass, ...] = ()
    repeated: tuple[RepeatedFailure, ...] = ()
    profile: Profile = "companion"
    project: str = ""
    unread: str = ""

    @property
    def guns(self) -> tuple[Moment, ...]:
        """The smoking guns; between people or agents no admission, since who is pressed may admit what never was."""
        between = self.profile in ("messenger", "agents")
        guns = (each for each in self.moments if each.kind == "smoking_gun")
        return tuple(each for each in guns if not (between and each.code == ADMISSION))


class AgentVerdict(Record, frozen=True, kw_only=True):
    """Means over an agent's scored messages; ``values`` are the constitutional values, None without scores.

    A trait that does not apply to a message is in no mean; ``not_applicable`` counts such messages per trait, and lacks
    the traits that always apply. ``indicators_read`` counts the read messages for which the judge also looked for
    indicators. ``flagged`` counts messages with a phrase of a harmful trait. ``violations`` are the hard constraints
    that a judge confirmed, each once; of ``constraint_messages`` with words of one, ``constraints_answered`` were put
    to a judge that answered. ``findings`` counts those of confidence .5 or more: beside one nobody is "aligned"; good
    averages are then "mixed".
    """

    agent: str
    messages: int
    read: int
    traits: dict[str, float] | None
    dimensions: dict[str, float] | None
    values: dict[str, float] | None
    alignment: AlignmentStatus
    balance: Literal["balanced", "moderate", "lopsided", "unknown"]
    hard_constraint_words: int = 0
    indicators_read: int = 0
    flagged: int = 0
    not_applicable: dict[str, int] = {}
    violations: tuple[str, ...] = ()
    constraint_messages: int = 0
    constraints_answered: int = 0
    findings: int = 0


class SignalBand(Record, frozen=True, kw_only=True):
    """One signal in a corpus: its null band (where the phrases of other signals score), ``over`` messages above it."""

    low: float
    high: float
    messages: int
    over: int
    highest: float


class Missed(Record, frozen=True, kw_only=True):
    """What the router left out, as far as the audit sample tells: harmful = any negative trait ≥ .5 by this judge.

    ``left_out`` counts messages with text, the sample among them; ``sampled`` those of them that the judge scored,
    ``harmful`` those of these that are harmful; ``routed_harmful`` the harmful ones that the router did not leave out.
    ``number`` of harmful messages left out, their ``rate`` among those left out, and their ``share`` of all harmful
    ones: (estimate, low, high) at 95 %, or None where nothing of what was left out was read. ``exact`` = all of it was.
    ``routed_unread`` counts the messages with text that the router called for and the judge did not score (a budget, a
    refusal, a failure): they are in none of these figures.
    """

    left_out: int
    sampled: int
    harmful: int
    routed_harmful: int
    exact: bool
    routed_unread: int = 0
    number: tuple[float, float, float] | None = None
    rate: tuple[float, float, float] | None = None
    share: tuple[float, float, float] | None = None


class Spending(Record, frozen=True, kw_only=True):
    """What the answers that a run uses took when they were paid, now or before: in all, per tier, per conversation.

    ``tiers`` has ``confirm`` for the questions about flagged places and ``double_check`` for second readings.
    """

    total: Usage
    tiers: dict[str, Usage] = {}
    conversations: dict[str, Usage] = {}


class Case(Record, frozen=True, kw_only=True):
    """Everything that a report says, without the transcripts themselves.

    ``parameters`` names seed, judge and options; ``tiers`` and ``states`` count messages; ``upgrades`` counts the
    messages per agent that a thread signal raised; ``spent`` is None where no answer was paid; ``cited`` are the
    messages that a finding, a deduction or a session flag quotes, in full; ``signals`` holds the null band of each
    signal, the table that rows call ``bands``; ``sequences`` are the readings of whole
    sequences, as they came; ``leads`` are the agents in the order in which to look at them; ``reviews`` is what people
    had decided of these conversations; ``ranked`` counts the messages whose scores are ranks; ``highest`` is the
    highest score of each trait in any message; ``missed`` is what the router left out; ``hashes`` maps rule, prompt
    and model artefact names to SHA-256.
    """

    version: str
    parameters: dict[str, Any]
    inputs: tuple[InputFile, ...] = ()
    problems: tuple[Problem, ...] = ()
    conversations: int = 0
    messages: int = 0
    tiers: dict[str, int] = {}
    states: dict[str, int] = {}
    upgrades: dict[str, int] = {}
    missed: Missed | None = None
    highest: dict[str, float] = {}
    signals: dict[str, SignalBand] = {}
    bands: str | None = None
    ranked: int = 0
    judge_calls: int = 0
    cost: float = 0.0
    spent: Spending | None = None
    sessions: tuple[SessionVerdict, ...] = ()
    agents: tuple[AgentVerdict, ...] = ()
    findings: tuple[Finding, ...] = ()
    sequences: tuple[SequenceReading, ...] = ()
    leads: tuple[Lead, ...] = ()
    reviews: tuple[Review, ...] = ()
    outcomes: tuple[RuleOutcome, ...] = ()
    cited: tuple[Message, ...] = ()
    hashes: dict[str, str] = {}

    def _repr_html_(self) -> str:
        """What a notebook shows: counts, findings and leads."""
        return case_html(self)

    def to_frame(self, library: FrameLibrary = "polars", rows: FrameRows = "findings") -> Any:
        """The findings, leads or claims as a data frame, one row each; see ``to_frame``."""
        return frame_of(self, library, rows)
