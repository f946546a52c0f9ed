"""Which traits and signals each stage of a rule asks for, so that a finding can show them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from undersong.patterns.rules import PatternRule

_NAME = re.compile(r"[A-Za-z_]\w*")


def inputs_by_stage(rule: PatternRule) -> dict[str, frozenset[str]]:
    """Per DEFINE variable the names in its condition, those behind its columns included."""
    columns = {name: _names(str(text), {}) for name, text in rule.file.columns.items()}
    return {variable: _names(str(text), columns) for variable, text in rule.file.define.items()}


def stage_inputs(by_stage: Mapping[str, Collection[str]], stage: str) -> Collection[str]:
    """The names that a stage rests on; of a stage without conditions those of all stages."""
    return by_stage.get(stage) or {name for each in by_stage.values() for name in each}


def _names(text: str, columns: Mapping[str, frozenset[str]]) -> frozenset[str]:
    names = frozenset(_NAME.findall(text))
    return names.union(*(columns[name] for name in names & columns.keys()))
