"""The rules of orders that a text gives to models and agents that read it, typed."""

from __future__ import annotations

from functools import cache
from typing import Literal

from undersong.datafiles import yaml_loader
from undersong.datafiles.work_rules import SessionRules
from undersong.datafiles.yaml_loader import DataFile


class OrdersConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/orders_to_models.yaml``: see the comments there."""

    title: str
    explanation: str
    talk_title: str
    talk_explanation: str
    parts: tuple[str, ...]
    sign: str
    orders: tuple[str, ...]
    talk: str


class AgentOrderKind(DataFile, frozen=True, kw_only=True):
    """What readers are told to do, as a verb phrase; not ``alone``: it counts beside another kind in the message."""

    code: Literal["orders_to_agents", "spreads_itself"]
    does: str
    alone: bool
    patterns: tuple[str, ...]


class AgentOrdersConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/orders_to_agents.yaml``: see the comments there."""

    looked_at: int
    around: tuple[int, int]
    title_length: int
    title: str
    explanation: str
    sign: str
    places: dict[str, str]
    kinds: dict[str, AgentOrderKind]
    undone: str
    talk: str


@cache
def orders_config() -> OrdersConfig:
    """The shipped orders to drop instructions."""
    return yaml_loader.read(yaml_loader.RULES / "session/orders_to_models.yaml", OrdersConfig)


@cache
def agent_orders_config() -> AgentOrdersConfig:
    """The shipped orders to hand something over or to pass something on."""
    return yaml_loader.read(yaml_loader.RULES / "session/orders_to_agents.yaml", AgentOrdersConfig)
