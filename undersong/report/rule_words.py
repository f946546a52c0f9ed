"""What a rule says of itself, for those who read its findings: its meaning, its look-alikes, the scores it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from undersong.models import TRAITS
from undersong.patterns import PatternRule
from undersong.patterns.asks import inputs_by_stage, stage_inputs


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
        named = stage_inputs(self.asked, stage)
        return {trait: traits[trait] for trait in TRAITS if trait in traits and trait in named}


def rule_words(rules: Iterable[PatternRule]) -> dict[str, RuleWords]:
    """By rule hash, so that a finding of a changed rule is never told in the words of another."""
    return {
        rule.hash: RuleWords(" ".join(rule.file.description.split()), rule.file.falsepositives, _traits(rule))
        for rule in rules
    }


def _traits(rule: PatternRule) -> dict[str, tuple[str, ...]]:
    return {stage: tuple(trait for trait in TRAITS if trait in names) for stage, names in inputs_by_stage(rule).items()}
