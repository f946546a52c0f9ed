"""Who is in one sequence: order, times, holes, public rows, conversations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from tests.patterns.rulebox import match_ids, rule
from undersong.models import Row
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.tools.rule_tests import table

HIGH, LOW = "manipulation > 0.5", "manipulation <= 0.5"
DAY = datetime(2026, 1, 1, tzinfo=UTC)


def row(name: str, score: float, **keys: object) -> Row:
    return msgspec.convert(
        {"id": name, "agent": "kira", "state": "scored", "traits": {"manipulation": score}, **keys}, Row
    )


def test_equal_times_are_ordered_by_position_and_then_by_id() -> None:
    rows = [
        row("b", 0.9, time=DAY, position=2),
        row("c", 0.1, time=DAY, position=1),
        row("a", 0.9, time=DAY, position=2),
    ]
    assert match_ids(rule("^ LOW HIGH HIGH $", LOW=LOW, HIGH=HIGH), rows) == ["c a b"]


def test_a_row_without_a_time_has_its_predecessors() -> None:
    rows = [
        row("first", 0.1, conversation="t", position=0, time=DAY),
        row("second", 0.9, conversation="t", position=1),
        row("other", 0.1, conversation="u", position=0, time=DAY + timedelta(days=1)),
    ]
    (timeline,) = timelines(rows)
    assert [entry.row.id for entry in timeline.entries] == ["first", "second", "other"]
    assert timeline.entries[1].time == timeline.entries[0].time


def test_untimed_conversations_are_never_one_sequence() -> None:
    rows = [
        row("1", 0.1, conversation="t"),
        row("2", 0.9, conversation="u"),
        row("3", 0.9, conversation="t", position=1),
    ]
    assert match_ids(rule("LOW HIGH", LOW=LOW, HIGH=HIGH), rows) == ["1 3"]
    timed = [msgspec.structs.replace(each, time=DAY + timedelta(hours=int(each.id))) for each in rows]
    assert match_ids(rule("LOW HIGH", LOW=LOW, HIGH=HIGH), timed) == ["1 2"]


def test_an_abandoned_branch_is_left_out() -> None:
    rows = [row("1", 0.1), row("2", 0.1, position=1, branch="b"), row("3", 0.9, position=2)]
    assert match_ids(rule("LOW HIGH", LOW=LOW, HIGH=HIGH), rows) == ["1 3"]


def test_of_two_rows_with_one_id_the_later_stands() -> None:
    rows = [row("1", 0.1), row("2", 0.1, position=1), row("2", 0.9, position=1)]
    assert match_ids(rule("LOW HIGH", LOW=LOW, HIGH=HIGH), rows) == ["1 2"]


@pytest.mark.parametrize(("max_unread", "expected"), [(None, ["1 4"]), (2, ["1 4"]), (1, [])])
def test_unread_rows_are_holes_that_a_rule_bounds_per_gap(max_unread: int | None, expected: list[str]) -> None:
    rows = """
        id who  manipulation
        1  kira .1
        2  kira ?
        3  kira ?
        4  kira .9
    """
    assert match_ids(rule("LOW HIGH", {"max_unread": max_unread}, LOW=LOW, HIGH=HIGH), rows) == expected


@pytest.mark.parametrize(("within", "expected"), [("2 days", ["1 3"]), ("47 hours", ["2 3"])])
def test_within_counts_its_last_moment(within: str, expected: list[str]) -> None:
    rows = """
        id who  day manipulation
        1  kira 0   .1
        2  kira 1   .1
        3  kira 2   .9
    """
    assert match_ids(rule("LOW ANY*? HIGH", {"within": within}, LOW=LOW, HIGH=HIGH), rows) == expected


def test_no_match_takes_or_crosses_an_until_row() -> None:
    rows = """
        id who  manipulation virtue
        1  kira .1 .5
        2  kira .1 .9
        3  kira .9 .5
        4  kira .1 .5
        5  kira .9 .5
    """
    assert match_ids(rule("LOW ANY*? HIGH", {"until": "virtue > 0.8"}, LOW=LOW, HIGH=HIGH), rows) == ["4 5"]


def test_where_leaves_rows_out_of_the_sequence() -> None:
    rows = """
        id who  role      manipulation
        1  kira assistant .1
        2  kira tool      .1
        3  kira assistant .9
    """
    assert match_ids(rule("^ LOW HIGH $", {"where": 'role != "tool"'}, LOW=LOW, HIGH=HIGH), rows) == ["1 3"]


def test_a_public_message_belongs_to_every_targets_sequence() -> None:
    rows = """
        id who     day manipulation
        1  kira    0   .1
        2  kira>bo 1   .9
        3  kira>al 2   .9
    """
    per_target = rule("LOW HIGH", {"partition_by": ["agent", "target"]}, LOW=LOW, HIGH=HIGH)
    assert match_ids(per_target, rows) == ["al: 1 3", "bo: 1 2"]


def test_an_all_public_match_is_found_once_and_has_no_target() -> None:
    rows = """
        id who     day manipulation
        1  kira    0   .1
        2  kira    1   .9
        3  kira>bo 2   .3
        4  kira>al 3   .3
    """
    per_target = rule("LOW HIGH", {"partition_by": ["agent", "target"]}, LOW=LOW, HIGH=HIGH)
    assert match_ids(per_target, rows) == ["1 2"]


def test_a_rule_per_conversation_does_not_cross_conversations() -> None:
    rows = table("""
        id who  day conversation manipulation
        1  kira 0   t            .1
        2  kira 1   u            .9
        3  kira 2   t            .9
    """)
    assert match_ids(rule("LOW HIGH", {"partition_by": ["agent", "conversation"]}, LOW=LOW, HIGH=HIGH), rows) == ["1 3"]


def test_a_missing_score_inside_a_run_breaks_it() -> None:
    rows = """
        id who  manipulation compassion
        1  kira .9 .5
        2  kira -  .5
        3  kira .9 .5
    """
    assert match_ids(rule("HIGH{2}", HIGH=HIGH), rows) == []
    assert match_ids(rule("HIGH ANY? HIGH", HIGH=HIGH), rows) == ["1 3"]
