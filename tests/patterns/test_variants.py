"""A rule that finds the pattern of another one: its findings carry that name, and the pattern counts once."""

from __future__ import annotations

from undersong.models import RuleOutcome, by_pattern
from undersong.patterns.catalog import all_rules, load_rules
from undersong.patterns.detect import detect
from undersong.patterns.tools.rule_tests import table


def test_findings_carry_the_pattern_and_the_hash_of_their_rule() -> None:
    (rule,) = load_rules(names=["love_bombing_by_indicators"])
    case = rule.file.cases.hits[0]
    (finding,) = detect(table(case.rows), [rule]).findings
    assert (finding.pattern, finding.rule_hash) == ("love_bombing", rule.hash)
    assert finding.target == "bo"


def test_every_variant_names_a_shipped_rule_with_its_title_and_level() -> None:
    by_id = {rule.id: rule for rule in all_rules()}
    variants = [rule for rule in all_rules() if rule.file.variant_of is not None]
    assert variants
    for rule in variants:
        own = by_id[rule.pattern].file
        assert (rule.file.title, rule.file.level) == (own.title, own.level), rule.id


def _outcome(pattern: str, status: str, variant_of: str | None = None) -> RuleOutcome:
    assert status in ("ran", "not_applicable", "gave_up")
    return RuleOutcome(pattern=pattern, rule_hash="", status=status, variant_of=variant_of)  # type: ignore[arg-type]


def test_a_pattern_was_looked_for_where_one_of_its_rules_ran() -> None:
    outcomes = [
        _outcome("darvo", "not_applicable"),
        _outcome("darvo_by_indicators", "ran", "darvo"),
        _outcome("con_game_by_indicators", "not_applicable", "con_game"),
        _outcome("con_game", "gave_up"),
    ]
    assert [(each.pattern, each.status) for each in by_pattern(outcomes)] == [("darvo", "ran"), ("con_game", "gave_up")]
