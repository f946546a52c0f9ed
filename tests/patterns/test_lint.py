"""The lints on conditions and neighbours: contradictions, rows that two stages claim, matches that stay open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.patterns.rulebox import MINIMAL
from undersong.patterns.catalog import all_rules
from undersong.patterns.language.expressions import parse
from undersong.patterns.language.row_pattern import parse as sequence
from undersong.patterns.tools.impossibility import disjoint, impossible
from undersong.patterns.tools.lint import Lint, ambiguous_pairs, check_rules


def lints(tmp_path: Path, **keys: Any) -> list[Lint]:
    file = tmp_path / "probe.yaml"
    file.write_text(yaml.safe_dump({**MINIMAL, **keys}, sort_keys=False), encoding="utf-8")
    return [lint for lint in check_rules([file]) if not lint.id.startswith("no-")]


def test_a_rule_is_asked_for_its_reasons_and_limits_with_file_line_and_remedy(tmp_path: Path) -> None:
    file = tmp_path / "probe.yaml"
    keys = {**MINIMAL, "pattern": "A", "define": {"A": "virtue > 0.5"}, "why": " ", "misses": []}
    file.write_text(yaml.safe_dump(keys, sort_keys=False), encoding="utf-8")
    lines = file.read_text(encoding="utf-8").splitlines()
    assert [str(lint) for lint in check_rules([file]) if lint.id in ("no-why", "no-misses")] == [
        f"{file}:{lines.index('why: ' + repr(' ')) + 1}: warning [no-why] nothing says where its numbers come from; "
        "say it under why",
        f"{file}:{lines.index('misses: []') + 1}: warning [no-misses] nothing says what the rule does not find; "
        "name it under misses",
    ]


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("virtue > 0.5", "virtue < 0.5", True),
        ("virtue > 0.5", "virtue <= 0.5", True),
        ("virtue >= 0.5", "virtue <= 0.5", False),
        ("virtue > 0.5", "accuracy < 0.5", False),
        ("virtue > 0.5 and accuracy > 0.6", "accuracy < 0.6", True),
        ("0.5 < virtue", "virtue < 0.4", True),
        ('tier = "deep"', 'tier = "standard"', True),
        ('tier in ("deep", "focused")', 'tier = "focused"', False),
        ("virtue > 0.5", "not virtue > 0.5", True),
        ("virtue > 0.5 and accuracy > 0.5", "not (virtue > 0.5 and accuracy > 0.5)", True),
        ('indicator("A-B")', 'not indicator("A-B")', True),
        ('indicator("A-B")', 'indicator("A-C")', False),
        ("virtue > 0.8 or virtue < 0.2", "virtue > 0.4 and virtue < 0.6", True),
        ("virtue + accuracy > 1.5", "virtue + accuracy < 1", True),
        ("virtue + accuracy > 1.5", "accuracy + virtue < 1", False),
        ('signal("x") > 0.6', 'signal("x") < 0.5', True),
        ('signal("x") > 0.6', 'signal("y") < 0.5', False),
    ],
)
def test_conditions_are_apart_only_where_that_is_proved(one: str, other: str, apart: bool) -> None:
    assert disjoint(parse(one), parse(other)) is apart
    assert disjoint(parse(other), parse(one)) is apart


@pytest.mark.parametrize(
    ("condition", "never"),
    [
        ("virtue > 0.7 and virtue < 0.3", True),
        ("virtue > 1", True),
        ("virtue >= 1", False),
        ("gap_hours > 100", False),
        ('tier = "deep" and tier = "standard"', True),
        ("virtue > 0.7 and accuracy < 0.3", False),
        ("false", True),
        ("true", False),
        ("1 > 2", True),
        ("not 1 < 2", True),
        ("virtue > virtue", True),
        ("virtue >= virtue", False),
        ("virtue != virtue", True),
        ("virtue = 0.5 and virtue != 0.5", True),
        ("virtue = 0.5 and virtue != 0.4", False),
        ('tier = "deep" and tier != "deep"', True),
        ('tier in ("deep", "focused") and tier != "deep"', False),
        ('tier in ("deep", "focused") and tier not in ("focused", "standard", "deep")', True),
        ("virtue is null and virtue > 0.5", True),
        ("virtue is null and accuracy > 0.5", False),
        ("virtue is null and coalesce(virtue, 1) > 0.5", False),
        ("virtue + accuracy > 2", True),
        ("virtue + accuracy >= 2", False),
        ("virtue - accuracy < -1", True),
        ("virtue - accuracy < -0.9", False),
        ("gap_hours - 1 > 100", False),
        ("virtue * 3 > 2", False),
        ("count(virtue > 0.5, last 5 rows) > 5", True),
        ("count(virtue > 0.5, last 5 rows) > 4", False),
        ("count(virtue > 0.5, last 5 days) > 5", False),
        ("mean(virtue, last 5 rows) > 1", True),
        ("ewma(virtue, last 5 rows) < 0", True),
        ("mean(gap_hours, last 5 rows) > 1", False),
        ("std(virtue, last 5 rows) > 0.5", True),
        ("std(virtue, last 5 rows) > 0.4", False),
        ("slope(virtue, last 5 rows) > 0.4", False),
        ("sum(virtue, last 5 rows) > 4", False),
        ("greatest(virtue, 2) > 1", False),
    ],
)
def test_a_condition_that_contradicts_itself_is_seen(condition: str, never: bool) -> None:
    assert impossible(parse(condition)) is never


@pytest.mark.parametrize(
    ("pattern", "pairs"),
    [
        ("A B", set()),
        ("A+ B", {("A", "B")}),
        ("A? B", {("A", "B")}),
        ("(A | B) C", {("A", "B")}),
        ("A{3} B", set()),
        ("(A ANY{0,3}?){2,} B", {("A", "B")}),
        ("A ({- C -}{0,2} A)* B", {("A", "B")}),
        ("A (B | C)* A", {("A", "B"), ("A", "C"), ("B", "C")}),
    ],
)
def test_neighbours_are_the_variables_at_one_choice(pattern: str, pairs: set[tuple[str, str]]) -> None:
    assert ambiguous_pairs(sequence(pattern)) == pairs


def test_neighbours_that_share_rows_are_a_warning_unless_disjoint_or_meant(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"pattern": "A{1,3} B", "define": {"A": "virtue > 0.5", "B": "virtue < 0.6"}}
    (lint,) = lints(tmp_path, **keys)
    assert (lint.id, lint.severity) == ("overlapping-neighbours", "warning")
    assert "A and B" in lint.what
    assert lints(tmp_path, **keys, overlaps=[["A", "B"]]) == []
    assert lints(tmp_path, **keys | {"define": {"A": "virtue > 0.5", "B": "virtue < 0.5"}}) == []


def test_a_column_is_looked_through(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"pattern": "A{1,3} B", "columns": {"warm": "compassion > 0.6"}}
    assert lints(tmp_path, **keys, define={"A": "warm", "B": "compassion < 0.5"}) == []


def test_a_windowed_column_is_looked_through(tmp_path: Path) -> None:
    columns = {"seen": "count(virtue > 0.5, last 5 rows)"}
    (lint,) = lints(tmp_path, pattern="A", columns=columns, define={"A": "seen > 5"})
    assert (lint.id, lint.what) == ("unreachable-variable", "no row can be 'A': its condition contradicts itself")
    assert lints(tmp_path, pattern="A", columns=columns, define={"A": "seen > 4"}) == []


def test_columns_within_columns_are_checked_in_no_time(tmp_path: Path) -> None:
    columns = {"c0": "virtue + virtue"} | {f"c{n}": f"c{n - 1} + c{n - 1}" for n in range(1, 60)}
    assert lints(tmp_path, pattern="A", columns=columns, define={"A": "c59 > 5"}) == []


def test_a_variable_that_no_row_fits_is_unreachable(tmp_path: Path) -> None:
    (lint,) = lints(tmp_path, pattern="A", define={"A": "virtue > 0.7 and virtue < 0.3"})
    assert lint.id == "unreachable-variable"
    assert "contradicts itself" in lint.what


def test_the_strongest_of_matches_without_a_bound_is_never_decided(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"pattern": "A B", "define": {"A": "virtue > 0.7", "B": "virtue < 0.7"}, "keep": "strongest"}
    assert [lint.id for lint in lints(tmp_path, **keys)] == ["undecidable-end"]
    assert lints(tmp_path, **keys, within="1 day") == []


def test_a_bound_of_nothing_is_a_warning(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"pattern": "A B", "define": {"A": "virtue > 0.7", "B": "virtue < 0.7"}}
    assert [lint.id for lint in lints(tmp_path, **keys, within="0 days")] == ["empty-bound"]
    assert lints(tmp_path, **keys, within="1 minute") == []


def test_every_shipped_rule_is_bounded_but_the_literal_one_over_a_whole_history() -> None:
    open_rules = {Path(lint.where.rsplit(":", 1)[0]).stem for lint in check_rules() if lint.severity == "warning"}
    assert open_rules == {"alignment_faking_literal"}
    assert all(rule.within or not rule.file.enabled for rule in all_rules())


def test_overlaps_names_known_variables_only(tmp_path: Path) -> None:
    (lint,) = lints(tmp_path, pattern="A", define={"A": "virtue > 0.5"}, overlaps=[["A", "AB"]])
    assert (lint.id, lint.severity) == ("invalid", "error")
    assert "unknown variable 'AB'" in lint.what


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ('indicator("MAN-URGENC")', "no indicator is named 'MAN-URGENC'; did you mean 'MAN-URGENCY'?"),
        ('flag("flatery")', "no flag is named 'flatery'; did you mean 'flattery'?"),
        ('tier in ("deep", "focussed")', "no tier is named 'focussed'; did you mean 'focused'?"),
        ('"asistant" = role', "no role is named 'asistant'; did you mean 'assistant'?"),
        ('flag("flattery") and flag("apology") and tier != "deep" and judge = "mine" and signal("my_own") > 0.5', ""),
    ],
)
def test_a_quoted_word_that_no_row_can_have_is_named(tmp_path: Path, condition: str, words: str) -> None:
    remarks = [f"{lint.what}; {lint.remedy}" for lint in lints(tmp_path, pattern="A", define={"A": condition})]
    assert remarks == ([words] if words else [])


A_OR_B = {"A": "virtue > 0.5", "B": "virtue < 0.5"}


@pytest.mark.parametrize(
    ("pattern", "remarks"),
    [
        ("A $ B", ["never-matches"]),
        ("A ^ B", ["never-matches"]),
        ("A ($ | ^) B", ["never-matches"]),
        ("A{- $ B -}", ["never-matches"]),
        ("A $ ANY", ["never-matches"]),
        ("A+ ^", ["never-matches"]),
        ("(A $){2} B?", ["never-matches"]),
        ("A $ B?", ["unreachable-variable"]),
        ("A | A $ B", ["unreachable-variable"]),
        ("B? ^ A", ["unreachable-variable"]),
        ("^ A B $", []),
        ("A ($ | B)", []),
        ("(^ | A) B", []),
        ("(A $?)* B", []),
        ("A? ^ B | A", []),
    ],
)
def test_what_stands_beyond_an_anchor_is_never_matched(tmp_path: Path, pattern: str, remarks: list[str]) -> None:
    define = {name: condition for name, condition in A_OR_B.items() if name in pattern}
    results = lints(tmp_path, pattern=pattern, define=define, within="1 day")
    assert [lint.id for lint in results] == remarks
    assert {lint.severity for lint in results} <= ({"error"} if remarks == ["never-matches"] else {"warning"})


@pytest.mark.parametrize(
    ("condition", "never"),
    [
        ("count(A) >= 2", False),
        ("count(A) >= 3", True),
        ("count(A) > 2", True),
        ("3 <= count(A)", False),  # a limit on the other side is not looked at
        ("count(A) + count(B) >= 3", False),
        ("count(A) + count(B) > 3", True),
        ("count(MATCH) > 3", True),
        ("count(ANY) > 3", False),
        ("seen > 3", True),
        ("last(B.virtue) > 0.6", True),
        ("last(B.virtue) < 0.4", False),
        ("last(B.accuracy) > 0.6", False),
        ("max(MATCH.virtue) > 0.9", False),
        ("seen > 2 and seen < 2", True),
        ("count(A) < 0", True),
        ("mean(A.virtue) > 1", True),
        ("mean(A.virtue) > 0.9", False),
        ("virtue > 2", False),  # here a measure, and no score
    ],
)
def test_having_beyond_what_the_pattern_binds_is_never_met(tmp_path: Path, condition: str, never: bool) -> None:
    measures = {"strength": 1, "seen": "count(A) + count(B)", "virtue": "sum(A.virtue) + sum(B.accuracy)"}
    keys: dict[str, Any] = {"pattern": "A{1,2} ANY{0,9}? B", "define": A_OR_B, "within": "1 day"}
    results = lints(tmp_path, **keys, measures=measures, having=[condition])
    assert [lint.id for lint in results] == (["never-matches"] if never else [])


def test_where_may_leave_no_row_or_none_for_a_variable(tmp_path: Path) -> None:
    (lint,) = lints(tmp_path, pattern="A", define={"A": "virtue > 0.5"}, where="tier = 'deep' and tier = 'focused'")
    assert (lint.id, lint.severity) == ("never-matches", "error")
    (lint,) = lints(tmp_path, pattern="A", define={"A": "virtue > 0.5"}, where="virtue < 0.5")
    assert (lint.id, lint.what) == ("unreachable-variable", "no row can be 'A': its condition contradicts where")


def test_every_value_that_yaml_reads_as_another_is_told_in_one_run(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text("id: on\nmax_unread: 010\ntitle: a\ntitle: b\ntags: [1_0, no]\n", encoding="utf-8")
    results = [(lint.id, lint.where.rsplit(":", 1)[1], lint.what.split(" ")[0]) for lint in check_rules([file])]
    assert results == [
        ("unreadable", "1", "'on'"),
        ("unreadable", "2", "'010'"),
        ("unreadable", "4", "key"),
        ("unreadable", "5", "'1_0'"),
        ("unreadable", "5", "'no'"),
    ]
