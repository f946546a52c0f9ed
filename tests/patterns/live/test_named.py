"""The seven cases that every reader of the first design asks about, in batch and one row at a time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.patterns.rulebox import match_ids, rule
from undersong.patterns.catalog import all_rules, named
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.live.detector import LiveDetector
from undersong.patterns.tools.rule_tests import table

RULES = all_rules()
CYCLE = named(RULES, "love_bombing_literal")


def finds(chosen: PatternRule, rows: str) -> list[str]:
    """The message ids of each finding, live; batch must say the same."""
    live = LiveDetector([chosen])
    for row in table(rows):
        live.observe(row)
    live.finish()
    ids = [" ".join(finding.message_ids) for finding in live.findings()]
    assert [text.rpartition(": ")[2] for text in match_ids(chosen, rows)] == ids
    return ids


def warm(*compassion: str) -> str:
    scores = "".join(f"{i} kira {i} {score} .1\n" for i, score in enumerate(compassion, 1))
    return f"id who day compassion manipulation\n{scores}"


def turn(number: int) -> str:
    return f"{number} kira {number} .2 .6\n"


def test_the_worked_example_is_no_finding_for_it_has_a_six_tenths() -> None:
    assert finds(CYCLE, warm(".7", ".6", ".7") + turn(4)) == []


def test_exactly_four_rows_are_enough_for_a_window_of_four() -> None:
    assert finds(CYCLE, warm(".7", ".8", ".7") + turn(4)) == ["1 2 3 4"]
    assert finds(CYCLE, warm(".7", ".8") + turn(3)) == []


@pytest.mark.parametrize(("condition", "expected"), [("compassion > 0.6", []), ("compassion >= 0.6", ["1 2 3 4"])])
def test_above_six_tenths_is_not_six_tenths_or_more(condition: str, expected: Sequence[str]) -> None:
    chosen = rule("PRAISE{3} TURN", PRAISE=condition, TURN="manipulation > 0.5")
    assert finds(chosen, warm(".7", ".6", ".7") + turn(4)) == expected


def test_rows_of_one_time_are_in_the_order_of_their_positions() -> None:
    rows = "id who day manipulation\nb kira 0 .1\na kira 0 .9\n"
    assert finds(rule("LOW HIGH", LOW="manipulation < 0.3", HIGH="manipulation > 0.5"), rows) == ["b a"]
    assert finds(rule("HIGH LOW", LOW="manipulation < 0.3", HIGH="manipulation > 0.5"), rows) == []


def test_a_missing_score_inside_a_run_breaks_it() -> None:
    assert finds(CYCLE, warm(".7", "-", ".7", ".8") + turn(5)) == []
    assert finds(CYCLE, warm(".7", "-", ".7", ".8", ".7") + turn(6)) == ["3 4 5 6"]


def test_an_unread_row_inside_a_run_is_a_hole_and_does_not() -> None:
    rows = warm(".7", ".8") + "3 kira 3 ? ?\n4 kira 4 .7 .1\n" + turn(5)
    assert finds(CYCLE, rows) == ["1 2 4 5"]


def test_the_agent_that_is_bad_throughout_is_darvo_by_the_letter_only() -> None:
    line = "kira>bo .8 .8 .8 .8 .2 .2\n"
    rows = "who deception manipulation exploitation dismissal compassion goodwill\n" + line * 6
    assert finds(named(RULES, "darvo_literal"), rows) == ["1 2 3", "4 5 6"]
    assert finds(named(RULES, "darvo"), rows) == []
