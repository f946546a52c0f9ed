"""Conditions on single rows, answered block by block: the same as for all rows at once."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.patterns.vectorized.worlds import plain_result, random_rows, random_rule
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.reference.search import search as reference
from undersong.patterns.vectorized import environments
from undersong.patterns.vectorized.environments import TableVectors, in_chunks
from undersong.patterns.vectorized.row_source import search, table_of
from undersong.patterns.vectorized.rule_plan import plan
from undersong.patterns.vectorized.table import RowTable
from undersong.patterns.vectorized.vector_logic import Vectors


@pytest.mark.parametrize("block", [1, 7, 10_000])
def test_blocks_of_any_size_give_the_same_bits(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "BLOCK", block)
    for seed in range(40):
        dice = random.Random(seed)
        rule, source = random_rule(dice), table_of(timelines(random_rows(dice))).source
        asked = tuple(condition.row for condition in plan(rule).conditions)
        whole, blockwise = Vectors(source).bits(asked), in_chunks(Vectors(source), "bits", asked, source.size)
        assert np.shape(blockwise) == np.shape(whole)
        assert (blockwise == whole).all()


def test_what_many_tables_share_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "BLOCK", 3)
    table = table_of(timelines(random_rows(random.Random(5))))
    source = Vectors(table.source)
    asked = tuple(condition.row for condition in plan(random_rule(random.Random(5))).conditions)
    again = RowTable(table.source, np.arange(table.source.size), table.bounds, table.times, table.timed, table.read)
    first = TableVectors(again, source).bits(asked)
    shared = source.once("bits", asked, lambda _: pytest.fail("it is worked out anew"))
    assert (TableVectors(again, source).bits(asked) == first).all()
    assert (shared == first).all()


def test_rules_find_the_same_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "BLOCK", 3)
    for seed in range(7000, 7060):
        dice = random.Random(seed)
        rule, row_timelines = random_rule(dice), timelines(random_rows(dice))
        assert plain_result(search(rule, row_timelines)) == plain_result(reference(rule, row_timelines)), f"seed {seed}"
