"""Routing thresholds: from flags to tiers, and the limits of the thread signals."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from undersong.datafiles.yaml_loader import RULES, DataFile, read
from undersong.models import Tier

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
