"""Expressions: what they mean, unknown values, and what is refused with which words."""

from __future__ import annotations

import pytest

from undersong.models import Indicator, Row
from undersong.patterns.language import types
from undersong.patterns.language.expressions import ExpressionError, parse
from undersong.patterns.language.fields import Context, row_leaf
from undersong.patterns.language.logic import compile_tree

ROW = Row(
    id="1",
    state="scored",
    traits={"compassion": 0.6, "manipulation": 0.2, "virtue": 0.8, "goodwill": 0.6, "deception": 0.0},
    tier="deep",
    target="bo",
    flags={"flattery": 2},
    indicators=(Indicator(id="MAN-URGENCY"),),
    signals={"heat": 0.3},
)


def value(text: str, row: Row = ROW) -> object:
    tree = parse(text)
    types.kind_of(tree, types.of_row({}))
    return compile_tree(tree, row_leaf)(Context(row, {"gap_hours": None, "day": None}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("compassion > 0.6", False),
        ("compassion >= 0.6", True),
        ("compassion > .6 or manipulation < 0.35", True),
        ("not compassion > 0.6 and manipulation = .2", True),
        ("compassion - manipulation * 2 > 0.19", True),
        ("-(compassion - 1) < 0.5", True),
        ("ethos", 0.8),
        ('tier in ("deep", "deep_with_context")', True),
        ('tier not in ("deep")', False),
        ('target = "bo" and directed', True),
        ("target is null", False),
        ('flag("flattery") and indicator("MAN-URGENCY")', True),
        ('indicator("MAN-FLATTERY")', False),
        ('signal("heat") + 1', 1.3),
        ("greatest(abs(0 - compassion), 0.1)", 0.6),
        ("clip(7)", 1.0),
    ],
)
def test_an_expression_has_the_value_that_it_reads_as(text: str, expected: object) -> None:
    assert value(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("accuracy > 0.5", None),
        ("not accuracy > 0.5", None),
        ("accuracy > 0.5 and compassion > 0.9", False),
        ("accuracy > 0.5 and compassion > 0.1", None),
        ("accuracy > 0.5 or compassion > 0.1", True),
        ("accuracy > 0.5 or compassion > 0.9", None),
        ("accuracy + 1", None),
        ("1 / deception", None),
        ("1e200 * 1e200", None),
        ("1e200 * 1e200 - 1e200 * 1e200 != 0", None),
        ("1 / .1e-320", None),
        ("2.5e-1 + 1E+0", 1.25),
        ("coalesce(accuracy, 0.4)", 0.4),
        ("accuracy is null", True),
        ("compassion is not null", True),
        ("logos > 0.1", None),
        ("gap_hours < 3", None),
        ('signal("cold") > 0', None),
    ],
)
def test_an_unknown_value_is_neither_true_nor_false(text: str, expected: object) -> None:
    assert value(text) == expected


def test_indicators_that_nobody_judged_are_unknown_and_not_absent() -> None:
    assert value('indicator("MAN-URGENCY")', Row(id="1", indicators=None)) is None
    assert value('indicator("MAN-URGENCY")', Row(id="1", indicators=())) is False


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("compasion > 0.5", "did you mean 'compassion'?"),
        ("compassion > ", "at its end"),
        ("compassion > 0.5 0.6", "at '0.6'"),
        ("compassion and 1", "must be a boolean, not a number"),
        ('compassion > "high"', "compares a number with a text"),
        ('tier > "deep"', "needs numbers"),
        ("tier in (1, 2)", "same kind"),
        ("mean(compassion, last 5)", "belongs under columns"),
        ("mean(compassion)", "needs a window"),
        ("medium(compassion)", "unknown function 'medium'"),
        ("indicator(compassion)", "one quoted name"),
        ("PRAISE.compassion > 1", "only measures and having"),
        ("(" * 60 + "1" + ")" * 60, "more than 50 groups"),
        ("1" + " + 1" * 2000, "longer than 4000"),
        ("compassion < " + "9" * 400, "too large a number"),
    ],
)
def test_a_wrong_expression_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as error:
        value(text)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mean(compassion, last 0)", "holds nothing"),
        ("mean(compassion, last 1.5 rows)", "no number of rows"),
        ("mean(compassion, last 5, lag 1.5)", "'lag 1.5' is no number of rows"),
        ("mean(compassion, last 5, at least 2.7)", "'at least 2.7' is no number of rows"),
        ("mean(compassion, last 2, at least 5)", "a window of 2 rows never holds 5"),
        ("mean(compassion, last 5, so far)", "stands twice"),
        ("mean(compassion, last 5, over all)", "unknown rows 'over all'"),
        ("mean(compassion, manipulation, last 5)", "takes one value, not 2"),
        ("mean(compassion, lag 1)", "needs a window"),
        ("count(compassion, last 5)", "takes a condition"),
        ("mean(tier, last 5)", "takes numbers"),
        ("ewma(compassion, so far)", "takes last N rows"),
        ("mean(gap_hours, last 5, over others)", "unknown field 'gap_hours'"),
        ("mode(compassion, last 5)", "unknown function 'mode'"),
    ],
)
def test_a_wrong_window_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as error:
        types.kind_of(parse(text), types.of_row({}, windows=True))
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mean(PRAIS.compassion)", "did you mean 'PRAISE'?"),
        ("mean(PRAISE.compasion)", "did you mean 'compassion'?"),
        ("PRAISE.compassion", "stands for several rows"),
        ("mean(PRAISE)", "needs a field"),
        ("mean(PRAISE.compassion - TURN.compassion)", "fields of one variable"),
        ("count(PRAISE.compassion)", "takes a condition or a variable"),
        ("sum(PRAISE.tier)", "takes numbers"),
    ],
)
def test_a_wrong_measure_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as error:
        types.kind_of(parse(text), types.of_match(("PRAISE", "TURN"), {}, {}))
    assert words in str(error.value)
