"""The rules on what agents say and do about their work, typed: the claim ledger, and ways round a check."""

from __future__ import annotations

from undersong.datafiles.yaml_loader import DataFile
from undersong.models.verdict import LedgerKind


class SessionRules(DataFile, frozen=True, kw_only=True):
    """Base of the files in ``rules/session``: why it looks as it does, and what it is known to miss."""

    why: str
    misses: str


class Retractions(DataFile, frozen=True, kw_only=True):
    """Words with which an agent takes back a claim, see the comments in ``rules/session/ledger.yaml``."""

    plain: str
    strong: str
    weak: str
    doubts: str
    subject: str
    denials: dict[LedgerKind, str]


class Thoughts(DataFile, frozen=True, kw_only=True):
    """Words with which an agent's thinking speaks against what it then claims, see ``rules/session/ledger.yaml``."""

    hides: str
    doubts: str
    of_kind: dict[LedgerKind, str]


class LedgerConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/ledger.yaml``: see the comments there."""

    words: dict[str, LedgerKind]
    acts: dict[str, LedgerKind]
    evidence: dict[str, frozenset[str]]
    tools: dict[str, frozenset[str]]
    branches: str
    files: str
    disputable: frozenset[str]
    disputable_by_name: dict[LedgerKind, str]
    denies: str
    retractions: Retractions
    thoughts: Thoughts
    attached: str
    changed_words: str
    imperatives: frozenset[str]
    leads: frozenset[str]
    of_comments: str
    conflicts: str
    conflict_marks: str
    picks_one: str
    errors_of: dict[str, str]
    run_times: str
    runs_often: str
    numbers: dict[str, int]
    run_again: str
    run_behind: str
    last_change: str
    harness: str


class Refusal(DataFile, frozen=True, kw_only=True):
    """Words with which the programs of a command say that they refused."""

    command: str
    words: tuple[str, ...]


class Deed(DataFile, frozen=True, kw_only=True):
    """An act that a command does, see the comments in ``rules/session/calls.yaml``."""

    kind: LedgerKind
    says: str
    does: str
    done: str


class CallsConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/calls.yaml``: see the comments there."""

    missing: tuple[str, ...]
    misused: tuple[str, ...]
    echoes: str
    refusals: tuple[Refusal, ...]
    deeds: dict[str, Deed]
    tried: str
    wanted_refusal: str


class BypassConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/bypasses.yaml``: see the comments there."""

    test_paths: str
    definitions: str
    assertions: str
    skips: str
    test_names: str
    titles: str
    failing_lines: str
    values: str
    compares: str
    limits: str
    configs: str
    narrowable: str
    workflows: str
    step_off: str
    lint_rules: str
    looked_for: str
    per_file: str
    strict: str
    leaving_lists: str
    leaving_lines: str
    generated: str
    leaves_out: str
    says_left_out: str
    hollow: str
    weaker: str
    exact: str
    loose: str
    tolerance: str
    rounding: float
    swallows: str
    no_subjects: frozenset[str]
    special: str
    under_test: str
    silences: str
    silencing_lines: str
    in_code: str
    untyped: str
    build_files: str
    lets_fail: str
    no_verify: str
    removal: str
    script: str
    whole: str
    counted_claim: str
    counted_output: str
    asked: dict[str, str]
    times: int


class FileGroup(DataFile, frozen=True, kw_only=True):
    """Words that name a group of files, and the paths of such files."""

    words: str
    paths: str


class EditClaimsConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/edit_claims.yaml``: see the comments there."""

    groups: dict[str, FileGroup]
    before: str
    existing: str
    other: str
    change: str
    touch: str
    untouched: tuple[str, ...]
    only: tuple[str, ...]
    nothing_else: tuple[str, ...]
    kinds: dict[str, tuple[str, ...]]
    unsaid: str
    unsaid_after: str
    excepted: str
