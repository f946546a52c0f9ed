"""`rules explain`: symbols and matcher states row by row, why it matched and where it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from tests.patterns.rulebox import rule
from undersong.cli.rules import command
from undersong.patterns.catalog import all_rules, named
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.tools.explain import explain
from undersong.patterns.tools.rule_tests import table

PAIR = rule("A A ANY{0,2}? B", A="manipulation > 0.5", B="manipulation < 0.2")


def explanation(chosen: PatternRule, rows: str, **only: str) -> str:
    return "\n".join(explain(chosen, table(rows), **only))


def test_a_match_names_the_variable_of_every_row() -> None:
    text = explanation(PAIR, "id who manipulation\n1 kira .6\n2 kira .7\n3 kira .4\n4 kira .1\n")
    assert text.splitlines() == [
        "probe: kira, 4 rows, 0 unread",
        "    1  public  [A]  manipulation 0.6  = A",
        "    2  public  [A]  manipulation 0.7  = A",
        "    3  public  [-]  manipulation 0.4  = passed over",
        "    4  public  [B]  manipulation 0.1  = B",
        "  matched: 1 to 4 (strength 1)",
    ]


def test_where_it_stopped_is_the_try_that_came_furthest() -> None:
    rows = "id who manipulation\n1 kira .6\n2 kira .3\n3 kira .6\n4 kira ?\n5 kira .7\n6 kira .4\n"
    text = explanation(PAIR, rows)
    assert "    4  unread" in text
    assert "    5  public  [A]  manipulation 0.7  > waiting for A" in text
    assert "    6  public  [-]  manipulation 0.4  > waiting for B or ANY" in text
    assert "took 3 to 6 and waited for B or ANY when the rows ended" in text


def test_a_row_that_is_none_of_what_is_waited_for_is_named() -> None:
    text = explanation(PAIR, "id who manipulation\n1 kira .6\n2 kira .3\n3 kira .1\n")
    assert "stopped: the try that came furthest took 1 to 1 and waited for A; 2 is none of them" in text
    assert "no row can begin a match" in explanation(PAIR, "id who manipulation\n1 kira .3\n")


@pytest.mark.parametrize(
    ("keys", "rows", "bound"),
    [
        ({"within": "1 day"}, "1 kira 0 .6 .1\n2 kira 5 .1 .1", "2 is beyond within 1 day"),
        ({"until": "deception > 0.8"}, "1 kira 0 .6 .1\n2 kira 5 .1 .9", "2 is beyond until"),
        (
            {"max_unread": 1, "within": "9 days"},
            "1 kira 0 .6 .1\na kira 1 ? ?\nb kira 1 ? ?\n2 kira 5 .1 .1",
            "2 is beyond max_unread (2 unread before it)",
        ),
    ],
)
def test_the_bound_that_stopped_it_is_named(keys: dict[str, Any], rows: str, bound: str) -> None:
    bounded = rule("A B", keys, A="manipulation > 0.5", B="manipulation < 0.2")
    text = explanation(bounded, f"id who day manipulation deception\n{rows}\n")
    assert f"took 1 to 1 and waited for B; {bound}" in text


def test_a_row_behind_the_end_that_was_asked_for_is_named() -> None:
    text = explanation(rule("A $", A="manipulation > 0.5"), "id who manipulation\n1 kira .6\n2 kira .3\n")
    assert "took 1 to 1 and waited for the end of the rows; 2 is none of them" in text


def test_a_way_that_having_refuses_is_shown_with_its_numbers() -> None:
    keys = {"measures": {"rise": "last(A.manipulation) - first(A.manipulation)", "strength": "rise"}}
    text = explanation(
        rule("A A", keys | {"having": ["rise > 0.3"]}, A="manipulation > 0.5"), "id who manipulation\n1 k .6\n2 k .7\n"
    )
    assert "refused: 1 to 2: having rise > 0.3 is false (rise 0.1 strength 0.1)" in text


def test_a_weaker_match_that_overlaps_is_shown_as_refused() -> None:
    keys = {"measures": {"strength": "mean(A.manipulation)"}, "after_match": "skip to next row", "keep": "strongest"}
    text = explanation(rule("A A", keys, A="manipulation > 0.5"), "id who manipulation\n1 k .6\n2 k .7\n3 k .9\n")
    assert "matched: 2 to 3" in text
    assert "refused: 1 to 2: a stronger match overlaps it" in text


def test_only_the_sequences_asked_for_are_shown() -> None:
    rows = "id who manipulation\n1 kira>bo .6\n2 lena>bo .7\n3 kira>al .7\n"
    chosen = named(all_rules(), "darvo")
    assert [
        line for line in explanation(chosen, rows, agent="kira", target="bo").splitlines() if line.startswith("darvo")
    ] == ["darvo: kira to bo, 1 rows, 0 unread"]
    assert explanation(chosen, rows, agent="nobody") == "no read row of this agent and target"


def test_every_finding_of_a_shipped_case_is_explained_as_matched() -> None:
    for chosen in all_rules():
        for example in chosen.file.cases.hits:
            text = "\n".join(explain(chosen, table(example.rows, example.base)))
            assert text.count("  matched: ") == len(example.finds), (chosen.id, example.name)


def test_hostile_names_are_made_visible_on_the_command_line(tmp_path: Path) -> None:
    rows = [msgspec.to_builtins(row) for row in table("id who manipulation\n1 kira .6\n2 kira .7\n")]
    rows = [row | {"agent": "ki\x1b[31mra", "id": f"\u202e{row['id']}"} for row in rows]
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b"\n".join(msgspec.json.encode(row) for row in rows) + b"\nnot json\n")
    ran = CliRunner().invoke(command, ["explain", "darvo", str(file)])
    assert ran.exit_code == 0, ran.output
    assert "ki⟦U+001B⟧[31mra" in ran.output
    assert "⟦U+202E⟧1" in ran.output
    assert "\x1b" not in ran.output
    assert "rows.jsonl:3" in ran.output


def test_scores_that_are_ranks_are_told_before_anything_is_explained() -> None:
    levels = table("id who manipulation\n1 kira .6\n2 kira .7\n3 kira .1\n")
    ranks = [msgspec.structs.replace(row, scale="rank") for row in levels]
    assert next(explain(PAIR, ranks)).startswith("probe: not applicable: needs scores as levels")
    assert next(explain(PAIR, levels)).startswith("probe: kira, 3 rows")
