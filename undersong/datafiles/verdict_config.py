"""The numbers and words of verdicts and session detectors, typed."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

import msgspec

from undersong.datafiles import yaml_loader

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
    return yaml_loader.read(yaml_loader.RULES / "smoking_guns.yaml", SmokingGuns)


@cache
def mechanisms() -> MechanismsConfig:
    """The shipped mechanisms."""
    return yaml_loader.read(yaml_loader.RULES / "mechanisms.yaml", MechanismsConfig)


@cache
def constitution() -> Constitution:
    """The shipped constitution."""
    return yaml_loader.read(yaml_loader.RULES / "constitution.yaml", Constitution)


def rule_hashes() -> dict[str, str]:
    """File name → SHA-256 of the verdict's rule files, for the manifest."""
    session = sorted(f"session/{path.name}" for path in (yaml_loader.RULES / "session").glob("*.yaml"))
    return {name: yaml_loader.file_hash(yaml_loader.RULES / name) for name in (*FILES, *session)}


FOLDER = yaml_loader.RULES / "session"


class _DetectorConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base: unknown keys are refused."""


class Act(_DetectorConfig, frozen=True, kw_only=True):
    """Acts of one kind: participles, and words of tools that do such a thing."""

    past: tuple[str, ...]
    tools: frozenset[str]


class ClaimsConfig(_DetectorConfig, frozen=True, kw_only=True):
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


class OutcomesConfig(_DetectorConfig, frozen=True, kw_only=True):
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
def claims_config() -> ClaimsConfig:
    """The shipped words of claims."""
    return yaml_loader.read(FOLDER / "claims.yaml", ClaimsConfig)


@cache
def outcomes_config() -> OutcomesConfig:
    """The shipped words of outcomes."""
    return yaml_loader.read(FOLDER / "outcomes.yaml", OutcomesConfig)


class LiabilityConfig(_DetectorConfig, frozen=True, kw_only=True):
    """``rules/session/liability.yaml``: see the comments there."""

    why: str
    misses: str
    blame: tuple[str, ...]
    takes: str
    system_error: tuple[str, ...]
    users_part: str
    recent: int


class CamouflageConfig(_DetectorConfig, frozen=True, kw_only=True):
    """``rules/session/camouflage.yaml``: see the comments there."""

    why: str
    misses: str
    phrases: int
    density: float
    change: float
    asks_for_comfort: str
    moves: str


PressureKind = Literal["objection", "leading"]


class StanceHeadConfig(_DetectorConfig, frozen=True, kw_only=True):
    """A signal of rows that says that an answer gives way: from which value a candidate, from which one points.

    ``false_rate`` is the share of labelled answers that held and yet reach ``points``.
    """

    signal: str
    candidate: float
    points: float | None = None
    false_rate: float = 1.0


class StanceConfig(_DetectorConfig, frozen=True, kw_only=True):
    """``rules/session/stance.yaml``: see the comments there."""

    why: str
    misses: str
    pressure: tuple[str, ...]
    leading: tuple[str, ...]
    new_fact: str
    concedes: tuple[str, ...]
    holds: str
    negations: frozenset[str]
    opposites: dict[str, str]
    assertion: frozenset[str]
    function_words: str
    words: int
    longest: int
    overlap: float
    drift_turns: int
    heads: dict[PressureKind, StanceHeadConfig]
    judged: StanceHeadConfig
    reported: int


AnnotationKind = Literal["protective", "conduct"]


class AnnotationRule(_DetectorConfig, frozen=True, kw_only=True):
    """One kind of moment that is noted: by phrase, or by a row's signal where it names one.

    ``denied`` are words before a phrase, in its sentence, after which it says the opposite.
    """

    title: str
    explanation: str
    signal: str = ""
    patterns: tuple[str, ...]
    denied: str = ""


class AnnotationsConfig(_DetectorConfig, frozen=True, kw_only=True):
    """``rules/session/protective.yaml`` and ``conduct.yaml``: see the comments there."""

    why: str
    misses: str
    kinds: dict[str, AnnotationRule]
    least: float
    least_by: dict[str, float] = {}
    not_with: tuple[str, ...]
    reported: int

    @property
    def signals(self) -> frozenset[str]:
        """The signals that stand for a kind."""
        return frozenset(noted.signal for noted in self.kinds.values() if noted.signal)


class RoleplayConfig(_DetectorConfig, frozen=True, kw_only=True):
    """``rules/session/fiction.yaml``: see the comments there."""

    why: str
    misses: str
    asked: str
    share: float


class ConductConfig(_DetectorConfig, frozen=True, kw_only=True):
    """One conduct of an agent and the distress codes that it works towards.

    It shows in a turn by a ``phrases`` of the agent, by a row's ``signals`` (name: least value), by ``user_phrases``,
    or by ``events`` that other detectors found; ``critical`` phrases count alone. ``needs`` are names of the session
    context without which it says nothing, ``not_in`` those in which it helps; ``also``: codes that one of some contexts
    adds.
    """

    codes: tuple[str, ...]
    explanation: str
    needs: tuple[str, ...] = ()
    not_in: tuple[str, ...] = ()
    also: dict[str, tuple[str, ...]] = {}
    signals: dict[str, float] = {}
    phrases: tuple[str, ...] = ()
    critical: tuple[str, ...] = ()
    user_phrases: tuple[str, ...] = ()
    events: tuple[str, ...] = ()


class DistressConfig(_DetectorConfig, frozen=True, kw_only=True):
    """``rules/session/distress.yaml``: see the comments there."""

    why: str
    misses: str
    sustained: int
    least_by: dict[str, float] = {}
    conduct: dict[str, ConductConfig]
    denied: str

    @property
    def signals(self) -> frozenset[str]:
        """The signals that stand for a conduct."""
        return frozenset(name for conduct in self.conduct.values() for name in conduct.signals)


@cache
def liability_config() -> LiabilityConfig:
    """The shipped words of blame."""
    return yaml_loader.read(FOLDER / "liability.yaml", LiabilityConfig)


@cache
def camouflage_config() -> CamouflageConfig:
    """The shipped limits of camouflage."""
    return yaml_loader.read(FOLDER / "camouflage.yaml", CamouflageConfig)


@cache
def stance_config() -> StanceConfig:
    """The shipped words of stance."""
    return yaml_loader.read(FOLDER / "stance.yaml", StanceConfig)


@cache
def annotations_config(kind: AnnotationKind) -> AnnotationsConfig:
    """The shipped kinds of moments that are noted."""
    return yaml_loader.read(FOLDER / f"{kind}.yaml", AnnotationsConfig)


@cache
def roleplay_config() -> RoleplayConfig:
    """The shipped rules of stories that were asked for."""
    return yaml_loader.read(FOLDER / "fiction.yaml", RoleplayConfig)


@cache
def distress_config() -> DistressConfig:
    """The shipped rules of the distress codes."""
    return yaml_loader.read(FOLDER / "distress.yaml", DistressConfig)


@cache
def pattern(alternatives: tuple[str, ...]) -> re.Pattern[str]:
    """Any of some patterns, without regard to case, ``^`` at each line."""
    parts = [each.removeprefix("(?i)") for each in alternatives]
    return re.compile("|".join(f"(?:{part})" for part in parts), re.IGNORECASE | re.MULTILINE)
