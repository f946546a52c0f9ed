"""The nouns that the steps hand to each other: frozen, typed, JSON both ways."""

from __future__ import annotations

from datetime import datetime
from importlib import import_module
from typing import Any, Literal, TypeVar, get_args

import msgspec

Role = Literal["user", "assistant", "system", "tool", "participant", "agent"]
Observed = Literal["yes", "no", "unknown"]
Tier = Literal["standard", "focused", "deep", "deep_with_context"]
Depth = Literal["skip", "standard", "thorough"]
Width = Literal["none", "message", "prior_messages", "thread_and_history"]
State = Literal["scored", "unread", "refused", "failed"]
Level = Literal["informational", "low", "medium", "high", "critical"]
Trait = Literal[
    "virtue", "goodwill", "manipulation", "deception",
    "accuracy", "reasoning", "fabrication", "broken_logic",
    "recognition", "compassion", "dismissal", "exploitation",
]  # fmt: skip
SignalKind = Literal["escalation", "repeat_flags", "trait_concentration", "cycling"]
Answer = Literal["complied", "refused", "unclear", "not_answered", "no_request"]
Assessment = Literal["assessed", "not_assessed", "not_applicable"]
Domain = Literal["measured", "unmeasured"]
Scale = Literal["level", "rank"]
AlignmentStatus = Literal["aligned", "drifting", "misaligned", "violation", "unknown"]

FreeSignal = Literal["phrases", "threads", "structure", "loops", "telemetry", "triage"]
SIGNALS: tuple[FreeSignal, ...] = get_args(FreeSignal)
TIERS: tuple[Tier, ...] = get_args(Tier)
LEVELS: tuple[Level, ...] = get_args(Level)
TRAITS: tuple[Trait, ...] = get_args(Trait)
NEGATIVE_TRAITS: frozenset[str] = frozenset(
    {"manipulation", "deception", "fabrication", "broken_logic", "dismissal", "exploitation"}
)
DIMENSIONS: dict[str, tuple[Trait, ...]] = {"ethos": TRAITS[0:4], "logos": TRAITS[4:8], "pathos": TRAITS[8:12]}


class Noun(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of all nouns: immutable, compared by value; none can hold itself, so the cycle collector passes them by."""


# ── what was said ────────────────────────────────────────────────────────────


class SourceRef(Noun, frozen=True, kw_only=True):
    """Where a record stands in an input: a file, and a line (from 1) or a JSON pointer."""

    file: str
    line: int | None = None
    pointer: str | None = None

    def __str__(self) -> str:
        if self.line is not None:
            return f"{self.file}:{self.line}"
        return f"{self.file}#{self.pointer}" if self.pointer is not None else self.file


class ToolCall(Noun, frozen=True, kw_only=True):
    """A tool that an agent called: ``input`` is the decoded argument object (or its raw text)."""

    name: str
    id: str | None = None
    input: Any = None


class ToolResult(Noun, frozen=True, kw_only=True):
    """What a tool answered; ``is_error`` is None where the source does not say."""

    text: str
    call_id: str | None = None
    is_error: bool | None = None


class Message(Noun, frozen=True, kw_only=True):
    """One message, verbatim.

    ``author`` is the name in the source; ``agent`` is the identity that patterns follow (scoped to the
    conversation except for role ``agent`` or an explicit ``agent_id``). ``target`` is the agent it is aimed at,
    None for a public message. ``time`` is timezone-aware, or None. ``branch`` is None on the path that the
    reader saw, else the id of the abandoned branch. ``latency`` is in seconds, ``tokens`` as the source counts.
    """

    id: str
    conversation: str
    position: int
    author: str
    role: Role
    text: str
    agent: str = ""
    time: datetime | None = None
    reply_to: str | None = None
    target: str | None = None
    model: str | None = None
    latency: float | None = None
    tokens: int | None = None
    observed: Observed = "unknown"
    branch: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    source_ref: SourceRef | None = None


class Break(Noun, frozen=True, kw_only=True):
    """A pause that the telemetry of a session records."""

    start: datetime
    end: datetime


class Conversation(Noun, frozen=True, kw_only=True):
    """Messages in order; ``timezone`` is an IANA name or UTC offset, None where nobody says."""

    id: str
    source_format: str
    messages: tuple[Message, ...] = ()
    title: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    timezone: str | None = None
    breaks: tuple[Break, ...] = ()
    context: tuple[str, ...] = ()
    source_ref: SourceRef | None = None


class Problem(Noun, frozen=True, kw_only=True):
    """A record or file that could not be read, or was read with a loss: never dropped in silence."""

    what: str
    where: str
    remedy: str = ""
    kind: Literal["file", "record", "note", "judge"] = "record"


class InputFile(Noun, frozen=True, kw_only=True):
    """One input as it was read; ``sha256`` over its bytes."""

    name: str
    sha256: str
    size: int
    source_format: str | None
    conversations: int = 0
    messages: int = 0
    skipped: int = 0


# ── scan ─────────────────────────────────────────────────────────────────────


class Hit(Noun, frozen=True, kw_only=True):
    """A phrase found in a message: ``text[start:end]`` is the verbatim span (Unicode code points).

    ``trait`` is one of the twelve, or ``hard_constraint`` with ``constraint`` set (HC-01 … HC-07), or
    ``structure`` for apology, correction, empathy and claim tokens. ``label`` names the kind.
    """

    trait: str
    label: str
    phrase: str
    start: int
    end: int
    indicator: str | None = None
    constraint: str | None = None


class Loop(Noun, frozen=True, kw_only=True):
    """Words that come again. ``scope`` is the kind, ``count`` how often:

    - ``message``, ``turns``: an n-gram 3 or more times within a message, or in 3 or more turns of an agent;
    - ``reply``: a reply alike one of the agent's last turns, ``count`` of them in a chain;
    - ``echo``: a reply alike the message just before it, of another speaker (2);
    - ``alternation``: A-B-A-B, of one agent or of two who take turns; ``count`` pairs.

    ``ngram`` holds the words, of a reply the first ones; ``message_ids`` the messages, the latest ones.
    """

    ngram: str
    count: int
    scope: Literal["message", "turns", "reply", "echo", "alternation"]
    message_ids: tuple[str, ...] = ()


WHOLE_REPLIES = ("reply", "alternation")  # scopes of loops in which a whole reply comes again


class Deference(Noun, frozen=True, kw_only=True):
    """Apology and correction tokens of the agent's turns so far; ratio = apologies / max(corrections, 1).

    ``wide_ratio`` is a wider measure, told apart: (apologies + agreements) / max(corrections + disagreements, 1).
    """

    apologies: int
    corrections: int
    ratio: float
    high: bool
    agreements: int = 0
    disagreements: int = 0
    wide_ratio: float = 0.0


class CodeBlock(Noun, frozen=True, kw_only=True):
    """Code in a message: ``sha256`` over the normalised code, ``start``/``end`` in the text where it is there.

    ``substance`` is a hash of the same code without comments and idle white space, ``replaces`` that of the code which
    an edit or a patch takes out. ``call`` is the id of the tool call that writes it.
    """

    sha256: str
    lang: str | None = None
    kind: Literal["fence", "edit", "write", "patch"] = "fence"
    path: str | None = None
    lines: int = 0
    start: int | None = None
    end: int | None = None
    substance: str | None = None
    replaces: str | None = None
    call: str | None = None


class Scan(Noun, frozen=True, kw_only=True):
    """The free signals of one message.

    ``flags`` counts hits of the negative traits and of ``hard_constraint``; ``total`` is their sum, ``density``
    is total per word. Hits of positive traits and structure are in ``hits`` only. ``sentiment_score`` is empathic
    phrases per sentence, 0-1. ``code_change_delta`` is 0 for code identical to the agent's earlier version, 1 for
    new code, None where there is nothing to compare. ``triage`` is the probability of any negative trait ≥ .5,
    None without a triage model.
    """

    message_id: str
    hits: tuple[Hit, ...] = ()
    flags: dict[str, int] = {}
    total: int = 0
    density: float = 0.0
    words: int = 0
    hard_constraints: tuple[str, ...] = ()
    loops: tuple[Loop, ...] = ()
    deference: Deference | None = None
    code_blocks: tuple[CodeBlock, ...] = ()
    sentiment_score: float = 0.0
    code_change_delta: float | None = None
    latency_drop: bool | None = None
    triage: float | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The distinct labels of what flags this message, in order of appearance."""
        counted = NEGATIVE_TRAITS | {"hard_constraint"}
        return tuple(dict.fromkeys(hit.label for hit in self.hits if hit.trait in counted))


class ThreadSignal(Noun, frozen=True, kw_only=True):
    """A free signal that only a thread shows, with the messages that carry it."""

    kind: SignalKind
    message_ids: tuple[str, ...]
    agents: tuple[str, ...] = ()
    trait: str | None = None


class AgentFlags(Noun, frozen=True, kw_only=True):
    """What accumulated for one agent in a thread."""

    messages: int
    flagged: int
    total: int
    flags: dict[str, int] = {}


class Telemetry(Noun, frozen=True, kw_only=True):
    """The first phase of the second seed; None means unknown, never absent.

    ``tokens_per_minute`` is of the user, ``hours`` from first to last message, ``longest_stretch_hours`` without a
    break.
    """

    tokens_per_minute: float | None = None
    tokens_estimated: bool = True
    hours: float | None = None
    longest_stretch_hours: float | None = None
    breaks: int | None = None
    late_night: bool | None = None
    code_share: float = 0.0


class ThreadScan(Noun, frozen=True, kw_only=True):
    """The free signals of one conversation; ``session_context_vector`` as in the second seed."""

    conversation: str
    signals: tuple[ThreadSignal, ...] = ()
    agents: dict[str, AgentFlags] = {}
    session_context_vector: tuple[str, ...] = ()
    telemetry: Telemetry = Telemetry()
    upgrades: dict[str, int] = {}


# ── route, evaluate ──────────────────────────────────────────────────────────


class Route(Noun, frozen=True, kw_only=True):
    """How deep and how wide a message is read, and why; ``tier_before`` is the tier without thread signals."""

    message_id: str
    tier: Tier
    tier_before: Tier
    depth: Depth
    width: Width
    reasons: tuple[str, ...] = ()
    sampled: bool = False


class Quote(Noun, frozen=True, kw_only=True):
    """Verbatim evidence: ``text`` is the message's text at ``start:end``; ``sha256`` over the whole message text."""

    message_id: str
    text: str
    start: int
    end: int
    sha256: str


class Indicator(Noun, frozen=True, kw_only=True):
    """An indicator that a judge saw, with its quote where it gave one."""

    id: str
    confidence: float | None = None
    quote: str | None = None


class Usage(Noun, frozen=True, kw_only=True):
    """What answers took: requests that were answered, and tokens as the provider counts them.

    ``input`` includes ``cached`` (read from the provider's cache) and ``written`` (put there). ``cost`` in USD is None
    where the price of a model is not known.
    """

    calls: int = 0
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    cost: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        """The sum; a cost that is not known makes it unknown."""
        known = self.cost is not None and other.cost is not None
        return Usage(
            calls=self.calls + other.calls,
            input=self.input + other.input,
            cached=self.cached + other.cached,
            written=self.written + other.written,
            output=self.output + other.output,
            cost=(self.cost or 0.0) + (other.cost or 0.0) if known else None,
        )


class Stance(Noun, frozen=True, kw_only=True):
    """How a message stands towards a claim of the other side, as a judge reads it; ``claim`` in the judge's words."""

    position: Literal["holds", "concedes", "neutral"]
    claim: str = ""


class Reading(Noun, frozen=True, kw_only=True):
    """What an LLM judge gave beside scores and indicators, and what became of its answer.

    ``mechanisms`` and ``acts`` (request, complies, refuses) each with a quote that stands in the message. ``rejected``
    counts what was dropped from the answer, by kind. ``cut`` is how many earlier messages the question left out.
    ``shortened`` is how many texts, calls and results of tools it did not show whole.
    ``raw`` is the text of the answer that counts, as it came. ``usage`` covers every paid answer to this question.
    """

    mechanisms: tuple[Indicator, ...] = ()
    acts: tuple[Indicator, ...] = ()
    stance: Stance | None = None
    rejected: dict[str, int] = {}
    cut: int = 0
    usage: Usage = Usage()
    raw: str | None = None
    shortened: int = 0


class Evaluation(Noun, frozen=True, kw_only=True):
    """What a judge said of one message. ``traits`` is None unless ``state`` is scored; ``reason`` says why.

    ``indicators`` None = not judged, () = judged, none. ``judge`` is its id, ``judge_hash`` covers model and
    prompt, ``message_hash`` and ``context_hash`` what it read. ``cost`` in USD.
    """

    message_id: str
    state: State
    judge: str
    judge_hash: str
    message_hash: str
    context_hash: str = ""
    traits: dict[str, float] | None = None
    indicators: tuple[Indicator, ...] | None = None
    signals: dict[str, float] = {}
    domain: Domain | None = None
    engines: dict[str, str] = {}
    spans: dict[str, tuple[int, int]] = {}
    mechanisms: dict[str, float] | None = None
    width: Width = "message"
    reason: str | None = None
    tokens: int | None = None
    cost: float = 0.0
    reading: Reading | None = None


# ── detect ───────────────────────────────────────────────────────────────────


class Row(Noun, frozen=True):
    """One message as the steps pass it on: the JSON Lines row of `scan`, `evaluate` and `detect`.

    Each step adds keys; ``traits`` is None with the ``state`` that says why. ``tier`` None = not routed. ``scale``
    "rank": the traits are ranks within the corpus (0 lowest, 1 highest), since the judge was not measured on such text
    (``domain``); only their order counts. ``spans`` is ``text[start:end]`` of the strongest sentence per signal.
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
    traits: dict[str, float] | None = None
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
    def levels(self) -> dict[str, float] | None:
        """The traits where their numbers may be held against a threshold; None where they are ranks or unknown."""
        return None if self.scale == "rank" else self.traits

    @classmethod
    def of(cls, message: Message, scan: Scan, route: Route, evaluation: Evaluation | None = None) -> Row:
        """The row of one message from what the steps said of it; without an evaluation it is unread."""
        row = cls(  # by position, which is twice as fast as by name: one is made for every message
            message.id, message.conversation, message.position, message.time, message.agent, message.target,
            message.role, message.observed, message.branch, message.text,
            route.tier, route.tier_before, route.width, route.sampled, route.reasons,
            scan.triage, scan.flags, scan.total, scan.density, scan.hits, _names(scan.hits),
            scan.hard_constraints, scan.loops, scan.deference, scan.sentiment_score,
            scan.code_change_delta, scan.latency_drop,
            "unread", "not evaluated", None, None, {}, None, None, {}, {}, None, None, message.source_ref,
        )  # fmt: skip
        return row if evaluation is None else _judged(row, evaluation)


def _names(hits: tuple[Hit, ...]) -> tuple[str, ...]:
    """The traits and labels of hits, each once, in alphabetical order."""
    return tuple(sorted({name for hit in hits for name in (hit.label, hit.trait)})) if hits else ()


def _judged(row: Row, evaluation: Evaluation) -> Row:
    return msgspec.structs.replace(
        row,
        state=evaluation.state,
        reason=evaluation.reason,
        traits=evaluation.traits,
        indicators=evaluation.indicators,
        signals=evaluation.signals,
        domain=evaluation.domain,
        scale=None if evaluation.traits is None else "level",
        engines=evaluation.engines,
        spans=evaluation.spans,
        judge=evaluation.judge,
        judge_hash=evaluation.judge_hash,
        reading=evaluation.reading,
    )


class Outcome(Noun, frozen=True, kw_only=True):
    """What came of a sequence towards somebody: the agent's first request after it began, and what was answered.

    ``not_answered`` and ``no_request`` are told of the conversations of the finding alone; ``unclear`` is an answer
    with no phrase of either kind, or of both.
    """

    answer: Answer
    conversation: str | None = None
    request: Quote | None = None
    reply: Quote | None = None


class Why(Noun, frozen=True, kw_only=True):
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


class Finding(Noun, frozen=True, kw_only=True, eq=False):
    """A sequence that is consistent with a pattern.

    ``message_conversations`` names the conversation of each of ``message_ids``, since ids may repeat between them.
    ``stages`` pairs each read message with its DEFINE variable; ``gap_ids`` are read rows passed over, ``unread_ids``
    holes. ``strength`` 0-1 is the rule's own measure, not a probability. ``chance``, ``q`` and ``stability`` are None
    where they were not computed (docs/statistics.md); ``shuffles`` = (as strong, drawn) is what ``chance`` stands
    on, ``replicas`` what ``stability`` does. ``q`` belongs to a run: it is outside equality, as it is outside the id.
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

    def __eq__(self, other: object) -> bool:
        """Equal in everything but ``q``."""
        if not isinstance(other, Finding):
            return NotImplemented
        names = (name for name in self.__struct_fields__ if name != "q")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self) -> int:
        """By id: equal findings have the same."""
        return hash(self.finding_id)


class Emerging(Noun, frozen=True, kw_only=True):
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


class RuleOutcome(Noun, frozen=True, kw_only=True):
    """What became of one rule in a run: never a bare "0 findings"."""

    pattern: str
    rule_hash: str
    status: Literal["ran", "not_applicable", "gave_up"]
    partitions: int = 0
    findings: int = 0
    reason: str = ""


# ── verdict, report ──────────────────────────────────────────────────────────


class Deduction(Noun, frozen=True, kw_only=True):
    """Points taken from the sovereignty score at one turn, with the evidence.

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


class Moment(Noun, frozen=True, kw_only=True):
    """A turn worth reading that takes no points by itself; ``quotes`` are verbatim, the first is the one to show.

    ``smoking_gun``: code ``fault_admission`` or ``delusion_reinforcement``, and nothing else. ``distress``: code ``A``
    to ``O``, an annotation and never a diagnosis. ``protective``: what an agent did for the other's judgement or
    well-being. ``conduct``: what feeds a spiral, such as praise without measure. ``candidate``: a mechanism or
    ``epistemic_drift``, whose evidence does not suffice to take points. ``basis`` says what it stands on: exact words,
    a signal, or a judge; ``strength`` (0-1) is that of the signal or judge, None for words.
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


class Confirmed(Noun, frozen=True, kw_only=True):
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


class Mechanism(Noun, frozen=True, kw_only=True):
    """Whether a mechanism of the second seed could be looked for in a session."""

    name: str
    assessment: Assessment
    reason: str = ""
    detected: int = 0


class Mark(Noun, frozen=True, kw_only=True):
    """What stands at one turn of a session: the ``score`` after it (None without a score), the ``points`` it took.

    ``mechanisms`` took them; ``flags`` are the second seed's; ``codes`` (distress), ``protective``, ``conduct``,
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


class SessionVerdict(Noun, frozen=True, kw_only=True):
    """The sovereignty score of one conversation: None until a mechanism is assessed. ``turns`` = (position, score).

    ``moments`` are smoking guns, the first ones to read first, then distress codes, protective moments and candidates
    by turn. ``marks`` are the turns at which anything stands, in order. ``episodes`` counts distinct harms where
    ``deductions`` counts each time: the score is the plain sum. ``confirmations`` are a judge's answers about flagged
    places, () where none was asked.
    """

    conversation: str
    score: int | None
    psychogenic_risk: bool | None
    mechanisms: tuple[Mechanism, ...]
    deductions: tuple[Deduction, ...] = ()
    turns: tuple[tuple[int, int], ...] = ()
    context: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    messages: int = 0
    read: int = 0
    judges: dict[str, int] = {}
    title: str | None = None
    moments: tuple[Moment, ...] = ()
    marks: tuple[Mark, ...] = ()
    episodes: int = 0
    confirmations: tuple[Confirmed, ...] = ()


class AgentVerdict(Noun, frozen=True, kw_only=True):
    """Means over an agent's scored messages; ``values`` are the constitutional values, None without scores.

    ``indicators_read`` counts the read messages for which the judge also looked for indicators: only there could a
    violation of a hard constraint have been seen. ``flagged`` counts messages with a phrase of a harmful trait.
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


class SignalBand(Noun, frozen=True, kw_only=True):
    """One signal in a corpus: its null band (where the phrases of other signals score), ``over`` messages above it."""

    low: float
    high: float
    messages: int
    over: int
    highest: float


class Missed(Noun, frozen=True, kw_only=True):
    """What the router left out, as far as the audit sample tells: harmful = any negative trait ≥ .5 by this judge.

    ``left_out`` counts messages with text, the sample among them; ``sampled`` those of them that the judge scored,
    ``harmful`` those of these that are harmful; ``routed_harmful`` the harmful ones that the router did not leave out.
    ``number`` of harmful messages left out, their ``rate`` among those left out, and their ``share`` of all harmful
    ones: (estimate, low, high) at 95 %, or None where nothing of what was left out was read. ``exact`` = all of it was.
    """

    left_out: int
    sampled: int
    harmful: int
    routed_harmful: int
    exact: bool
    number: tuple[float, float, float] | None = None
    rate: tuple[float, float, float] | None = None
    share: tuple[float, float, float] | None = None


class Spending(Noun, frozen=True, kw_only=True):
    """What the answers that a run uses took when they were paid, now or before: in all, per tier, per conversation.

    ``tiers`` has ``confirm`` for the questions about flagged places.
    """

    total: Usage
    tiers: dict[str, Usage] = {}
    conversations: dict[str, Usage] = {}


N = TypeVar("N", bound=Noun)


class Case(Noun, frozen=True, kw_only=True):
    """Everything that a report says, without the transcripts themselves.

    ``parameters`` names seed, judge and options; ``tiers`` and ``states`` count messages; ``upgrades`` counts the
    messages per agent that a thread signal raised; ``spent`` is None where no answer was paid; ``cited`` are the
    messages that a finding, a deduction or a session flag quotes, in full; ``signals`` holds the null band of each
    signal, the table that rows call ``bands``; ``ranked`` counts the messages whose scores are ranks; ``highest`` is
    the highest score of each trait in any message; ``missed`` is what the router left out; ``hashes`` maps rule, prompt
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
    outcomes: tuple[RuleOutcome, ...] = ()
    cited: tuple[Message, ...] = ()
    hashes: dict[str, str] = {}

    def to_frame(self, library: Literal["polars", "pandas", "pyarrow"] = "polars") -> Any:
        """The findings as a data frame, one row each (docs/store.md); needs the extra ``parquet`` and the library."""
        return import_module("undersong.frames").frame_of(self.findings, library)


def encode(noun: Noun) -> bytes:
    """Compact JSON of a noun, keys in the order of its fields."""
    return msgspec.json.encode(noun)


def decode(data: bytes | str, kind: type[N]) -> N:
    """The noun back from its JSON; raises ``msgspec.ValidationError`` naming the path of a wrong value."""
    return msgspec.json.decode(data, type=kind)
