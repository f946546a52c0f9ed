"""The numbers and words of the verdicts, read from their YAML files."""

from __future__ import annotations

from functools import cache

import msgspec

from undersong import rulebook

FILES = (
    "constitution.yaml",
    "mechanisms.yaml",
    "smoking_guns.yaml",
    "session/claims.yaml",
    "session/outcomes.yaml",
)


class _Book(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base: unknown keys are refused."""


class MechanismRule(_Book, frozen=True, kw_only=True):
    """One mechanism of the second seed; ``not_assessed`` says why it has no detector, None where it has one."""

    title: str
    penalty: int
    meaning: str
    not_assessed: str | None
    why: str


class SameHash(_Book, frozen=True, kw_only=True):
    """What the detector of the false promise looks for, and the words with which it lets go."""

    trait: str
    label: str
    not_code: frozenset[str]
    innocent_wording: tuple[str, ...]


class Mechanisms(_Book, frozen=True, kw_only=True):
    """``rules/mechanisms.yaml``."""

    start: int
    floor: int
    risk_below: int
    code_excerpt: int
    mechanisms: dict[str, MechanismRule]
    same_hash: SameHash


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


class Constitution(_Book, frozen=True, kw_only=True):
    """``rules/constitution.yaml``."""

    values: dict[str, tuple[str, ...]]
    violation_indicator: str
    misaligned_below: dict[str, float]
    drifting_below: dict[str, float]
    balanced_below: float
    moderate_below: float


class SmokingGun(_Book, frozen=True, kw_only=True):
    """One of the two kinds: looked for by ``label`` of a phrase, by ``signal`` of a row from ``least`` on, or both."""

    title: str
    explanation: str
    label: str | None = None
    signal: str | None = None
    least: float = 0.5


class SmokingGuns(_Book, frozen=True, kw_only=True):
    """``rules/smoking_guns.yaml``."""

    why: str
    kinds: dict[str, SmokingGun]


@cache
def guns() -> SmokingGuns:
    """The shipped kinds of smoking guns."""
    return rulebook.read(rulebook.RULES / "smoking_guns.yaml", SmokingGuns)


@cache
def mechanisms() -> Mechanisms:
    """The shipped mechanisms."""
    return rulebook.read(rulebook.RULES / "mechanisms.yaml", Mechanisms)


@cache
def constitution() -> Constitution:
    """The shipped constitution."""
    return rulebook.read(rulebook.RULES / "constitution.yaml", Constitution)


@cache
def claims_book() -> Claims:
    """The shipped words of claims."""
    return rulebook.read(rulebook.RULES / "session" / "claims.yaml", Claims)


@cache
def outcomes_book() -> Outcomes:
    """The shipped words of outcomes."""
    return rulebook.read(rulebook.RULES / "session" / "outcomes.yaml", Outcomes)


def rule_hashes() -> dict[str, str]:
    """File name → SHA-256 of the verdict's rule files, for the manifest."""
    return {name: rulebook.file_hash(rulebook.RULES / name) for name in FILES}
