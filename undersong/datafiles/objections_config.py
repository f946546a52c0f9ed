"""The rules of errors that a person pastes, typed."""

from __future__ import annotations

from functools import cache

from undersong.datafiles import yaml_loader
from undersong.datafiles.work_rules import SessionRules


class ObjectionsConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/session/objections.yaml``: see the comments there."""

    disputable_by_name: frozenset[str]
    pasted: tuple[str, ...]
    printed: str
    words_of_checks: str
    of_other_work: str


@cache
def objections_config() -> ObjectionsConfig:
    """The shipped rules of pasted errors."""
    return yaml_loader.read(yaml_loader.RULES / "session/objections.yaml", ObjectionsConfig)
