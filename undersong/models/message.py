"""Messages and conversations with their places in the inputs, and the base and closed sets of words of all records."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypeVar, get_args

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
AlignmentStatus = Literal["aligned", "mixed", "drifting", "misaligned", "violation", "unknown"]

FreeSignal = Literal["phrases", "threads", "structure", "loops", "telemetry", "triage"]
SIGNALS: tuple[FreeSignal, ...] = get_args(FreeSignal)
TIERS: tuple[Tier, ...] = get_args(Tier)
LEVELS: tuple[Level, ...] = get_args(Level)
TRAITS: tuple[Trait, ...] = get_args(Trait)
NEGATIVE_TRAITS: frozenset[str] = frozenset(
    {"manipulation", "deception", "fabrication", "broken_logic", "dismissal", "exploitation"}
)
DIMENSIONS: dict[str, tuple[Trait, ...]] = {"ethos": TRAITS[0:4], "logos": TRAITS[4:8], "pathos": TRAITS[8:12]}
TraitScores: TypeAlias = dict[str, float | None]  # 0 to 1; None: the trait does not apply to the message


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of all records: immutable, compared by value; none holds itself, so the cycle collector passes them by."""


N = TypeVar("N", bound=Record)


def applicable_scores(traits: Mapping[str, float | None]) -> dict[str, float]:
    """The scores of the traits that apply, in the order given."""
    return {trait: score for trait, score in traits.items() if score is not None}


def encode(record: Record) -> bytes:
    """Compact JSON of a record, keys in the order of its fields."""
    return msgspec.json.encode(record)


def decode(data: bytes | str, kind: type[N]) -> N:
    """The record from its JSON; raises ``msgspec.ValidationError`` naming the path of a wrong value."""
    return msgspec.json.decode(data, type=kind)


class SourceRef(Record, frozen=True, kw_only=True):
    """Where a record stands in an input: a file, and a line (from 1) or a JSON pointer.

    ``span`` is there for traces alone: the ids of trace and span, TRACE/SPAN, as the source writes them.
    """

    file: str
    line: int | None = None
    pointer: str | None = None
    span: str | msgspec.UnsetType = msgspec.UNSET

    def __str__(self) -> str:
        if self.line is not None:
            return f"{self.file}:{self.line}"
        return f"{self.file}#{self.pointer}" if self.pointer is not None else self.file


class ToolCall(Record, frozen=True, kw_only=True):
    """A tool that an agent called: ``input`` is the decoded argument object (or its raw text)."""

    name: str
    id: str | None = None
    input: Any = None


class ToolResult(Record, frozen=True, kw_only=True):
    """What a tool answered; ``is_error`` is None where the source does not say."""

    text: str
    call_id: str | None = None
    is_error: bool | None = None


class Message(Record, frozen=True, kw_only=True):
    """One message, verbatim.

    ``author`` is the name in the source; ``agent`` is the identity that patterns follow (scoped to the
    conversation except for role ``agent`` or an explicit ``agent_id``). ``target`` is the agent it is aimed at,
    None for a public message. ``time`` is timezone-aware, or None. ``branch`` is None on the path that the
    reader saw, else the id of the abandoned branch. ``latency`` is in seconds, ``tokens`` as the source counts.
    ``thinking`` is what an agent wrote before its answer and showed nobody, where the source keeps it.

    A reader of a format may leave open what ``formats.normalize`` settles: ``id=""`` (one is made), ``position=-1``
    (order by time), ``agent=""`` and ``target=None`` (worked out from authors, roles and replies).
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
    thinking: str = ""
    source_ref: SourceRef | None = None


class Break(Record, frozen=True, kw_only=True):
    """A pause that the telemetry of a session records."""

    start: datetime
    end: datetime


class Conversation(Record, frozen=True, kw_only=True):
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


class Problem(Record, frozen=True, kw_only=True):
    """A record or file that could not be read, or was read with a loss: never dropped in silence."""

    what: str
    where: str
    remedy: str = ""
    kind: Literal["file", "record", "note", "judge"] = "record"


class InputFile(Record, frozen=True, kw_only=True):
    """One input as it was read; ``sha256`` over its bytes."""

    name: str
    sha256: str
    size: int
    source_format: str | None
    conversations: int = 0
    messages: int = 0
    skipped: int = 0
