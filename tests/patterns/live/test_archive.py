"""The archive puts rows where ``timelines`` puts them, whatever the order in which they come."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import msgspec
import pytest

from tests.patterns.live import worlds
from undersong.models import TRAITS, Hit, Indicator, Loop, Row, TraitScores
from undersong.patterns.language.fields import FIELDS, has_flag
from undersong.patterns.live.row_log import RowLog
from undersong.patterns.reference.partitions import timelines


def archived_rows(archive: RowLog) -> dict[tuple[str, str | None], list[tuple[str, str, int | None]]]:
    lines = (
        (line, [(row.conversation, row.id, time) for row, time in archive.rows(line)]) for line in archive.timelines
    )
    return {line: rows for line, rows in lines if rows}


@pytest.mark.parametrize(
    "traits",
    [dict.fromkeys(TRAITS), dict.fromkeys(TRAITS, 0.5) | {"accuracy": None}, {"virtue": None, "goodwill": 0.3}, {}],
)
def test_missing_scores_come_out_as_they_went_in(traits: TraitScores) -> None:
    archive, row = RowLog(), Row(id="1", agent="kira", state="scored", traits=traits)
    archive.put(row)
    archive.clear_fresh()
    stored = archive.get("", "1")
    assert stored is not None
    assert stored.traits == traits


@pytest.mark.parametrize("seed", range(60))
def test_order_and_times_are_those_of_the_timelines(seed: int) -> None:
    chance, archive = Random(seed), RowLog()
    rows = worlds.with_earlier_versions(chance, worlds.some_rows(chance, most=12), share=0.5)
    rows = [msgspec.structs.replace(row, time=row.time if chance.random() < 0.5 else None) for row in rows]
    chance.shuffle(rows)
    rows_so_far: list[Row] = []
    for row in rows:
        rows_so_far.append(row)
        archive.put(row)
        if chance.random() < 0.5:
            archive.clear_fresh()
        expected = {
            (line.agent, line.conversation): [(each.row.conversation, each.row.id, each.time) for each in line.entries]
            for line in timelines(rows_so_far)
        }
        assert archived_rows(archive) == expected


def test_a_kept_row_says_all_that_a_rule_can_ask_for() -> None:
    hit = Hit(trait="manipulation", label="urgency", phrase="now", start=0, end=3)
    row = Row(
        id="1", agent="kira", conversation="t", position=4, time=worlds.START + timedelta(hours=1), target="bo",
        role="tool", observed="yes", tier="deep", tier_before="standard", width="message", sampled=True, triage=0.25,
        flags={"deception": 2}, total=3, density=0.5, hits=(hit,), state="scored",
        traits={"virtue": 0.1, "deception": 0.7}, text="now or never",
        indicators=(Indicator(id="MAN-URGENCY", confidence=0.5),), signals={"heat": 0.1}, judge="one",
        sentiment_score=0.1, code_change_delta=0.2, latency_drop=False,
        loops=(Loop(ngram="so it is", count=3, scope="message"),),
    )  # fmt: skip
    archive = RowLog()
    archive.put(row)
    archive.clear_fresh()
    again = archive.get("t", "1")
    assert again is not None
    assert {name: field.read(again) for name, field in FIELDS.items()} == {
        name: field.read(row) for name, field in FIELDS.items()
    }
    assert [has_flag(again, name) for name in ("urgency", "manipulation", "deception", "other")] == [
        has_flag(row, name) for name in ("urgency", "manipulation", "deception", "other")
    ]
    assert (again.id, again.indicators, again.signals, again.text) == (row.id, row.indicators, row.signals, None)


def test_of_a_row_that_is_there_nothing_changes() -> None:
    archive = RowLog()
    row = Row(id="1", agent="kira", state="scored", traits={"virtue": 0.5})
    assert len(archive.put(row)) == 1
    assert archive.put(row) == []
    assert archive.put(msgspec.structs.replace(row, branch="other")) == []
    gone, back = archive.put(msgspec.structs.replace(row, traits={"virtue": 0.6}))
    assert (gone.removed, back.removed, gone.key) == (True, False, back.key)
