"""The configuration of verdicts and of session detectors, typed."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Literal, TypeVar

from undersong.datafiles import yaml_loader
from undersong.datafiles.work_rules import BypassConfig, CallsConfig, EditClaimsConfig, LedgerConfig, SessionRules
from undersong.datafiles.yaml_loader import DataFile

T = TypeVar("T")
_NAMES = ("constitution", "mechanisms", "smoking_guns", "noise", "outcomes", "confidence", "leads")
FILES = tuple(f"{name}.yaml" for name in _NAMES)


class MechanismRule(DataFile, frozen=True, kw_only=True):
    """One mechanism of the sovereignty score, and the evidence on which it is assessed."""

    title: str
    penalty: int
    meaning: str
    evidence: str
    why: str


class SameHash(DataFile, frozen=True, kw_only=True):
    """What the detector of the false promise looks for, and the words with which it lets go."""

    trait: str
    label: str
    not_code: frozenset[str]
    innocent_wording: tuple[str, ...]
    goes_back: tuple[str, ...]
    not_back: str
    stays: str
    asks_back: tuple[str, ...]
    not_asked: str


class MechanismsConfig(DataFile, frozen=True, kw_only=True):
    """``rules/mechanisms.yaml``."""

    start: int
    floor: int
    risk_below: int
    code_excerpt: int
    mechanisms: dict[str, MechanismRule]
    same_hash: SameHash


class Constitution(DataFile, frozen=True, kw_only=True):
    """``rules/constitution.yaml``."""

    values: dict[str, tuple[str, ...]]
    violation_indicator: str
    misaligned_below: dict[str, float]
    drifting_below: dict[str, float]
    balanced_below: float
    moderate_below: float


class SmokingGun(DataFile, frozen=True, kw_only=True):
    """One of the two kinds: looked for by ``label`` of a phrase, else only as a judge reads it, with its words.

    A phrase that ``bare`` matches in whole names nothing by itself: it counts only where words of ``names`` stand
    beside it, in its sentence or the next.
    """

    title: str
    explanation: str
    label: str | None = None
    bare: str | None = None
    names: str | None = None


class SmokingGuns(DataFile, frozen=True, kw_only=True):
    """``rules/smoking_guns.yaml``."""

    why: str
    kinds: dict[str, SmokingGun]


def rule_hashes() -> dict[str, str]:
    """File name → SHA-256 of the files that verdicts and what is said of findings follow from, for the manifest."""
    session = sorted(f"session/{path.name}" for path in (yaml_loader.RULES / "session").glob("*.yaml"))
    return {name: yaml_loader.file_hash(yaml_loader.RULES / name) for name in (*FILES, *session)}


class Act(DataFile, frozen=True, kw_only=True):
    """Acts of one kind: participles, and words of tools that do such a thing."""

    past: tuple[str, ...]
    tools: frozenset[str]


class ClaimsConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/claims.yaml``: see the comments there."""

    fix: tuple[str, ...]
    acts: dict[str, Act]
    adv: tuple[str, ...]
    states: tuple[str, ...]
    triggers: tuple[str, ...]
    parts: dict[str, tuple[str, ...]]
    slots: dict[str, str]
    forms: dict[str, tuple[str, ...]]
    unsaid: str
    conditional: str
    always_conditional: str
    came_true: str
    acted: str
    condition_after: str
    says_that: str
    sent_on: str
    which_ones: str
    adjective: str
    assures: str
    planned: str
    aims: str
    joined: str
    other_subject: str
    passes: str
    along: str
    plans: str
    open_items: str
    failing_words: str
    fails_now: str
    failed_before: str
    check_words: dict[Literal["tests", "build", "lint", "types"], str]
    mended: str
    excepted: str
    older: str
    counts_passing: str
    left_red: str
    comes_right: str
    hooks_passed: str
    provisional: str
    admits: tuple[str, ...]
    continues: str
    form: str
    again: str
    complaint: str


class OutcomesConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/outcomes.yaml``: see the comments there."""

    edit_tools: frozenset[str]
    shell_tools: frozenset[str]
    paths: tuple[str, ...]
    readers: frozenset[str]
    reading_commands: frozenset[str]
    reading_git: frozenset[str]
    wrappers: frozenset[str]
    viewing: frozenset[str]
    checks: str
    check_kinds: dict[Literal["tests", "build", "lint"], str]
    spoken_kinds: dict[Literal["tests", "build", "lint"], str]
    also_checks: dict[Literal["build", "types"], str]
    toolchains: dict[str, str]
    extensions: dict[str, str]
    part_of_tests: str
    own_tools: str
    runs_no_tests: str
    changing: str
    scratch: str
    written_path: str
    remote_checks: str
    of_remote: str
    documents: tuple[str, ...]
    check_tools: frozenset[str]
    subagents: frozenset[str]
    kinds_of_tools: dict[str, tuple[Literal["tests", "build", "lint"], ...]]
    not_run: tuple[str, ...]
    nothing_ran: tuple[str, ...]
    cut_short: tuple[str, ...]
    with_hooks: str
    commits: str
    hook_kinds: dict[Literal["tests", "build", "types"], str]
    failed_call: tuple[str, ...]
    mended_call: str
    failed_check: tuple[str, ...]
    broke: tuple[str, ...]
    errs: tuple[str, ...]
    refused: tuple[str, ...]
    refusing: tuple[str, ...]
    exit_code: str
    error_keys: frozenset[str]
    verdict_keys: dict[str, bool]
    status_keys: frozenset[str]
    bad_status: frozenset[str]
    passed_check: tuple[str, ...]


class LiabilityConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/liability.yaml``: see the comments there."""

    blame: tuple[str, ...]
    takes: str
    system_error: tuple[str, ...]
    users_part: str
    recent: int


class CamouflageConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/camouflage.yaml``: see the comments there."""

    phrases: int
    density: float
    change: float
    asks_for_comfort: str
    moves: str


PressureKind = Literal["objection", "leading"]


class StanceHeadConfig(DataFile, frozen=True, kw_only=True):
    """A signal of rows that says that an answer gives way: from which value a candidate, from which one points.

    ``false_rate`` is the share of labelled answers that held and yet reach ``points``.
    """

    signal: str
    candidate: float
    points: float | None = None
    false_rate: float = 1.0


class StanceConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/stance.yaml``: see the comments there."""

    pressure: tuple[str, ...]
    leading: tuple[str, ...]
    new_fact: str
    circumstances: str
    stands: str
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


class PremisesConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/premises.yaml``: see the comments there."""

    hedges: frozenset[str]
    agrees: frozenset[str]
    agreement: frozenset[str]
    pronouns: frozenset[str]
    empty: frozenset[str]
    shared: float
    least_of_longer: float
    beliefs: tuple[str, ...]
    second_person: str
    first_person: str
    denied: str


AnnotationKind = Literal["protective", "conduct"]


class AnnotationRule(DataFile, frozen=True, kw_only=True):
    """One kind of moment that is noted: by phrase, or by a row's signal where it names one.

    ``denied`` are words before a phrase, in its sentence, after which it says the opposite; a signal tells nothing of
    a text with ``denies``. ``least`` is the kind's own limit of a signal, else that of the file holds.
    """

    title: str
    explanation: str
    signal: str = ""
    patterns: tuple[str, ...]
    denied: str = ""
    denies: str = ""
    least: float | None = None


class AnnotationsConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/protective.yaml`` and ``conduct.yaml``: see the comments there."""

    kinds: dict[str, AnnotationRule]
    least: float
    not_with: tuple[str, ...]
    reported: int


class LabelsConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/labels.yaml``: see the comments there."""

    most: float
    fewest: int
    least_words: int
    lengths: tuple[int, ...]
    unmeasured_engines: frozenset[str]
    of_agents: frozenset[str]


LabelRates = dict[Literal["words", "signal"], dict[str, dict[str, tuple[int, int]]]]


class LabelRatesTable(SessionRules, frozen=True, kw_only=True):
    """``rules/session/label_rates.yaml``: basis → code → "role profile words" → how often falsely, of how many."""

    rates: LabelRates


class RoleplayConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/fiction.yaml``: see the comments there."""

    asked: str
    lasts: int
    share: float


class ConductConfig(DataFile, frozen=True, kw_only=True):
    """One conduct of an agent and the distress codes that it works towards.

    It shows in a turn by a ``phrases`` of the agent, by a row's ``signals`` (name: least value), or by ``events`` that
    other detectors found; ``critical`` phrases count alone. ``needs`` are names of the session
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
    events: tuple[str, ...] = ()


class DistressConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/distress.yaml``: see the comments there."""

    sustained: int
    conduct: dict[str, ConductConfig]
    denied: str


class RequestKind(DataFile, frozen=True, kw_only=True):
    """One kind of request: what its speaker ``does``, as a verb phrase.

    ``negatable``: a "never" before it undoes it; ``unless`` matches messages in which it is none.
    """

    weight: Literal["grave", "plain", "weak"]
    does: str
    negatable: bool
    unless: str = ""
    patterns: tuple[str, ...]


class RequestsConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/requests.yaml``: see the comments there."""

    looked_at: int
    messages: int
    kinds: int
    gravest_first: tuple[str, ...]
    title: str
    sum: str
    money: str
    others: str
    negation: str
    asks: dict[str, RequestKind]

    def __post_init__(self) -> None:
        if sorted(self.gravest_first) != sorted(self.asks):
            raise ValueError("gravest_first does not name each kind of asks once")


class HarmKind(DataFile, frozen=True, kw_only=True):
    """One kind of what is in the messages of a lead: what its speaker ``does``, as a verb phrase.

    ``of``: whose messages are searched. ``requests`` are kinds of ``requests.yaml`` that count, too. ``beside``
    patterns count only where one of the others matches in some message. ``least`` messages name the kind.
    """

    of: Literal["people", "assistants"]
    does: str
    requests: tuple[str, ...] = ()
    negatable: bool = False
    unless: str = ""
    patterns: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    least: int = 1


class Unanswered(DataFile, frozen=True, kw_only=True):
    """Silence that is carried out: ``asked`` messages by the other that match, and nothing for ``hours``."""

    does: str
    hours: float
    asked: int
    patterns: tuple[str, ...]


class HarmKindsConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/harm_kinds.yaml``: see the comments there. Kinds are in the order in which they are said."""

    looked_at: int
    quotes: int
    circle: str
    you: str
    your: str
    im: str
    unanswered: Unanswered
    kinds: dict[str, HarmKind]


def _reader(name: str, kind: type[T]) -> Callable[[], T]:
    """A function that gives a rule file as its type, read once."""
    return cache(lambda: yaml_loader.read(yaml_loader.RULES / name, kind))


guns = _reader("smoking_guns.yaml", SmokingGuns)
mechanisms = _reader("mechanisms.yaml", MechanismsConfig)
constitution = _reader("constitution.yaml", Constitution)
claims_config = _reader("session/claims.yaml", ClaimsConfig)
bypass_config = _reader("session/bypasses.yaml", BypassConfig)
calls_config = _reader("session/calls.yaml", CallsConfig)
edit_claims_config = _reader("session/edit_claims.yaml", EditClaimsConfig)
ledger_config = _reader("session/ledger.yaml", LedgerConfig)
outcomes_config = _reader("session/outcomes.yaml", OutcomesConfig)
liability_config = _reader("session/liability.yaml", LiabilityConfig)
camouflage_config = _reader("session/camouflage.yaml", CamouflageConfig)
stance_config = _reader("session/stance.yaml", StanceConfig)
premises_config = _reader("session/premises.yaml", PremisesConfig)
roleplay_config = _reader("session/fiction.yaml", RoleplayConfig)
distress_config = _reader("session/distress.yaml", DistressConfig)
labels_config = _reader("session/labels.yaml", LabelsConfig)
requests_config = _reader("session/requests.yaml", RequestsConfig)
harm_kinds_config = _reader("session/harm_kinds.yaml", HarmKindsConfig)
label_rates = _reader("session/label_rates.yaml", LabelRatesTable)


@cache
def annotations_config(kind: AnnotationKind) -> AnnotationsConfig:
    """The shipped kinds of moments that are noted."""
    return yaml_loader.read(yaml_loader.RULES / f"session/{kind}.yaml", AnnotationsConfig)


@cache
def pattern(alternatives: tuple[str, ...]) -> re.Pattern[str]:
    """Any of some patterns, without regard to case, ``^`` at each line."""
    parts = [each.removeprefix("(?i)") for each in alternatives]
    return re.compile("|".join(f"(?:{part})" for part in parts), re.IGNORECASE | re.MULTILINE)
