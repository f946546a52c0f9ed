"""The base class of all records, their JSON codec, and the closed sets of values that they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, TypeVar, get_args

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
