"""The words and numbers of the detectors of a session: ``rules/session/*.yaml``, typed."""

from __future__ import annotations

from functools import cache

import msgspec

from undersong import rulebook


class _Book(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base: unknown keys are refused."""


class Act(_Book, frozen=True, kw_only=True):
    """Acts of one kind: participles, and words of tools that do such a thing."""

    past: tuple[str, ...]
    tools: frozenset[str]


class Claims(_Book, frozen=True, kw_only=True):
    """``rules/session/claims.yaml``: see the comments there."""

    why: str
    misses: str
    fix: tuple[str, ...]
    acts: dict[str, Act]
    adv: tuple[str, ...]
    states: tuple[str, ...]
    triggers: tuple[str, ...]
    forms: dict[str, tuple[str, ...]]
    unsaid: str
    provisional: str
    admits: tuple[str, ...]
    continues: str
    form: str
    again: str
    complaint: str


class Outcomes(_Book, frozen=True, kw_only=True):
    """``rules/session/outcomes.yaml``: see the comments there."""

    why: str
    misses: str
    edit_tools: frozenset[str]
    shell_tools: frozenset[str]
    paths: tuple[str, ...]
    readers: frozenset[str]
    reading_commands: frozenset[str]
    reading_git: frozenset[str]
    wrappers: frozenset[str]
    checks: str
    check_tools: frozenset[str]
    failed_check: tuple[str, ...]
    broke: tuple[str, ...]
    refused: tuple[str, ...]
    refusing: tuple[str, ...]
    exit_code: str
    error_keys: frozenset[str]
    verdict_keys: dict[str, bool]
    status_keys: frozenset[str]
    bad_status: frozenset[str]
    passed_check: tuple[str, ...]


@cache
def claims_book() -> Claims:
    """The shipped words of claims."""
    return rulebook.read(rulebook.RULES / "session" / "claims.yaml", Claims)


@cache
def outcomes_book() -> Outcomes:
    """The shipped words of outcomes."""
    return rulebook.read(rulebook.RULES / "session" / "outcomes.yaml", Outcomes)
