"""The columns of the benchmark give what rows give, and number their texts in alphabetical order."""

from __future__ import annotations

import gc
import random
import sys
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.patterns.vectorized.test_engine import busy
from undersong.models import TRAITS, Row
from undersong.patterns.catalog import load_rules
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.vectorized.layout import RowTable
from undersong.patterns.vectorized.row_source import TimelineSearch
from undersong.patterns.vectorized.run import TableSearch
from undersong.patterns.vectorized.vector_logic import Vectors

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))
from columns import Columns, ColumnSource, Encoded, in_columns, numbered, pieces, table_of_columns

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def test_texts_of_all_lists_are_numbered_in_order_and_each_list_knows_its_own() -> None:
    agents, tiers = ["kira", "bo", "al"], ["deep", "bo", "ärger", ""]
    names, own = numbered([agents, tiers, agents])
    assert list(names) == ["", "al", "bo", "deep", "kira", "ärger"]
    assert [part.tolist() for part in own] == [[4, 2, 1, -1], [3, 2, 5, 0, -1], [4, 2, 1, -1]]
    assert {text: names[text] for text in names} == {text: place for place, text in enumerate(names)}


def test_a_text_that_stands_twice_in_a_list_has_one_number() -> None:
    names, own = numbered([["b", "a", "b"]])
    assert (list(names), own[0].tolist()) == (["a", "b"], [1, 0, 1, -1])


@pytest.mark.parametrize("unknown", ["", "a ", "zoe"])
def test_a_text_of_no_list_has_no_number(unknown: str) -> None:
    names, _ = numbered([["a", "kira"], []])
    assert unknown not in names
    assert names.get(unknown, -2) == -2


def test_lists_without_texts_number_nothing() -> None:
    names, own = numbered([[], ()])
    assert len(names) == 0
    assert [part.tolist() for part in own] == [[-1], [-1]]


@pytest.mark.parametrize(("size", "own"), [(100, True), (100, False), (1_000, True)])
def test_columns_give_the_rows_findings_by_their_places(size: int, own: bool) -> None:
    dice = random.Random(7)
    rows = [
        Row(
            id=f"m{i:03}", agent=dice.choice(("kira", "bo")), target=dice.choice((None, "al", "cy")), position=i,
            time=DAY + timedelta(hours=i), tier="deep", state="scored" if dice.random() < 0.9 else "unread",
            traits={name: round(dice.random(), 2) for name in TRAITS},
        )
        for i in range(300)
    ]  # fmt: skip
    rows = [row if row.state == "scored" else msgspec.structs.replace(row, traits=None) for row in rows]
    columns = _columns(rows)
    searches = TimelineSearch(timelines(rows), few=0)
    for chosen in load_rules(names=("love_bombing", "darvo", "gaslight_isolation", "darvo_literal")):
        parts = [TableSearch(piece, Vectors(piece.source)).find(chosen) for piece in pieces(columns, size, own=own)]
        ids = [rows[k].id for part in parts for k in in_columns(part.table, part.rows).tolist()]
        expected = [entry.row.id for match in searches.search(chosen).matches for _, entry in match.stages]
        assert ids == expected
        assert {"times" in vars(part.table) for part in parts} == {chosen.within is not None}  # only where asked for


@pytest.mark.parametrize("again", [False, True])
def test_many_numbers_come_into_order_as_one_does(again: bool) -> None:
    dice = np.random.default_rng(3)
    index = dice.permutation(400_000)[:300_000]
    if again:  # as in shuffles, where one row stands in many versions
        index[dice.integers(0, 300_000, 100_000)] = index[7]
    nothing = np.zeros(400_000, dtype=np.int64)
    source = ColumnSource(Columns(times=nothing, read=nothing == 0, texts={}))
    bounds, timed = np.array([0, len(index)]), np.ones(1, dtype=np.bool_)
    large_table = RowTable(source, index, bounds, nothing[index], timed, np.ones(len(index), dtype=np.bool_))
    for kind in (np.float64, np.int32, np.bool_, np.float64, np.float64, np.int32, np.int64):
        values = dice.integers(0, 100, len(nothing)).astype(kind)
        assert (large_table.taken(values) == values[index]).all()


def _columns(rows: list[Row]) -> Columns:
    texts = {
        name: Encoded(
            np.array([-1 if getattr(r, name) is None else known.index(getattr(r, name)) for r in rows]), known
        )
        for name, known in (("agent", ["bo", "kira"]), ("target", ["al", "cy"]), ("tier", ["deep"]))
    }
    return Columns(
        times=np.array([int((row.time - DAY).total_seconds() * 1e6) for row in rows if row.time is not None]),
        read=np.array([row.state == "scored" for row in rows]),
        texts=texts,
        numbers={name: np.array([row.traits[name] if row.traits else np.nan for row in rows]) for name in TRAITS},
    )


def test_the_arrays_of_a_run_go_with_it_and_wait_for_no_collector() -> None:
    rows = [msgspec.structs.replace(row, target=row.target and "al") for row in busy(4_000, 3)]
    rows = [msgspec.structs.replace(row, traits=dict.fromkeys(TRAITS, 0.5) | (row.traits or {})) for row in rows]
    column_table = table_of_columns(_columns(rows))

    def searched() -> int:
        run = TableSearch(column_table, Vectors(column_table.source))
        return sum(run.find(each).size for each in load_rules())

    searched()  # automata are kept
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        searched()
        left, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert left < most / 20
