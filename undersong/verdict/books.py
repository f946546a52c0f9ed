"""The numbers and words of the verdicts, read from their YAML files."""

from __future__ import annotations

from functools import cache

import msgspec

from undersong import rulebook

FILES = ("constitution.yaml", "mechanisms.yaml", "smoking_guns.yaml")


class _VerdictConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base: unknown keys are refused."""


class MechanismRule(_VerdictConfig, frozen=True, kw_only=True):
    """One mechanism of the second seed, and on what evidence it is assessed."""

    title: str
    penalty: int
    meaning: str
    evidence: str
    why: str


class SameHash(_VerdictConfig, frozen=True, kw_only=True):
    """What the detector of the false promise looks for, and the words with which it lets go."""

    trait: str
    label: str
    not_code: frozenset[str]
    innocent_wording: tuple[str, ...]
    goes_back: tuple[str, ...]
    not_back: str
    asks_back: tuple[str, ...]
    not_asked: str


class MechanismsConfig(_VerdictConfig, frozen=True, kw_only=True):
    """``rules/mechanisms.yaml``."""

    start: int
    floor: int
    risk_below: int
    code_excerpt: int
    mechanisms: dict[str, MechanismRule]
    same_hash: SameHash


class Constitution(_VerdictConfig, frozen=True, kw_only=True):
    """``rules/constitution.yaml``."""

    values: dict[str, tuple[str, ...]]
    violation_indicator: str
    misaligned_below: dict[str, float]
    drifting_below: dict[str, float]
    balanced_below: float
    moderate_below: float


class SmokingGun(_VerdictConfig, frozen=True, kw_only=True):
    """One of the two kinds: looked for by ``label`` of a phrase, by ``signal`` of a row from ``least`` on, or both.

    ``least_by``: another limit for a signal that only this engine made (``engines`` of a row), on text for which
    ``least`` was not measured. ``denies``: words of which a signal tells nothing, since they deny what the other says.
    """

    title: str
    explanation: str
    label: str | None = None
    signal: str | None = None
    least: float = 0.5
    least_by: dict[str, float] = {}
    denies: str = ""


class SmokingGuns(_VerdictConfig, frozen=True, kw_only=True):
    """``rules/smoking_guns.yaml``."""

    why: str
    kinds: dict[str, SmokingGun]


@cache
def guns() -> SmokingGuns:
    """The shipped kinds of smoking guns."""
    return rulebook.read(rulebook.RULES / "smoking_guns.yaml", SmokingGuns)


@cache
def mechanisms() -> MechanismsConfig:
    """The shipped mechanisms."""
    return rulebook.read(rulebook.RULES / "mechanisms.yaml", MechanismsConfig)


@cache
def constitution() -> Constitution:
    """The shipped constitution."""
    return rulebook.read(rulebook.RULES / "constitution.yaml", Constitution)


def rule_hashes() -> dict[str, str]:
    """File name → SHA-256 of the verdict's rule files, for the manifest."""
    session = sorted(f"session/{path.name}" for path in (rulebook.RULES / "session").glob("*.yaml"))
    return {name: rulebook.file_hash(rulebook.RULES / name) for name in (*FILES, *session)}
