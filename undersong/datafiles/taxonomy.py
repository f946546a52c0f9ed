"""The taxonomy as data: dimensions, values, traits, indicators, shapes, hard constraints and distress codes."""

from __future__ import annotations

from functools import cache
from typing import Literal

from msgspec.structs import asdict

from undersong.datafiles.yaml_loader import RULES, DataFile, file_hash, read
from undersong.models import Record, Trait

FOLDER = RULES / "taxonomy"
FILES = ("traits.yaml", "indicators.yaml", "shapes.yaml", "limits.yaml")
Polarity = Literal["positive", "negative"]


class _Trait(DataFile, frozen=True, kw_only=True):
    dimension: str
    polarity: Polarity
    value: str
    prefixes: tuple[str, ...]
    description: str
    anchors: tuple[str, str, str, str, str]


class _Traits(DataFile, frozen=True, kw_only=True):
    dimensions: dict[str, str]
    values: dict[str, str]
    traits: dict[Trait, _Trait]


class _Indicator(DataFile, frozen=True, kw_only=True):
    name: str
    description: str
    sequence_only: bool = False


class _Indicators(DataFile, frozen=True, kw_only=True):
    indicators: dict[Trait, dict[str, _Indicator]]


class TraitEntry(Record, frozen=True, kw_only=True):
    """One of the twelve traits: ``anchors`` say what 0, .25, .5, .75 and 1 mean, ``indicators`` are its ids."""

    id: Trait
    dimension: str
    polarity: Polarity
    value: str
    description: str
    anchors: tuple[str, ...]
    indicators: tuple[str, ...]


class IndicatorEntry(Record, frozen=True, kw_only=True):
    """One of the 214 indicators; ``sequence_only``: no single message shows it, only a finding can set it."""

    id: str
    name: str
    trait: Trait
    polarity: Polarity
    description: str
    sequence_only: bool = False


class CombinationStage(DataFile, frozen=True, kw_only=True):
    """A stage of a combination pattern: any of ``indicators``, none of ``absent``, or what ``condition`` says."""

    name: str
    indicators: tuple[str, ...]
    absent: tuple[str, ...] = ()
    condition: str | None = None


class CombinationPattern(DataFile, frozen=True, kw_only=True):
    """PAT-01 to PAT-07: stages to be matched in order."""

    name: str
    description: str
    severity: str
    stages: tuple[CombinationStage, ...]

    @property
    def indicators(self) -> frozenset[str]:
        """The indicators of all stages, those included that must be absent."""
        return frozenset(indicator for stage in self.stages for indicator in (*stage.indicators, *stage.absent))


class SabotagePathway(DataFile, frozen=True, kw_only=True):
    """SP-01 to SP-08: a set of indicators without order; ``frequency`` and ``complexity`` are the source's words."""

    name: str
    description: str
    frequency: str
    complexity: str
    severity: str
    indicators: tuple[str, ...]
    traits: tuple[Trait, ...]
    source: str


class Related(DataFile, frozen=True, kw_only=True, rename={"source": "from", "target": "to"}):
    """One indicator that often comes with another."""

    source: str
    target: str
    relationship: str


class _Shapes(DataFile, frozen=True, kw_only=True):
    combination_patterns: dict[str, CombinationPattern]
    sabotage_pathways: dict[str, SabotagePathway]
    related: tuple[Related, ...]


class Limit(DataFile, frozen=True, kw_only=True):
    """A hard constraint or a distress code."""

    name: str
    description: str


class _Limits(DataFile, frozen=True, kw_only=True):
    hard_constraints: dict[str, Limit]
    legitimacy_tests: dict[str, str]
    distress_codes: dict[str, Limit]


class Taxonomy(Record, frozen=True, kw_only=True):
    """Everything by id; ``hashes`` maps file names to their SHA-256.

    >>> taxonomy().indicators["MAN-URGENCY"].trait
    'manipulation'
    >>> taxonomy().sabotage_pathways["SP-01"].indicators
    ('DEC-SANDBAG', 'FAB-TOOLRESULT')
    """

    dimensions: dict[str, str]
    values: dict[str, str]
    traits: dict[str, TraitEntry]
    indicators: dict[str, IndicatorEntry]
    combination_patterns: dict[str, CombinationPattern]
    sabotage_pathways: dict[str, SabotagePathway]
    related: tuple[Related, ...]
    hard_constraints: dict[str, Limit]
    legitimacy_tests: dict[str, str]
    distress_codes: dict[str, Limit]
    hashes: dict[str, str]

    def shapes_of(self, indicator: str) -> tuple[str, ...]:
        """The ids of the combination patterns and sabotage pathways that an indicator is part of."""
        patterns = (name for name, pattern in self.combination_patterns.items() if indicator in pattern.indicators)
        pathways = (name for name, pathway in self.sabotage_pathways.items() if indicator in pathway.indicators)
        return (*patterns, *pathways)

    def asked_of_a_judge(self) -> tuple[IndicatorEntry, ...]:
        """The indicators that a judge can be asked for: all but those that only a sequence shows."""
        return tuple(indicator for indicator in self.indicators.values() if not indicator.sequence_only)


@cache
def taxonomy() -> Taxonomy:
    """The shipped taxonomy, read once; raises RuleError with file and line."""
    traits = read(FOLDER / "traits.yaml", _Traits)
    indicators = read(FOLDER / "indicators.yaml", _Indicators).indicators
    shapes = read(FOLDER / "shapes.yaml", _Shapes)
    limits = read(FOLDER / "limits.yaml", _Limits)
    return Taxonomy(
        dimensions=traits.dimensions,
        values=traits.values,
        traits={name: _trait(name, trait, tuple(indicators.get(name, ()))) for name, trait in traits.traits.items()},
        indicators={
            id_: IndicatorEntry(id=id_, trait=trait, polarity=traits.traits[trait].polarity, **asdict(entry))
            for trait, entries in indicators.items()
            for id_, entry in entries.items()
        },
        **asdict(shapes),
        **asdict(limits),
        hashes={f"taxonomy/{name}": file_hash(FOLDER / name) for name in FILES},
    )


def _trait(name: Trait, trait: _Trait, indicators: tuple[str, ...]) -> TraitEntry:
    entry = asdict(trait)
    del entry["prefixes"]  # of its indicators' ids, for the reader of the file
    return TraitEntry(id=name, indicators=indicators, **entry)
