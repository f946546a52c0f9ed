"""The facts of a row decide conditions exactly as the conditions themselves do."""

from __future__ import annotations

from random import Random

import pytest

from undersong.models import Row
from undersong.patterns.incremental.predicate_index import PredicateIndex, indicators_alone
from undersong.patterns.language.expressions import parse
from undersong.patterns.language.fields import Context, row_leaf
from undersong.patterns.language.logic import compile_tree

PARTS = (
    "manipulation > 0.5",
    "manipulation <= 0.5",
    "goodwill >= 0.3",
    "0.7 > goodwill",
    "goodwill is null",
    "1 / goodwill > 2",
    "manipulation + goodwill > 0.8",
    "tier in ('deep', 'focused')",
    "tier = 'standard'",
    "directed",
    "flag('apology')",
    "signal('pace') > 1",
    "ethos < 0.5",
    "replies >= 1",
)


def some_condition(chance: Random, depth: int = 0) -> str:
    """A condition with ``and``, ``or`` and ``not`` at any depth."""
    kind = chance.random()
    if depth > 3 or kind < 0.35:
        return chance.choice(PARTS)
    if kind < 0.55:
        return f"not ({some_condition(chance, depth + 1)})"
    joined = " and " if kind < 0.8 else " or "
    return f"({joined.join(some_condition(chance, depth + 1) for _ in range(chance.randint(2, 3)))})"


def some_row(chance: Random) -> Row:
    """A row in which anything may be missing, with scores on the thresholds and between them."""
    scores = {name: chance.choice((0.0, 0.3, 0.5, 0.7, 0.9)) for name in ("manipulation", "goodwill")}
    return Row(
        id="m",
        traits=chance.choice((None, {}, scores, scores, {"goodwill": scores["goodwill"]})),
        tier=chance.choice((None, "standard", "deep")),
        target=chance.choice((None, "ben")),
        flags={"apology": 1} if chance.random() < 0.4 else {},
        signals={"pace": chance.choice((0.5, 2.0))} if chance.random() < 0.6 else {},
    )


def met(facts: PredicateIndex, text: str, row: Row) -> bool:
    """Whether a condition holds as its demand on facts says."""
    demand, context = facts.to_cnf(parse(text)), Context(row, {})
    met_facts = facts.true_bits(context)
    return (
        met_facts & demand.every == demand.every
        and all(met_facts & each for each in demand.some)
        and all(holds(context) is True for holds in demand.rest)
    )


def test_random_conditions_are_met_exactly_where_they_are_true() -> None:
    chance, facts, true_count = Random(4), PredicateIndex(), 0
    for _ in range(400):
        text = some_condition(chance)
        whole = compile_tree(parse(text), row_leaf)
        for row in [some_row(chance) for _ in range(12)]:
            wanted = whole(Context(row, {})) is True
            assert met(facts, text, row) == wanted, (text, row)
            true_count += wanted
    assert 1_000 < true_count < 3_800


@pytest.mark.parametrize(
    ("text", "scores", "wanted"),
    [
        ("manipulation > 0.5", {"manipulation": 0.5}, False),
        ("manipulation >= 0.5", {"manipulation": 0.5}, True),
        ("not manipulation > 0.5", {"manipulation": 0.5}, True),
        ("not manipulation > 0.5", {}, False),
        ("not (manipulation > 0.5 and goodwill < 0.5)", {"goodwill": 0.9}, True),
        ("not (manipulation > 0.5 and goodwill < 0.5)", {"goodwill": 0.1}, False),
    ],
)
def test_a_missing_score_makes_neither_a_part_nor_its_opposite_true(
    text: str, scores: dict[str, float], wanted: bool
) -> None:
    assert met(PredicateIndex(), text, Row(id="m", traits=scores)) is wanted


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "=", "!="])
def test_what_lies_between_two_marks_has_the_same_facts(sign: str) -> None:
    facts = PredicateIndex()
    texts = [f"manipulation {sign} {mark}" for mark in (0.3, 0.5, 0.7)] + [f"not 0.5 {sign} manipulation"]
    for text in texts:
        facts.to_cnf(parse(text))
    for score in [*(number / 10 for number in range(11)), 0.3 - 1e-16, 0.5 + 1e-15, 0.6999999999999999]:
        row = Row(id="m", traits={"manipulation": score})
        for text in texts:
            assert met(facts, text, row) is (compile_tree(parse(text), row_leaf)(Context(row, {})) is True)


def test_options_of_several_facts_are_facts() -> None:
    demand = PredicateIndex().to_cnf(parse("tier = 'deep' or (manipulation > 0.5 and goodwill < 0.5)"))
    assert not demand.rest
    assert len(demand.some) == 2
    long = " or ".join(f"(manipulation > 0.{n} and goodwill < 0.{n} and deception < 0.{n})" for n in range(1, 9))
    assert PredicateIndex().to_cnf(parse(long)).rest, "what would have to be taken apart too often is asked as it is"


def test_more_values_than_are_remembered_change_nothing() -> None:
    facts, text = PredicateIndex(), "manipulation * 2 > 1"
    for number in range(10_000):
        score = number / 9_999
        assert met(facts, text, Row(id="m", traits={"manipulation": score})) is (score > 0.5)


def test_only_conditions_on_indicators_alone_are_told_by_their_indicators() -> None:
    assert indicators_alone(parse("indicator('A') or not indicator('B')")) == {"A", "B"}
    assert indicators_alone(parse("indicator('A') and flag('B')")) == frozenset()
    assert indicators_alone(parse("indicator('A') and goodwill > 0.5")) == frozenset()
