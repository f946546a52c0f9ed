"""The rules of the scan and of routing by it: structure, loops, tiers, thread signals."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from undersong.datafiles.yaml_loader import RULES, DataFile, read
from undersong.models import Tier


class TokenGroup(DataFile, frozen=True, kw_only=True):
    """Structural tokens of one kind."""

    label: str
    phrases: tuple[str, ...]


class DeferenceRule(DataFile, frozen=True, kw_only=True):
    """Apologies per correction above which deference is high."""

    ratio: float


class SentimentRule(DataFile, frozen=True, kw_only=True):
    """The label whose density per sentence is the sentiment score."""

    label: str


class LatencyRule(DataFile, frozen=True, kw_only=True):
    """When an answer comes suddenly fast: see the comments of the file."""

    drop: float
    earlier: int
    length: float


class LoopRule(DataFile, frozen=True, kw_only=True):
    """What counts as a loop, and how much of it is reported."""

    n: int
    repeats: int
    content_words: int
    turn_words: int
    longest: int
    reported: int
    recent: int
    apart_hours: float
    reply_likeness: float
    reply_share: float
    reply_words: int
    reply_lags: int
    reply_compared: int
    share_with_tools: float
    headers: tuple[str, ...]

    @property
    def apart(self) -> float:
        """``apart_hours`` in seconds."""
        return self.apart_hours * 3600


class CodeTool(DataFile, frozen=True, kw_only=True):
    """A tool that writes code: the input keys of the new and the old code, and of a list of edits."""

    kind: Literal["edit", "write", "patch"]
    new: tuple[str, ...]
    old: tuple[str, ...] = ()
    list: str | None = None


class CommentRule(DataFile, frozen=True, kw_only=True):
    """The comments of some languages: ``names`` are languages and file endings, ``marks`` begin a comment to the end
    of the line, ``directives`` look like one and are code, ``indents`` = leading white space has a meaning."""

    names: frozenset[str] = frozenset()
    marks: tuple[str, ...] = ()
    directives: tuple[str, ...] = ()
    opens: str | None = None
    closes: str | None = None
    indents: bool = True


class CodeRule(DataFile, frozen=True, kw_only=True):
    """How code is found in tool calls and compared with earlier versions."""

    compared: int
    tools: dict[str, CodeTool]
    paths: tuple[str, ...]
    shells: frozenset[str]
    comments: dict[str, CommentRule]


class StructureRules(DataFile, frozen=True, kw_only=True):
    """``rules/structure.yaml``."""

    why: str
    groups: tuple[TokenGroup, ...]
    deference: DeferenceRule
    sentiment: SentimentRule
    latency: LatencyRule
    loops: LoopRule
    code: CodeRule
    declines: tuple[str, ...]
    boilerplate: tuple[str, ...]
    function_words: str


class Velocity(DataFile, frozen=True, kw_only=True):
    """User tokens a minute above which a session is of high velocity."""

    tokens_per_minute: float
    min_minutes: float
    bytes_per_token: int


class Marathon(DataFile, frozen=True, kw_only=True):
    """Hours without a break, and what a break is."""

    hours: float
    break_minutes: float


class LateNight(DataFile, frozen=True, kw_only=True):
    """Local hours, from inclusive, to exclusive."""

    from_hour: int
    to_hour: int


class CodeHeavy(DataFile, frozen=True, kw_only=True):
    """Share of messages with code."""

    share: float


class TelemetryRules(DataFile, frozen=True, kw_only=True):
    """``rules/telemetry.yaml``."""

    why: str
    high_velocity: Velocity
    marathon: Marathon
    late_night: LateNight
    code_heavy: CodeHeavy


ROUTING = RULES / "routing.yaml"


class TierRule(DataFile, frozen=True):
    """The least number of flags for ``focused`` and for ``deep``."""

    why: str
    focused: int
    deep: int


class MessageCount(DataFile, frozen=True):
    """A number of messages of one agent in a thread: with flag counts that rise strictly, or with any flag."""

    why: str
    messages: int


class TraitConcentration(DataFile, frozen=True):
    """This many messages of this many agents, flagged on one trait."""

    why: str
    messages: int
    agents: int


class Cycling(DataFile, frozen=True):
    """A kind of flag, a quiet message, the same kind, another kind: within this many of the agent's messages."""

    why: str
    span: int


class SignalRules(DataFile, frozen=True):
    """Thresholds of the four thread signals."""

    escalation: MessageCount
    repeat_flags: MessageCount
    trait_concentration: TraitConcentration
    cycling: Cycling


class RoutingRules(DataFile, frozen=True):
    """``rules/routing.yaml``: the tiers and the thread signals."""

    tiers: TierRule
    signals: SignalRules


@cache
def routing_rules(path: Path = ROUTING) -> RoutingRules:
    """The thresholds, read once; raises RuleError with file and line."""
    return read(path, RoutingRules)


def tier_of(flags_total: int, hard_constraint: bool, rules: RoutingRules | None = None) -> Tier:
    """The tier of one message by its own flags, before any thread signal raises it.

    >>> tier_of(0, False), tier_of(3, False), tier_of(4, False), tier_of(1, True)
    ('standard', 'focused', 'deep', 'deep_with_context')
    """
    tiers = (rules or routing_rules()).tiers
    if hard_constraint:
        return "deep_with_context"
    if flags_total >= tiers.deep:
        return "deep"
    return "focused" if flags_total >= tiers.focused else "standard"
