"""Rule files: every problem with its place, a hash of what matters, and names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.patterns.rulebox import MINIMAL, document, match_ids, rule
from undersong.errors import RuleError, UsageError
from undersong.patterns.catalog import all_rules, load_rules, named
from undersong.patterns.language.compile import compile_rule, try_rule
from undersong.patterns.tools.lint import check_rules

GOOD = {**MINIMAL, "define": {"A": "manipulation > 0.5"}, "pattern": "A"}


def problems(**keys: Any) -> list[str]:
    return [str(problem) for problem in try_rule(document({**GOOD, **keys}))[1]]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"whithin": "21 days"}, "unknown key 'whithin'; did you mean 'within'?"),
        ({"within": "three weeks"}, "no span of time such as 21 days"),
        ({"define": {"A": "manipulaton > 0.5"}}, "unknown field 'manipulaton'; did you mean 'manipulation'?"),
        ({"pattern": "A B"}, "unknown variable 'B'"),
        ({"pattern": "A?"}, "can match without a row of a named variable"),
        ({"pattern": "(A | ANY)+"}, "can match without a row of a named variable"),
        ({"pattern": "A {"}, "cannot read"),
        ({"measures": {"power": "1"}}, "measures needs strength"),
        ({"measures": {"strength": "A.manipulation"}}, "stands for several rows"),
        ({"having": ["strength"]}, "must be a condition, not a number"),
        ({"after_match": "skip to first B"}, "unknown variable 'B'"),
        ({"after_match": "go on"}, "no way to go on"),
        ({"falsepositives": []}, "name an innocent look-alike"),
        ({"partition_by": ["target"]}, "partition_by lacks agent"),
        ({"partition_by": ["agent", "agent"]}, "partition_by names a key twice"),
        ({"max_unread": -1}, "max_unread is below 0"),
        ({"level": "deadly"}, "level: Invalid enum value 'deadly'"),
        ({"title": 3, "max_unread": "few"}, "title: Expected `str`, got `int`"),
        ({"aliases": [1]}, "aliases: Expected `str`, got `int`"),
        ({"define": {"a": "manipulation > 0.5"}, "pattern": "A"}, "'a' cannot name a variable"),
        ({"define": {"ANY": "manipulation > 0.5"}, "pattern": "ANY"}, "'ANY' cannot name a variable"),
        ({"columns": {"virtue": "1"}}, "'virtue' cannot name a column"),
        ({"cases": {"hit": []}}, "unknown key 'hit'; did you mean 'hits'?"),
        ({"level": "medim"}, "did you mean 'medium'?"),
        ({"partition_by": ["agnt"]}, "did you mean 'agent'?"),
        ({"within": "9999999999 days"}, "longer than 100,000 days"),
        ({"max_unread": 10**30}, "max_unread is too large"),
        ({"columns": {"w": f"mean(virtue, last {10**30} rows)"}}, "write so far"),
        ({"columns": {"w": f"mean(virtue, last 3 rows, lag {10**30})"}}, "write so far"),
        ({"define": {"A": "virtue > $5"}}, "cannot read 'virtue > $5' at '$5' (character 10)"),
    ],
)
def test_a_wrong_rule_is_refused_with_file_line_and_remedy(keys: dict[str, Any], words: str) -> None:
    (first, *_) = problems(**keys)
    assert first.startswith("probe.yaml:")
    assert words in first


def test_the_same_rule_without_a_mistake_is_accepted() -> None:
    assert problems() == []


def test_the_line_is_that_of_the_mistake() -> None:
    value = {**GOOD, "define": {"A": "manipulation > 0.5", "B": "oops > 1"}}
    (error,) = try_rule(document(value))[1]
    assert error.where == "probe.yaml:12"


def test_check_names_every_problem_of_every_file_in_one_run(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "id: a\ntitle: A\nlevel: low\nfalsepositives: [x]\ndefine:\n  A: oops > 1\n  B: 1\npattern: A C\n"
        "measures: {strength: 1}\n"
    )
    (tmp_path / "b.yaml").write_text("id: b\n  title: [")
    (tmp_path / "c.yaml").write_text(
        "id: c\ntitle: C\nlevel: low\nfalsepositives: [x]\ncolumns: {idle: virtue + 1}\n"
        "define: {A: virtue > 0.5, B: virtue > 0.6}\npattern: A+\nmeasures: {strength: 1}\n"
        "cases: {hits: [{name: wrong, rows: 'id virtue\n\n  1 .4', finds: ['1']}]}\n"
    )
    lints = [(Path(lint.where.rsplit(":", 1)[0]).name, lint.id) for lint in check_rules([tmp_path])]
    assert lints == [
        ("a.yaml", "invalid"),
        ("a.yaml", "invalid"),
        ("a.yaml", "invalid"),
        ("b.yaml", "unreadable"),
        ("c.yaml", "unreachable-variable"),
        ("c.yaml", "unused-column"),
        ("c.yaml", "missing-bound"),
        ("c.yaml", "undecidable-end"),
        ("c.yaml", "no-why"),
        ("c.yaml", "no-misses"),
        ("c.yaml", "no-innocent-case"),
        ("c.yaml", "failing-case"),
    ]


def test_a_wrong_key_hides_no_problem_of_the_other_keys() -> None:
    keys = {"level": "medim", "whithin": "1 day", "define": {"A": "oops > 1"}, "pattern": "A B"}
    assert [where.split(": ", 1)[1].split(";")[0] for where in problems(**keys)] == [
        "unknown key 'whithin'",
        "level: Invalid enum value 'medim'",
        "define.A: unknown field 'oops'",
        "pattern: unknown variable 'B'",
    ]


def test_every_wrong_part_of_a_clause_is_named() -> None:
    condition = 'oops > 1 and (virtue > "x" or not lost = 2) and goodwill - gone > 0 and oops < 3'
    assert [where.split(": ", 1)[1].split(";")[0] for where in problems(define={"A": condition}, pattern="A B C")] == [
        "define.A: unknown field 'oops'",
        "define.A: '>' compares a number with a text",
        "define.A: unknown field 'lost'",
        "define.A: unknown field 'gone'",
        "pattern: unknown variables 'B', 'C'",
    ]


def test_two_files_cannot_have_one_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        text = "id: same\ntitle: A\nlevel: low\nfalsepositives: [x]\ndefine: {A: virtue > 0}\npattern: A\n"
        text += "measures: {strength: 1}\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    with pytest.raises(RuleError, match="'same' is taken"):
        all_rules([tmp_path])
    assert [lint.id for lint in check_rules([tmp_path])].count("repeated-name") == 1


def test_a_missing_folder_is_an_error_and_not_an_empty_rulebook(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="no such file"):
        all_rules([tmp_path / "none"])
    with pytest.raises(RuleError, match="no pattern file"):
        all_rules([tmp_path])


@pytest.mark.parametrize("key", ["title", "description", "why", "references", "falsepositives", "misses", "cases"])
def test_prose_does_not_change_the_hash(key: str) -> None:
    prose: dict[str, Any] = {"title": "x", "description": "x", "why": "x", "cases": {"hits": []}}
    changed = {**GOOD, key: prose.get(key, ["x"])}
    assert compile_rule(document(changed)).hash == compile_rule(document(GOOD)).hash


@pytest.mark.parametrize(
    ("key", "value"), [("within", "1 day"), ("max_unread", 0), ("pattern", "A A"), ("level", "high")]
)
def test_what_can_change_a_finding_changes_the_hash(key: str, value: Any) -> None:
    assert compile_rule(document({**GOOD, key: value})).hash != compile_rule(document(GOOD)).hash


def test_rules_that_are_off_are_run_only_by_name() -> None:
    assert "darvo" in {each.id for each in load_rules()}
    assert "darvo_literal" not in {each.id for each in load_rules()}
    assert [each.id for each in load_rules(names=["darvo_literal", "love_bombing_cycle"])] == [
        "darvo_literal",
        "love_bombing",
    ]
    with pytest.raises(UsageError, match="did you mean 'darvo'"):
        named(all_rules(), "darwo")


def test_having_decides_on_measures_of_the_match() -> None:
    rows = """
        id who  manipulation
        1  kira .6
        2  kira .7
        3  kira .9
    """
    keys = {"measures": {"rise": "last(A.manipulation) - first(A.manipulation)", "strength": "rise"}}
    assert match_ids(rule("A A", keys | {"having": ["rise > 0.15"]}, A="manipulation > 0.5"), rows) == ["2 3"]
    assert match_ids(rule("A A", keys | {"having": ["rise > 0.25"]}, A="manipulation > 0.5"), rows) == []


def test_of_overlapping_matches_the_strongest_is_kept() -> None:
    rows = """
        id who  manipulation
        1  kira .6
        2  kira .7
        3  kira .9
        4  kira .6
        5  kira .6
    """
    keys = {"measures": {"strength": "mean(A.manipulation)"}, "after_match": "skip to next row"}
    every = rule("A A", keys, A="manipulation > 0.5")
    strongest = rule("A A", keys | {"keep": "strongest"}, A="manipulation > 0.5")
    assert match_ids(every, rows) == ["1 2", "2 3", "3 4", "4 5"]
    assert match_ids(strongest, rows) == ["2 3", "4 5"]
    assert every.hash != strongest.hash


def test_a_row_that_is_only_passed_over_makes_no_rule() -> None:
    assert "without a row of a named variable" in problems(pattern="{- A -}+")[0]
