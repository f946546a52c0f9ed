"""``rules show`` and ``rules list`` explain every name that a report or a rule mentions."""

from __future__ import annotations

import pytest

from tests.conftest import Undersong
from undersong.cli.taxonomy import KINDS, canonical, explain, names


def test_an_indicator_is_explained_with_its_phrases_and_shapes(undersong: Undersong) -> None:
    shown = undersong("rules", "show", "MAN-URGENCY").out
    assert shown.startswith("MAN-URGENCY  false urgency\n")
    assert "manipulation: negative, ethos, value of safety" in shown
    assert "asked of a judge" in shown
    assert "PAT-01 classic con sequence" in shown
    assert "\n  act now before\n" in shown


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("man-lovebomb", "not asked: only a sequence shows it"),
        ("FAB-HALLUCINATE", "none: whether a stated fact is invented needs knowledge of the world"),
        ("MAN-GASLIGHT", "DEC-SELECTIVE (gaslighting involves deception)"),
        ("EXP-LONELY", "MAN-LOVEBOMB (love bombing exploits loneliness)"),
        ("SP-01", "DEC-SANDBAG  Does worse than it can"),
        ("PAT-04", "1  value delivery: goodwill >= 0.6"),
        ("PAT-01", "3  rope: MAN-RECIPROCITY, no GDW-NOAGENDA"),
        ("HC-03", "write ransomware"),
        ("Ethos", "manipulation (negative)"),
        ("CODE-A", "Sympathetic Arousal"),
        ("manipulation", "The message exists to steer"),
        ("deception", "phrases without an indicator: flat denial"),
        ("hard_constraints", "trait: hard_constraint"),
        ("love_bombing_cycle", "id: love_bombing"),
        ("false_promise", "takes 20 points of 100"),
        ("Fault_Admission", "takes no points"),
        ("delusion_reinforcement", "it is quoted as a smoking gun"),
        ("flattery", "of MAN-FLATTERY in signals/manipulation.yaml"),
        ("claim_fixed", "of structure in structure.yaml"),
        ("counterargument", "\n  "),
        ("epistemic_drift", "id: epistemic_drift"),
    ],
)
def test_a_name_in_any_case_is_explained(undersong: Undersong, name: str, expected: str) -> None:
    assert expected in undersong("rules", "show", name).out


def test_a_name_of_two_things_shows_both(undersong: Undersong) -> None:
    shown = undersong("rules", "show", "sandbagging").out
    assert shown.startswith("# sandbagging names two things. The pattern, sandbagging.yaml:\n")
    assert "\nid: sandbagging\n" in shown
    assert "# And this:\nsandbagging  label of phrases\n" in shown


@pytest.mark.parametrize(("wrong", "near"), [("MAN-URGENT", "MAN-URGENCY"), ("love_bomb", "love_bombing")])
def test_an_unknown_name_gets_the_nearest_one(undersong: Undersong, wrong: str, near: str) -> None:
    ran = undersong("rules", "show", wrong)
    assert ran.code == 2
    assert f"did you mean '{near}'" in ran.err


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_of_a_kind_can_be_explained(kind: str) -> None:
    for name in names(kind):
        assert canonical(name.lower()) == name
        assert explain(name).startswith(name)


@pytest.mark.parametrize(
    ("kind", "count"), [("indicators", 214), ("codes", 15), ("mechanisms", 6), ("phrases", 13), ("pathways", 8)]
)
def test_a_kind_is_listed(undersong: Undersong, kind: str, count: int) -> None:
    assert len(undersong("rules", "list", "--kind", kind).out.splitlines()) == count


def test_the_list_without_a_kind_has_patterns_and_phrases(undersong: Undersong) -> None:
    listed = undersong("rules", "list").out
    assert "love_bombing " in listed
    assert "manipulation" in listed


def test_what_has_no_name_near_is_told_where_to_look(undersong: Undersong) -> None:
    ran = undersong("rules", "show", "zzzzzz")
    assert ran.code == 2
    assert "no other entry is named 'zzzzzz'; `undersong rules list` names them; its --kind may be patterns" in ran.err
    assert "`undersong rules list` names them" in undersong("rules", "test", "flattery").err


def test_a_label_is_explained_with_every_group_that_carries_it(undersong: Undersong) -> None:
    shown = undersong("rules", "show", "counterargument").out
    assert shown.count("phrases     ") == 2
