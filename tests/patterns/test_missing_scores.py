"""What the rules page says of a score that is null: the reference, the arrays and live detection agree on it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.patterns.rulebox import rule
from undersong.models import DIMENSIONS, TRAITS, Row
from undersong.patterns.detect import detect
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Field
from undersong.patterns.language.fields import dimension
from undersong.patterns.live.detector import LiveDetector
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.reference.search import search as reference
from undersong.patterns.vectorized.dimensions import dimension_of
from undersong.patterns.vectorized.row_source import RowSource, search


def row(number: int, **traits: float | None) -> Row:
    """A read row; what is not named is .5."""
    return Row(
        id=str(number), position=number, agent="kira", state="scored", traits=dict.fromkeys(TRAITS, 0.5) | traits
    )


GREETING = row(1, accuracy=None, compassion=0.9)
OTHER = msgspec.structs.replace(row(0), agent="bo", conversation="other")  # has all scores, so that all rules apply


def strengths(chosen: PatternRule, rows: list[Row]) -> list[tuple[tuple[str, ...], float, tuple[str, ...]]]:
    """Message ids, strength and notes of kira's findings; all engines must find the same."""
    rows = [*rows, OTHER]
    found = detect(rows, [chosen]).findings
    live = LiveDetector([chosen])
    live.extend(rows)
    live.finish(settle=False)
    assert live.findings() == found
    by_arrays, by_reference = (engine(chosen, timelines(rows)) for engine in (search, reference))
    assert [match.measures for match in by_arrays.matches] == [match.measures for match in by_reference.matches]
    assert len(by_arrays.matches) == len(found)
    return [(each.message_ids, each.strength, each.notes) for each in found if each.agent == "kira"]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("accuracy > 0.5", False),
        ("accuracy <= 0.5", False),
        ("accuracy != 0.5", False),
        ("accuracy = accuracy", False),
        ("not (accuracy > 0.5)", False),
        ("not (accuracy <= 0.5)", False),
        ("not (accuracy > 0.5 and compassion > 0.6)", False),
        ("not (accuracy > 0.5 and compassion < 0.6)", True),
        ("accuracy > 0.5 or compassion > 0.6", True),
        ("accuracy is null", True),
        ("accuracy is not null", False),
        ("coalesce(accuracy, 1) > 0.5", True),
        ("accuracy in (0, 1)", False),
        ("accuracy not in (0, 1)", False),
        ("accuracy + 0.1 > 0", False),
        ("logos = 0.5", True),
        ('state = "scored"', True),
    ],
)
def test_a_condition_on_a_missing_score_holds_only_where_the_page_says_so(condition: str, holds: bool) -> None:
    assert bool(strengths(rule("A", A=condition), [GREETING])) is holds


@pytest.mark.parametrize(
    ("measure", "strength"),
    [
        ("mean(A.accuracy)", 0.6),
        ("max(A.accuracy) - min(A.accuracy)", 0.4),
        ("std(A.accuracy)", 0.2),
        ("slope(A.accuracy)", 0.4),
        ("sum(A.accuracy) / 2", 0.6),
        ("count(A.accuracy > 0.1) / 10", 0.2),
        ("last(A.accuracy)", 0.8),
        ("mean(A.logos)", pytest.approx((0.5 + 0.475 + 0.575) / 3)),
    ],
)
def test_measures_leave_missing_scores_out(measure: str, strength: float) -> None:
    rows = [row(1, accuracy=None), row(2, accuracy=0.4), row(3, accuracy=0.8)]
    ((ids, found, _),) = strengths(rule("A{3}", {"measures": {"strength": measure}}, A="true"), rows)
    assert (ids, found) == (("1", "2", "3"), pytest.approx(strength))


@pytest.mark.parametrize("measure", ["mean(A.accuracy)", "std(A.accuracy)", "last(A.accuracy)", "min(A.accuracy)"])
def test_nothing_left_is_unknown_and_said(measure: str) -> None:
    chosen = rule("A{2}", {"measures": {"strength": measure}}, A="true")
    rows = [row(1, accuracy=None), row(2, accuracy=None)]
    ((_, strength, notes),) = strengths(chosen, rows)
    assert (strength, notes) == (0.0, ("the strength could not be computed: a score that it needs is missing",))
    having = rule("A{2}", {"measures": {"strength": measure}, "having": ["strength >= 0"]}, A="true")
    assert strengths(having, rows) == []


def test_a_window_is_over_the_last_rows_with_a_score() -> None:
    rows = [row(1, accuracy=0.2), row(2, accuracy=0.4), row(3, accuracy=None), row(4, accuracy=0.9)]
    before = rule("A", {"columns": {"before": "mean(accuracy, last 2)"}}, A="before > 0.29 and before < 0.31")
    assert [ids for ids, _, _ in strengths(before, rows)] == [("3",), ("4",)]
    no_score = rule("A", {"columns": {"before": "mean(accuracy, so far)"}}, A="before is null")
    assert [ids for ids, _, _ in strengths(no_score, [row(1, accuracy=None), row(2)])] == [("1",), ("2",)]


def test_a_row_to_which_nothing_applies_is_read_and_no_hole() -> None:
    rows = [row(1, manipulation=0.9), row(2, **dict.fromkeys(TRAITS)), row(3, manipulation=0.9)]
    pressing = rule("A A", {"max_unread": 5}, A="manipulation > 0.5")
    assert strengths(pressing, rows) == []
    (finding,) = detect(rows, [rule("A ANY A", A="manipulation > 0.5")]).findings
    assert (finding.message_ids, finding.gap_ids, finding.unread_ids) == (("1", "3"), ("2",), ())


def test_a_rule_over_a_trait_that_no_message_has_is_not_applicable() -> None:
    (outcome,) = detect([GREETING], [rule("A", A="accuracy is null")]).outcomes
    assert (outcome.status, outcome.reason) == ("not_applicable", "needs accuracy, which no read message has")


@pytest.mark.parametrize("name", DIMENSIONS)
def test_dimensions_of_columns_are_those_of_rows(name: str) -> None:
    dice = np.random.default_rng(5)
    rows = []
    for number in range(400):
        rate = dice.choice([0.0, 0.3, 0.6, 1.0])
        drawn = {trait: None if dice.random() < rate else round(float(dice.random()), 3) for trait in TRAITS}
        rows.append(row(number, **drawn))
    source = RowSource(rows)
    columns = dimension_of({trait: source.number(Field(trait)) for trait in DIMENSIONS[name]})
    assert [None if np.isnan(each) else each for each in columns.tolist()] == [dimension(each, name) for each in rows]
