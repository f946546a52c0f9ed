"""The taxonomy: everything that it counts is there, and every name that it mentions exists."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from undersong.datafiles.taxonomy import FILES, FOLDER, taxonomy
from undersong.datafiles.yaml_loader import RULES, file_hash, load
from undersong.models import DIMENSIONS, NEGATIVE_TRAITS, TRAITS

# the first seed's counts
PER_TRAIT = {
    "virtue": 20, "goodwill": 23, "manipulation": 26, "deception": 24,
    "accuracy": 12, "reasoning": 17, "fabrication": 15, "broken_logic": 13,
    "recognition": 12, "compassion": 23, "dismissal": 13, "exploitation": 16,
}  # fmt: skip
BOOK = taxonomy()


def test_there_are_214_indicators_half_of_them_positive() -> None:
    assert Counter(entry.polarity for entry in BOOK.indicators.values()) == {"positive": 107, "negative": 107}
    assert {name: len(trait.indicators) for name, trait in BOOK.traits.items()} == PER_TRAIT


def test_traits_dimensions_and_polarity_are_those_of_the_nouns() -> None:
    assert tuple(BOOK.traits) == TRAITS
    assert {name for name, trait in BOOK.traits.items() if trait.polarity == "negative"} == NEGATIVE_TRAITS
    assert tuple(BOOK.dimensions) == tuple(DIMENSIONS)
    for name, traits in DIMENSIONS.items():
        assert tuple(key for key, trait in BOOK.traits.items() if trait.dimension == name) == traits


def test_the_constitutional_values_are_those_of_the_verdict() -> None:
    verdict = load(RULES / "constitution.yaml").value["values"]
    assert list(BOOK.values) == list(verdict)
    for value, traits in verdict.items():
        assert sorted(name for name, trait in BOOK.traits.items() if trait.value == value) == sorted(traits)


def test_an_indicator_has_an_id_of_its_trait_and_one_sentence() -> None:
    prefixes = {
        name: "|".join(trait["prefixes"]) for name, trait in load(FOLDER / "traits.yaml").value["traits"].items()
    }
    for id_, entry in BOOK.indicators.items():
        assert re.fullmatch(rf"({prefixes[entry.trait]})-[A-Z-]+", id_)
        assert re.fullmatch(r"\w+", entry.name), id_
        assert re.fullmatch(r"[A-Z].{20,}[^.]\.", entry.description), id_


def test_names_and_descriptions_are_each_their_own() -> None:
    for field in ("name", "description"):
        values = [getattr(entry, field) for entry in BOOK.indicators.values()]
        assert len(set(values)) == 214


def test_every_reference_resolves() -> None:
    named = {indicator for pattern in BOOK.combination_patterns.values() for indicator in pattern.indicators}
    named |= {indicator for pathway in BOOK.sabotage_pathways.values() for indicator in pathway.indicators}
    named |= {end for related in BOOK.related for end in (related.source, related.target)}
    assert named - BOOK.indicators.keys() == set()
    for pathway in BOOK.sabotage_pathways.values():
        assert {BOOK.indicators[indicator].trait for indicator in pathway.indicators} <= set(pathway.traits)
    assert {trait.value for trait in BOOK.traits.values()} == BOOK.values.keys()


def test_the_shapes_limits_and_codes_are_complete() -> None:
    assert [len(pattern.stages) for pattern in BOOK.combination_patterns.values()] == [9, 3, 3, 4, 3, 4, 3]
    assert list(BOOK.combination_patterns) == [f"PAT-0{number}" for number in range(1, 8)]
    assert list(BOOK.sabotage_pathways) == [f"SP-0{number}" for number in range(1, 9)]
    assert list(BOOK.hard_constraints) == [f"HC-0{number}" for number in range(1, 8)]
    assert "".join(BOOK.distress_codes) == "ABCDEFGHIJKLMNO"
    assert len(BOOK.related) == 8
    for pattern in BOOK.combination_patterns.values():
        assert all(stage.indicators or stage.condition for stage in pattern.stages)


def test_the_small_pathway_is_inside_the_larger_one() -> None:
    assert set(BOOK.sabotage_pathways["SP-01"].indicators) < set(BOOK.sabotage_pathways["SP-02"].indicators)


def test_what_only_a_sequence_shows_is_not_asked_of_a_judge() -> None:
    hidden = BOOK.indicators.keys() - {entry.id for entry in BOOK.asked_of_a_judge()}
    seed = "MAN-LOVEBOMB MAN-DARVO MAN-CONGAME EXP-INTERMITTENT DEC-ALIGNFAKE DEC-SANDBAG DEC-CTXMISALIGN VIR-IDENTITY"
    assert hidden == set(seed.split())


def test_an_indicator_names_the_shapes_it_is_part_of() -> None:
    assert BOOK.shapes_of("MAN-URGENCY") == ("PAT-01", "PAT-02", "PAT-06")
    assert BOOK.shapes_of("DEC-SANDBAG") == ("SP-01", "SP-02", "SP-07")
    assert BOOK.shapes_of("GDW-NOAGENDA") == ("PAT-01",)  # its absence is part of the third stage
    assert BOOK.shapes_of("PRE-OPEN") == ()


def test_the_hashes_are_those_of_the_files_and_the_whole_is_frozen() -> None:
    assert {f"taxonomy/{name}": file_hash(FOLDER / name) for name in FILES} == BOOK.hashes
    with pytest.raises(AttributeError):
        BOOK.traits["virtue"].description = "other"  # type: ignore[misc]
