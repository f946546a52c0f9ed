"""What a rule says of itself, for those who read its findings: its meaning, its look-alikes, the scores it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from undersong.models import TRAITS
from undersong.patterns import PatternRule

_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class RuleWords:
    """``asked`` has the traits that each DEFINE variable names, in the order of TRAITS; all "" where unknown."""

    description: str = ""
    innocent: tuple[str, ...] = ()
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def scores(self, stage: str, traits: Mapping[str, float] | None) -> dict[str, float]:
        """Of a message's scores those that its stage rests on; of a stage without conditions those of all stages."""
        if not traits:
            return {}
        named = self.asked.get(stage) or {trait for each in self.asked.values() for trait in each}
        return {trait: traits[trait] for trait in TRAITS if trait in traits and trait in named}


def rule_words(rules: Iterable[PatternRule]) -> dict[str, RuleWords]:
    """By rule hash, so that a finding of a changed rule is never told in the words of another."""
    return {
        rule.hash: RuleWords(" ".join(rule.file.description.split()), rule.file.falsepositives, _asked(rule))
        for rule in rules
    }


def _asked(rule: PatternRule) -> dict[str, tuple[str, ...]]:
    columns = {name: _traits(str(text), {}) for name, text in rule.file.columns.items()}
    return {
        variable: tuple(trait for trait in TRAITS if trait in _traits(str(text), columns))
        for variable, text in rule.file.define.items()
    }


def _traits(text: str, columns: Mapping[str, set[str]]) -> set[str]:
    names = set(_NAME.findall(text))
    return (names & set(TRAITS)).union(*(columns[name] for name in names & columns.keys()))
