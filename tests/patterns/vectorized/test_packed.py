"""Packed rows give what row objects give: the same fields, the same findings, the same outcomes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np
import pytest

from tests.patterns.vectorized.worlds import random_rule, with_missing
from undersong.models import DIMENSIONS, TRAITS, Deference, Loop, Row
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import PackedSearch, detect
from undersong.patterns.language.expressions import Call, Field, Text
from undersong.patterns.language.fields import FIELDS
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.significance.necessary_conditions import possible_pairs
from undersong.patterns.vectorized.packed import StaleError, packed_source, readable
from undersong.patterns.vectorized.row_source import RowSource
from undersong.rows.binary import pack
from undersong.rows.corpus_scales import absolute_rows

DAY = datetime(2026, 1, 1, tzinfo=UTC)
LITERALS = load_rules(names=["love_bombing_literal", "con_game_literal"])
AGENTS = ("bo", "kira", "zoë")
HALF_MISSING = ("accuracy", "reasoning", "fabrication", "broken_logic", "virtue")


def world(seed: int, count: int) -> dict[str, list[Row]]:
    """Histories as a store holds them: in order, timed, of several conversations, with holes, ranks and branches."""
    dice = random.Random(seed)
    rows = [_row(dice, place) for place in range(count)]
    rows.sort(key=lambda row: (row.time, row.position, row.id, row.conversation))
    return {agent: [row for row in rows if row.agent == agent] for agent in AGENTS}


def _row(dice: random.Random, place: int) -> Row:
    read = dice.random() < 0.85
    rates = {name: 0.6 if name in HALF_MISSING else 0.03 for name in TRAITS}
    traits = with_missing(dice, {name: round(dice.random(), dice.choice((1, 2, 3))) for name in TRAITS}, rates)
    return Row(
        id=f"m{place:04}", agent=dice.choice(AGENTS), target=dice.choice((None, None, "al", "bo")), position=place % 7,
        conversation=dice.choice("tuv"), time=DAY + timedelta(hours=dice.randrange(count_hours(place))),
        role=dice.choice(("agent", "assistant")), tier=dice.choice(("standard", "deep", None)),
        tier_before=dice.choice(("standard", "deep")), observed=dice.choice(("yes", "no", "unknown")),
        state="scored" if read else "unread", traits=traits if read else None, sampled=dice.random() < 0.3,
        latency_drop=dice.choice((None, True, False)), branch="b" if dice.random() < 0.05 else None,
        flags=dice.choice(({}, {"apology": 1}, {"agreement": 2})), scale="rank" if dice.random() < 0.05 else None,
        loops=(Loop(ngram="a", count=2, scope=dice.choice(("reply", "turns"))),) * dice.choice((0, 0, 2)),
        deference=dice.choice((None, Deference(apologies=dice.randrange(9), corrections=1, ratio=1.0, high=False))),
    )  # fmt: skip


def count_hours(place: int) -> int:
    return place * 6 + 2


def searched(histories: dict[str, list[Row]]) -> PackedSearch:
    cells = [b"".join(pack(row) or b"" for row in rows) for rows in histories.values()]

    def load(agent: str, places: Sequence[int]) -> list[Row]:
        return [histories[agent][place] for place in places if place < len(histories[agent])]

    return PackedSearch(list(histories), cells, load)


def test_every_field_of_packed_rows_is_that_of_the_rows() -> None:
    histories = world(1, 300)
    levelled_rows = absolute_rows(row for rows in histories.values() for row in rows if row.branch is None)
    source = packed_source(list(histories), [b"".join(pack(r) or b"" for r in rows) for rows in histories.values()])
    objects = RowSource(levelled_rows)
    for name in (*TRAITS, *DIMENSIONS, "position", "loops", "replies", "apologies", "corrections"):
        assert np.array_equal(source.number(Field(name)), objects.number(Field(name)), equal_nan=True), name
    for name in ("sampled", "latency_drop", "directed"):
        for wanted in (True, False):
            assert (source.truth(Field(name), wanted) == objects.truth(Field(name), wanted)).all(), name
    for name in ("apology", "manipulation"):
        flag = Call("flag", (Text(name),))
        assert (source.truth(flag, True) == objects.truth(flag, True)).all()
    for name in ("tier", "tier_before", "width", "observed", "state", "role", "agent", "target", "conversation"):
        texts_by_code = {
            code: text
            for text in [FIELDS[name].read(row) for row in levelled_rows]
            if text
            for code in [source.codes[str(text)]]
        }
        assert [texts_by_code.get(code) for code in source.text(Field(name)).tolist()] == [
            FIELDS[name].read(r) for r in levelled_rows
        ]


@pytest.mark.parametrize("seed", range(6))
def test_packed_rows_give_the_findings_and_outcomes_of_the_rows(seed: int) -> None:
    histories, dice = world(seed, 700), random.Random(seed)
    rows = [row for each in histories.values() for row in each]
    rules = [*load_rules(), *(random_rule(dice) for _ in range(25))]
    chosen = [rule for rule in rules if readable(rule)]
    assert len(chosen) > 12
    detection, search = detect(rows, chosen), searched(histories)
    assert search.detect(chosen) == detection
    assert len(detection.findings) > 10
    row_timelines = timelines(absolute_rows(rows))
    assert search.pairs(chosen) == sum(possible_pairs(rule, row_timelines) for rule in chosen)


def test_rules_that_ask_for_more_than_cells_hold_are_told_apart() -> None:
    names = {rule.id for rule in load_rules() if not readable(rule)}
    assert {"classic_con_sequence", "dependency_loop"} <= names
    assert names.isdisjoint({"love_bombing", "death_spiral", "deference_collapse", "alignment_faking"})


@pytest.mark.parametrize(
    "change",
    [
        {"time": None},
        {"traits": {"virtue": 0.12345}},
        {"position": 1 << 40},
        {"loops": (Loop(ngram="a", count=2, scope="reply"),) * 300},
    ],
)
def test_a_row_that_does_not_fit_has_no_cells(change: dict[str, object]) -> None:
    row = world(1, 9)["kira"]
    assert pack(row[0]) is not None
    assert pack(msgspec.structs.replace(row[0], **change)) is None


def test_rows_that_changed_after_they_were_packed_are_noticed() -> None:
    histories = world(2, 600)
    search = searched(histories)
    first = searched(histories).detect(LITERALS).findings[0]
    histories[first.agent].pop(0)
    with pytest.raises(StaleError):
        search.detect(LITERALS)
