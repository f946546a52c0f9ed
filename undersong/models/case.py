"""Everything that a report says."""

from __future__ import annotations

from typing import Any

from undersong.models.base import Record
from undersong.models.finding import Finding, RuleOutcome
from undersong.models.message import InputFile, Message, Problem
from undersong.models.verdict import AgentVerdict, Missed, SessionVerdict, SignalBand, Spending


class Case(Record, frozen=True, kw_only=True):
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
