"""The engine finds what the reference finds: random rules over random rows, both ways of walking."""

from __future__ import annotations

import random

import msgspec
import pytest

from tests.patterns.vectorized.worlds import plain_result, random_rows, random_rule
from undersong.core.batches import batches
from undersong.models import Row
from undersong.patterns.catalog import all_rules
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.reference.search import search
from undersong.patterns.tools.rule_tests import table
from undersong.patterns.vectorized import jit
from undersong.patterns.vectorized.row_source import TimelineSearch
from undersong.patterns.vectorized.row_source import search as swift

CASES = 1000  # bench/exact.py does more


@pytest.mark.parametrize("lot", range(10))
def test_random_rules_find_the_same_as_the_reference(lot: int) -> None:
    for seed in range(lot * CASES // 10, (lot + 1) * CASES // 10):
        dice = random.Random(seed)
        rule, row_timelines = random_rule(dice), timelines(random_rows(dice))
        assert plain_result(swift(rule, row_timelines)) == plain_result(search(rule, row_timelines)), (
            f"seed {seed}: {rule.file}"
        )


def test_where_more_than_half_of_the_scores_are_missing_both_find_the_same() -> None:
    matches = 0
    for seed in range(9000, 9150):
        dice = random.Random(seed)
        rule, row_timelines = random_rule(dice), timelines(random_rows(dice, missing=(0.6,)))
        expected = plain_result(search(rule, row_timelines))
        assert plain_result(swift(rule, row_timelines)) == expected, f"seed {seed}: {rule.file}"
        matches += len(expected[0])
    assert matches > 50


def apart(rows: list[Row], prefix: str) -> list[Row]:
    """The rows under names that no other case has."""
    return [
        msgspec.structs.replace(
            row, id=prefix + row.id, conversation=prefix + row.conversation, agent=prefix + row.agent,
            target=None if row.target is None else prefix + row.target,
        )
        for row in rows
    ]  # fmt: skip


def test_every_shipped_rule_finds_the_same_on_the_cases_of_every_other() -> None:
    """The cases of some rules stand side by side: one search of many histories costs little more than of one."""
    matches = 0
    for rules in batches(all_rules(), 3):
        rows = [
            row
            for rule in rules
            for example in (*rule.file.cases.hits[:2], *rule.file.cases.near_misses[:1])
            for row in apart(table(example.rows, example.base), f"{rule.id}/{example.name}/")
        ]
        row_timelines = timelines(rows)
        searches = TimelineSearch(row_timelines, few=0)
        for other in all_rules():
            expected = plain_result(search(other, row_timelines))
            assert plain_result(searches.search(other)) == expected, (other.id, [rule.id for rule in rules])
            matches += len(expected[0])
    assert matches > 100


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large tables' ways for small ones, as they are (nothing is compiled)."""
    for module in (
        "targets", "strategies", "start_filter", "reach", "layout",
    ):  # fmt: skip
        monkeypatch.setattr(f"undersong.patterns.vectorized.{module}.machine", lambda _size, *_kernels: True)
    monkeypatch.setattr(jit, "machine", lambda _size, *_kernels: False)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("lot", range(4))
def test_the_automaton_and_the_merging_loops_find_the_same(lot: int) -> None:
    for seed in range(5000 + lot * 60, 5000 + (lot + 1) * 60):
        dice = random.Random(seed)
        rule, row_timelines = random_rule(dice), timelines(random_rows(dice))
        assert plain_result(swift(rule, row_timelines)) == plain_result(search(rule, row_timelines)), (
            f"seed {seed}: {rule.file}"
        )
