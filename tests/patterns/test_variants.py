"""A rule that finds the pattern of another one: its findings carry that name, and the pattern counts once."""

from __future__ import annotations

from pathlib import Path

import msgspec

from undersong.models import RuleOutcome, by_pattern
from undersong.patterns.catalog import all_rules, load_rules
from undersong.patterns.detect import detect
from undersong.patterns.tools.rule_tests import table
from undersong.pipeline.history_sweep import sweep
from undersong.stores.sqlite import SQLiteStore


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


def test_a_sweep_by_one_rule_leaves_alone_what_another_rule_of_the_pattern_has_found(tmp_path: Path) -> None:
    (variant,) = load_rules(names=["love_bombing_by_indicators"])
    rows = [msgspec.structs.replace(row, judge="j", judge_hash="j1") for row in table(variant.file.cases.hits[0].rows)]
    with SQLiteStore(tmp_path / "undersong.db") as store:
        store.append(rows)
        assert len(sweep(store, [variant], "j1").new_findings) == 1
        (main,) = load_rules(names=["love_bombing"])
        done = sweep(store, [main], "j1")
        assert (done.new_findings, done.retracted) == ((), ())
        assert [finding.rule_hash for finding in store.findings()] == [variant.hash]
        assert len(sweep(store, [main, variant], "j1", again=True).retracted) == 0
