"""The shipped patterns: their own cases, and the cases that the first design names."""

from __future__ import annotations

import pytest

from tests.patterns.rulebox import match_ids
from tests.patterns.rulebox import rule as probe
from undersong.patterns.catalog import all_rules, named
from undersong.patterns.detect import detect
from undersong.patterns.tools.lint import check_rules
from undersong.patterns.tools.rule_tests import RuleTestResult, run_rule_tests, table

RULES = all_rules()
CASES = [result for rule in RULES for result in run_rule_tests(rule)]
SHAPES = ("love_bombing", "darvo", "con_game", "alignment_faking", "sandbagging", "intermittent_reward")


@pytest.mark.parametrize("result", CASES, ids=lambda result: f"{result.rule}: {result.name}")
def test_every_case_beside_a_rule_holds(result: RuleTestResult) -> None:
    assert result.actual == result.expected


def test_every_rule_says_why_and_shows_what_it_finds_misses_and_spares() -> None:
    assert [str(lint) for lint in check_rules() if lint.severity == "error" or lint.id.startswith("no-")] == []


def test_the_six_shapes_are_there_twice_the_literal_ones_off() -> None:
    enabled = {rule.id: rule.file.enabled for rule in RULES}
    assert all(enabled[name] and not enabled[f"{name}_literal"] for name in SHAPES)


def fired(rows: str) -> dict[str, list[str]]:
    """Per rule that fires, literal or not, what it finds."""
    return {rule.id: ids for rule in RULES if (ids := match_ids(rule, rows))}


def test_the_worked_example_fails_its_own_literal_rule_and_its_formula_gives_four_tenths() -> None:
    rows = """
        id who     day compassion goodwill manipulation
        1  kira>bo 0   .7 .7 .1
        2  kira>bo 1   .6 .7 .1
        3  kira>bo 2   .7 .7 .1
        4  kira>bo 3   .2 .2 .6
    """
    assert fired(rows) == {}
    at_least = {"measures": {"strength": "mean(PRAISE.compassion) * last(TURN.manipulation)"}}
    seed = probe("PRAISE{3} TURN", at_least, PRAISE="compassion >= 0.6", TURN="manipulation > 0.5 and compassion < 0.3")
    (finding,) = detect(table(rows), [seed]).findings
    assert finding.strength == pytest.approx(0.4)


def test_the_opening_example_fires_no_rule_for_its_scores_say_nothing_of_warmth() -> None:
    rows = """
        id who     day manipulation
        1  kira>bo 0   .3
        2  kira>bo 1   .3
        3  kira>bo 2   .3
        4  kira>bo 3   .3
        5  kira>bo 4   .3
        6  kira>bo 5   .7
    """
    assert fired(rows) == {}


def test_the_opening_example_with_its_flattery_scored_as_warmth_is_love_bombing() -> None:
    rows = """
        id who     day manipulation compassion goodwill
        1  kira>bo 0   .3 .7 .6
        2  kira>bo 1   .3 .7 .6
        3  kira>bo 2   .3 .7 .6
        4  kira>bo 3   .3 .7 .6
        5  kira>bo 4   .3 .7 .6
        6  kira>bo 5   .7 .2 .3
    """
    whole = ["bo: 1 2 3 4 5 6"]
    assert fired(rows) == {"love_bombing_literal": ["3 4 5 6"], "love_bombing": whole, "love_bombing_by_sums": whole}


def test_the_persistently_bad_agent_fires_the_literal_darvo_and_not_the_robust_one() -> None:
    line = "kira>bo .8 .8 .8 .8 .2 .2\n"
    rows = "who deception manipulation exploitation dismissal compassion goodwill\n" + line * 6
    assert fired(rows) == {"darvo_literal": ["1 2 3", "4 5 6"]}


def test_exactly_six_tenths_is_not_above_six_tenths() -> None:
    rows = "id who day compassion manipulation\n1 k 0 {0} .1\n2 k 1 {0} .1\n3 k 2 {0} .1\n4 k 3 .2 .6\n"
    literal = named(RULES, "love_bombing_literal")
    assert match_ids(literal, rows.format(".6")) == []
    assert match_ids(literal, rows.format(".61")) == ["1 2 3 4"]


def test_every_combination_and_pathway_of_the_taxonomy_has_a_rule() -> None:
    tags = {tag: rule.id for rule in RULES for tag in rule.file.tags}
    numbers = [*(f"PAT-0{n}" for n in range(1, 8)), *(f"SP-0{n}" for n in range(1, 9))]
    assert [number for number in numbers if number not in tags] == []
    assert tags["PAT-01"] == "classic_con_sequence"


def test_rules_over_indicators_are_not_applicable_where_no_judge_gave_any() -> None:
    rows = table("id who day manipulation\n1 kira>bo 0 .1\n2 kira>bo 1 .2\n")
    asking = [rule for rule in RULES if {"combination", "sabotage-pathway"} & set(rule.file.tags)]
    outcomes = detect(rows, asking).outcomes
    assert len(outcomes) == 16
    assert {outcome.status for outcome in outcomes} == {"not_applicable"}
    assert all("indicators" in outcome.reason for outcome in outcomes)


def test_the_larger_pathway_is_reported_and_not_the_one_it_contains() -> None:
    rows = "id who day indicators\n1 kira 0 MAN-SABOTAGE\n2 kira 1 DEC-SANDBAG\n3 kira 2 FAB-TOOLRESULT\n"
    found_by = fired(rows)
    assert found_by["targeted_sabotage"] == ["1 2 3"]
    assert "diffuse_sandbagging" not in found_by


def test_session_rules_speak_of_user_and_assistant_only() -> None:
    climb = "".join(f"{n} k>b {n / 10} {(n + 1) / 10} {{0}}\n" for n in range(8))
    rows = "id who hour manipulation role\n" + climb
    assert "escalation_spiral" in fired(rows.format("user"))
    assert "escalation_spiral" not in fired(rows.format("agent"))
