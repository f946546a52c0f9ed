"""Null bands: a signal stands out only where other phrases do not land by the same statistic."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.conftest import Undersong
from undersong.models import Row, State
from undersong.rows.corpus_scales import (
    BAND,
    STEPS,
    NullBandCounter,
    null_bands_of,
    signals_above_null,
    table_name,
    with_band,
)


def row(number: int, state: State = "scored", **signals: float) -> Row:
    return Row(id=str(number), position=number, agent="kira", state=state, signals=signals)


def bands(rows: list[Row]) -> NullBandCounter:
    result = NullBandCounter()
    for entry in rows:
        result.add(entry, frozenset({"calm", "isolation", "pressure", "stance"}))
    return result


def test_a_signal_that_is_higher_than_the_others_stands_out() -> None:
    rows = [row(n, pressure=0.1, isolation=0.12, calm=0.8 if n % 2 else 0.1) for n in range(40)]
    by_signal = bands(rows).bands()
    assert (by_signal["calm"].low, by_signal["calm"].high) == (0.1, 0.12)
    assert (by_signal["calm"].over, by_signal["calm"].messages, by_signal["calm"].highest) == (20, 40, 0.8)
    assert signals_above_null(by_signal) == ["calm"]


def test_signals_that_are_all_high_do_not_stand_out() -> None:
    rows = [row(n, pressure=0.8, isolation=0.8, calm=0.8) for n in range(20)]
    assert signals_above_null(bands(rows).bands()) == []


def test_unread_messages_and_other_signals_do_not_count() -> None:
    rows = [row(0, pressure=0.2, calm=0.1), row(1, "unread", pressure=0.9, calm=0.9), row(2, other=0.9)]
    by_signal = bands(rows).bands()
    assert set(by_signal) == {"pressure", "calm"}
    assert by_signal["pressure"].messages == 1


def test_one_signal_alone_has_no_band() -> None:
    assert bands([row(0, pressure=0.4)]).bands() == {}


@pytest.mark.parametrize("count", [1, 2, 3, 19, 20, 21, 40, 200])
def test_a_band_is_where_the_other_signals_lie(count: int) -> None:
    """Counted again one by one: the least score that BAND's share of the other signal's scores does not exceed."""
    dice = random.Random(count)
    scores = [(dice.randint(0, STEPS), dice.randint(0, STEPS)) for _ in range(count)]
    rows = [row(n, calm=calm / STEPS, pressure=other / STEPS) for n, (calm, other) in enumerate(scores)]
    band, others = bands(rows).bands()["calm"], sorted(other for _, other in scores)
    low, high = (
        next(s for s in range(STEPS + 1) if sum(o <= s for o in others) >= share * len(others)) / STEPS
        for share in BAND
    )
    assert (band.low, band.high) == (low, high)
    assert band.over == sum(calm / STEPS > high for calm, _ in scores)


def test_a_row_names_the_table_of_its_bands_and_an_unread_one_names_none() -> None:
    rows = [row(0, pressure=0.2, calm=0.1), row(1, "unread")]
    name = table_name(null_bands_of(rows, {"pressure", "calm"}))
    assert name is not None
    assert [with_band(each, name).bands for each in rows] == [name, None]
    assert with_band(with_band(rows[0], name), None) == rows[0]
    assert table_name({}) is None


def test_every_row_of_a_report_finds_its_band_in_the_case(undersong: Undersong) -> None:
    assert undersong("audit", "samples").code == 0
    case = json.loads(Path("undersong-report/case.json").read_bytes())
    lines = Path("undersong-report/evaluations.jsonl").read_bytes().splitlines()
    assert {json.loads(line)["bands"] for line in lines} == {case["bands"]}
    assert set(case["signals"]) == {name for line in lines for name in json.loads(line)["signals"]} - HEADS
    assert undersong("evaluate", "samples", "--out", "rows.jsonl").code == 0
    beside = json.loads(Path("rows.jsonl.bands.json").read_bytes())
    assert (beside["bands"], beside["signals"]) == (case["bands"], case["signals"])
    assert {json.loads(line)["bands"] for line in Path("rows.jsonl").read_bytes().splitlines()} == {case["bands"]}


HEADS = {"concedes_opinion", "concedes_prejudice", "manipulative_wording"}  # no phrases: nothing to hold them against


@pytest.mark.parametrize(("name", "old", "new"), [
    ("evaluations.jsonl", b'"pressure":0.', b'"pressure":0.9'),
    ("evaluations.jsonl", b'"bands":"', b'"bands":"0'),
])  # fmt: skip
def test_a_forged_signal_no_longer_agrees_with_the_bands(
    undersong: Undersong, name: str, old: bytes, new: bytes
) -> None:
    from tests.report.test_rerun import forge

    assert undersong("audit", "samples").code == 0
    forge(Path("undersong-report"), name, lambda data: data.replace(old, new, 1))
    ran = undersong("verify", "undersong-report")
    assert ran.code != 0
    assert "bands" in ran.out + ran.err
