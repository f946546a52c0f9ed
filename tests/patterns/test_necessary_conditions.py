"""q: Benjamini and Hochberg against a slow reference, and which pairs count as tests."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.patterns.rulebox import rule
from tests.patterns.vectorized.worlds import random_rows, random_rule
from undersong.patterns.catalog import all_rules
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.reference.partitions import Partition, Timeline, partitions, timelines
from undersong.patterns.reference.search import filtered, search_partition
from undersong.patterns.significance.estimate import false_discovery
from undersong.patterns.significance.necessary_conditions import possible_pairs
from undersong.patterns.significance.necessary_conditions import possible_pairs_in_table as at_once
from undersong.patterns.significance.permutations import draw_permutations, permuted, scope
from undersong.patterns.tools.rule_tests import table
from undersong.patterns.vectorized.row_source import table_of
from undersong.patterns.vectorized.run import TableSearch
from undersong.patterns.vectorized.vector_logic import Vectors

VALUES = st.lists(st.sampled_from([0.001, 0.002, 0.01, 0.04, 0.04, 0.3, 1.0]), max_size=12)


def slow(values: list[float], family: int) -> list[float]:
    """The least level at which the step-up procedure rejects each value, tried at every level that can matter."""
    every = [*values, *[1.0] * (family - len(values))]
    levels = sorted({1.0, *(value * family / rank for value in every for rank in range(1, family + 1))})

    def rejected(level: float) -> float:
        ranked = sorted(every)
        passing = [v for rank, v in enumerate(ranked, 1) if v * family / rank <= level]
        return max(passing, default=-1.0)

    return [min(1.0, next(level for level in levels if rejected(level) >= value)) for value in values]


@given(values=VALUES, more=st.integers(0, 8))
def test_q_is_the_least_level_at_which_the_procedure_rejects(values: list[float], more: int) -> None:
    family = len(values) + more
    assert false_discovery(values, family) == pytest.approx(slow(values, family))


def test_pairs_without_a_match_count_as_one() -> None:
    assert false_discovery([0.01, 0.02], 2) == [0.02, 0.02]
    assert false_discovery([0.01, 0.02], 10) == pytest.approx([0.1, 0.1])
    assert false_discovery([0.5, 0.001], 100) == pytest.approx([1.0, 0.1])
    assert false_discovery([], 5) == []
    with pytest.raises(ValueError, match="3 p-values for 2 tests"):
        false_discovery([0.1, 0.1, 0.1], 2)


def test_acting_on_q_keeps_the_false_share_where_nothing_is_true() -> None:
    dice, runs = random.Random(4), 1500
    false = sum(min(false_discovery([dice.random() for _ in range(20)], 20)) <= 0.1 for _ in range(runs))
    assert false / runs <= 0.1 + 3 * (0.1 * 0.9 / runs) ** 0.5


ROWS = """
    who     day manipulation
    kira>bo 0   .5
    kira    1   .5
    kira    2   .5
    kira>bo 3   ?
    kira>al 4   ?
    kira>cy 5   .5
    dan>bo  6   .5
"""


@pytest.mark.parametrize(
    ("pattern", "by", "count"),
    [
        ("A", ("agent", "target"), 4),  # kira in public, to bo, to cy; dan to bo; nothing of al was read
        ("A A", ("agent", "target"), 3),  # dan wrote once
        ("A{3}", ("agent", "target"), 2),  # two public rows and one to bo, or to cy
        ("A{4}", ("agent", "target"), 0),
        ("A{4}", ("agent",), 1),
        ("A", ("agent",), 2),
    ],
)
def test_a_pair_is_a_test_where_the_rule_could_match(pattern: str, by: tuple[str, ...], count: int) -> None:
    probe = rule(pattern, {"partition_by": list(by)}, A="manipulation > 0.4")
    assert possible_pairs(probe, timelines(table(ROWS))) == count


KINDS = """
    who     day tier     manipulation compassion
    kira    0   deep     .9           .1
    kira    1   deep     .9           .1
    kira>bo 2   standard .1           .1
    dan>bo  3   deep     .9           .9
"""


@pytest.mark.parametrize(
    ("pattern", "conditions", "count"),
    [
        ("A", {"A": "manipulation > 0.8"}, 3),
        ("A B", {"A": "manipulation > 0.8", "B": "manipulation < 0.2"}, 1),  # only to bo is there any of B
        ("A{2} B", {"A": "manipulation > 0.8", "B": "manipulation < 0.2"}, 1),
        ("A{3}", {"A": "manipulation > 0.8"}, 0),
        ("A", {"A": 'manipulation < 0.2 and tier = "deep"'}, 1),  # the words of one day at the place of another
        ("A B{2}", {"A": 'tier = "standard"', "B": "true"}, 1),
        ("A | B B", {"A": "compassion > 0.8", "B": "compassion < 0.8"}, 3),
        ("A", {"A": "bad"}, 3),  # a column of one row is what it stands for
        ("A", {"A": "bad and usual > 0.5"}, 3),  # what other rows decide may hold in some order
        ("A", {"A": "manipulation > 0.8 and compassion > 0.8 or day < 1"}, 3),
    ],
)
def test_a_pair_without_the_rows_that_every_match_needs_is_no_test(
    pattern: str, conditions: dict[str, str], count: int
) -> None:
    columns = {"bad": "manipulation > 0.8", "usual": "mean(manipulation, so far)"}
    probe = rule(pattern, {"partition_by": ["agent", "target"], "columns": columns}, **conditions)
    row_timelines = timelines(table(KINDS))
    assert possible_pairs(probe, row_timelines) == count
    assert at_once(probe, TableSearch(table_of(row_timelines), Vectors(table_of(row_timelines).source))) == count


@pytest.mark.parametrize(
    ("having", "count"),
    [
        ("count(A) >= 3", 0),
        ("count(MATCH) > 2", 0),
        ("count(MATCH) > 1", 2),  # dan wrote once
        ("size >= 3", 0),  # a measure is what it stands for
        ("count(A.compassion > 0.5) >= 1", 1),  # dan's message is both
        ("count(A.compassion > 0.5) > 1", 0),
        ("last(A.compassion) > 0.5", 1),
        ("last(A.compassion) >= 0.95", 0),
        ("first(A.manipulation) < 0.8", 0),  # no A is that low
        ('first(A.tier) = "standard"', 1),  # bad words may stand where kira wrote to bo
        ("mean(MATCH.compassion) > 0.5", 1),
        ("mean(MATCH.compassion) <= 0.5", 2),
        ("max(A.bad_and_kind) > 0.5", 1),  # and so is a column
        ("min(A.compassion) < 0.05", 0),
        ("min(A.compassion) > 0.5", 1),  # it is the value of one of them
        ("max(A.compassion) < 0.5", 2),
        ("mean(A.usual) > 2", 3),  # what other rows decide is not asked
        ("count(ANY.compassion > 0.5) >= 1", 1),
        ("count(A.compassion > 0.5) >= 0", 3),
        ("last(A.compassion) > 0.5 or count(A) >= 1", 3),
        ("count(A) + count(ANY) >= 4", 3),  # any row may be passed over
        ("count(A) + count(A.compassion > 0.5) >= 2", 3),  # dan's is both
        ("count(A) + count(MATCH) >= 4", 2),
        ("least(count(A.compassion > 0.5), 1) + least(count(A.compassion < 0.5), 1) >= 2", 0),  # nobody wrote both
        ("least(count(A.compassion > 0.5), 1) + least(count(A.compassion < 0.5), 1) > 0", 3),
        ("least(1, count(A.compassion > 0.5)) + least(count(A), 1) + least(count(A.compassion < 0), 1) >= 2", 1),
        ("least(count(A.compassion > 0.5), 2) + least(count(A), 1) >= 3", 3),  # more than once each is not understood
        ("0.5 < last(A.compassion)", 3),  # only the limit at the right is understood
    ],
)
def test_a_pair_without_the_rows_that_having_asks_for_is_no_test(having: str, count: int) -> None:
    columns = {"bad_and_kind": "least(manipulation, compassion)", "usual": "mean(manipulation, so far)"}
    keys = {"partition_by": ["agent", "target"], "columns": columns, "having": [having]}
    keys["measures"] = {"size": "count(MATCH)", "strength": "1"}
    probe = rule("A+", keys, A="manipulation > 0.8")
    row_timelines = timelines(table(KINDS))
    assert possible_pairs(probe, row_timelines) == count
    assert at_once(probe, TableSearch(table_of(row_timelines), Vectors(table_of(row_timelines).source))) == count


@pytest.mark.parametrize("chosen", all_rules(), ids=lambda chosen: chosen.id)
def test_where_a_shipped_rule_finds_something_there_is_a_test(chosen: PatternRule) -> None:
    for case in chosen.file.cases.hits:
        for timeline in timelines(table(case.rows, case.base)):
            for partition in partitions(filtered(chosen, timeline), chosen.file.partition_by):
                if partition.rows and search_partition(chosen, partition).matches:
                    assert possible_pairs(chosen, [alone(partition)]), case.name


LIMITS = ("> 0.3", ">= 0.5", "< 0.4", "<= 0.6", "> 0.75")


@pytest.mark.parametrize("seed", range(6))
def test_where_having_makes_no_test_there_is_no_match(seed: int) -> None:
    dice, left_out, tested = random.Random(seed), 0, 0
    for _ in range(60):
        rows = random_rows(dice)
        variable, trait = dice.choice(("A", "B", "MATCH", "ANY")), dice.choice(("manipulation", "compassion"))
        value = f"{dice.choice(('first', 'last', 'mean', 'max', 'min'))}({variable}.{trait}) {dice.choice(LIMITS)}"
        counted = f"count({variable}.{trait} {dice.choice(LIMITS)}) {dice.choice(('>= 1', '> 1', '>= 3'))}"
        kinds = [
            f"least(count({v}.{t} {dice.choice(LIMITS)}), 1)" for v in "AB" for t in ("manipulation", "compassion")
        ]
        several = f"{' + '.join(kinds)} >= {dice.choice((2, 3, 4))}"
        both = f"count(A.{trait} > 0.3) + count({variable}) + count(B) {dice.choice(('>= 3', '> 3', '>= 5'))}"
        keys = {"having": dice.sample([value, counted, several, both], 1), "partition_by": ["agent", "target"]}
        chosen = rule("A ANY{0,2}? (A | B){1,3}", keys, A="manipulation > 0.4", B="compassion > 0.5")
        for timeline in timelines(rows):
            for partition in partitions(timeline, ["agent", "target"]):
                has_match = bool(partition.rows and search_partition(chosen, partition).matches)
                tests = possible_pairs(chosen, [alone(partition)])
                assert tests or not has_match, chosen.file.having
                tested, left_out = tested + tests, left_out + (not tests)
    assert tested > 30
    assert left_out > 30


@pytest.mark.parametrize("seed", range(40))
def test_what_is_no_test_has_no_match_in_any_shuffle(seed: int) -> None:
    dice = random.Random(seed)
    chosen, rows = random_rule(dice), random_rows(dice)
    for timeline in timelines(rows):
        for partition in partitions(filtered(chosen, timeline), chosen.file.partition_by):
            scoped = scope(chosen, partition)
            if not partition.rows or possible_pairs(chosen, [alone(partition)]):
                continue
            for order in draw_permutations(b"none", 0, 6, len(scoped.rows)).tolist():
                assert not search_partition(chosen, permuted(scoped, order)).matches


def alone(partition: Partition) -> Timeline:
    """A timeline of this sequence alone, at the same places."""
    return partition.timeline._replace(entries=partition.rows)


def test_rows_that_the_rule_leaves_out_make_no_test() -> None:
    probe = rule("A", {"where": "directed"}, A="manipulation > 0.9")
    assert possible_pairs(probe, timelines(table("who manipulation\nkira .5\n"))) == 0
