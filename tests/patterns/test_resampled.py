"""Many versions of a sequence at once say what one search after another says: shuffles and noisy replicas."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.patterns.rulebox import rule
from tests.patterns.vectorized.worlds import random_rows, random_rule
from undersong.models import TRAITS, Deference, Loop, Row
from undersong.patterns.catalog import load_rules
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.fields import FIELDS, MESSAGE_ATTRIBUTES, MESSAGE_FIELDS
from undersong.patterns.reference.partitions import Partition, partitions, timelines
from undersong.patterns.reference.search import filtered, search_partition
from undersong.patterns.significance.estimate import PermutationStrengths, chance
from undersong.patterns.significance.noise_resampling import noise, survival
from undersong.patterns.significance.permutations import (
    GAVE_UP,
    NOTHING,
    SequencePositions,
    draw_permutations,
    key_of,
)
from undersong.patterns.tools.rule_tests import table
from undersong.patterns.vectorized.exact_sum import NotVectorizable
from undersong.patterns.vectorized.run import MatchArrays

RANDOM = 240


def matching(chosen: PatternRule, rows: list[Row]) -> Iterator[Partition]:
    for timeline in timelines(rows):
        for partition in partitions(filtered(chosen, timeline), chosen.file.partition_by):
            if partition.rows and search_partition(chosen, partition).matches:
                yield partition


def compare(chosen: PatternRule, partition: Partition, draws: int = 12) -> bool:
    """Whether arrays did; what they say must be what the reference says."""
    dealt = draw_permutations(key_of(1, "chance", chosen, partition), 0, draws, len(partition.rows))
    dealt = np.concatenate([np.arange(len(partition.rows))[None, :], dealt])
    table_of_all = PermutationStrengths(chosen, partition)
    at_once = table_of_all.of(dealt)
    suited, table_of_all.at_once = table_of_all.at_once is not None, None
    np.testing.assert_array_equal(at_once, table_of_all.of(dealt), err_msg=repr(chosen.file))
    return suited


@pytest.mark.parametrize("lot", range(6))
def test_shuffles_of_random_rows_match_as_strongly_as_the_reference_says(lot: int) -> None:
    suited = []
    for seed in range(lot * RANDOM // 6, (lot + 1) * RANDOM // 6):
        dice = random.Random(seed)
        chosen, rows = random_rule(dice), random_rows(dice)
        suited += [compare(chosen, partition) for partition in matching(chosen, rows)]
    assert sum(suited) > 10


@pytest.mark.parametrize("chosen", load_rules(), ids=lambda chosen: chosen.id)
def test_shuffles_under_each_shipped_rule_match_as_strongly_as_the_reference_says(chosen: PatternRule) -> None:
    hits = chosen.file.cases.hits
    suited = [compare(chosen, each) for case in hits for each in matching(chosen, table(case.rows, case.base))]
    assert all(suited)
    assert suited


def test_replicas_of_random_rows_match_as_the_reference_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def survivals() -> list[object]:
        results: list[object] = []
        for seed in range(RANDOM // 3):
            dice = random.Random(seed)
            chosen, rows = random_rule(dice), random_rows(dice)
            for partition in matching(chosen, rows):
                matches = search_partition(chosen, partition).matches
                ids = [[entry.row.id for _, entry in match.named] for match in matches]
                results.append(survival(chosen, partition, ids, seed=seed, replicas=8, table=noise()))
        return results

    at_once = survivals()
    asked = []

    def unsuited(*_: object) -> None:
        asked.append(1)
        raise NotVectorizable("arrays do not do")

    monkeypatch.setattr(SequencePositions, "find", unsuited)
    assert survivals() == at_once
    assert len(asked) == len(at_once) > 10


PAIR = rule("LOW HIGH", {"partition_by": ["agent", "target"]}, LOW="manipulation < 0.3", HIGH="manipulation > 0.5")
TWO = """
    id who     day manipulation
    1  kira>bo 0   .9
    2  kira    1   ?
    3  kira>bo 2   .1
    4  kira>al 3   .1
    5  kira>al 4   .9
"""


def test_a_match_towards_somebody_else_is_no_match_of_this_sequence() -> None:
    for_bo = next(
        each for t in timelines(table(TWO)) for each in partitions(t, ["agent", "target"]) if each.target == "bo"
    )
    strengths = PermutationStrengths(PAIR, for_bo).of(np.array([[0, 1], [1, 0]]))
    assert strengths.tolist() == [NOTHING, 1.0]
    assert chance(PAIR, for_bo, seed=0, draws=19) is None


def test_unread_rows_stay_between_the_shuffled_ones() -> None:
    gapless = rule("LOW HIGH", {"max_unread": 0}, LOW="manipulation < 0.3", HIGH="manipulation > 0.5")
    (partition,) = partitions(
        timelines(table("id who day manipulation\n1 k 0 .9\n2 k 1 ?\n3 k 2 .1\n4 k 3 .4\n"))[0], ["agent"]
    )
    orders_of_three = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    assert PermutationStrengths(gapless, partition).of(orders_of_three).tolist() == [
        NOTHING,
        NOTHING,
        1.0,
    ]


def test_a_shuffle_whose_search_gives_up_counts_as_strong(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = rule("LOW HIGH", LOW="manipulation < 0.3", HIGH="manipulation > 0.5")
    (partition,) = partitions(timelines(table(TWO))[0], ["agent"])
    find = SequencePositions.find

    def giving_up(self: SequencePositions, *arguments: Any) -> MatchArrays:
        return find(self, *arguments)._replace(gave_up=np.array([1]))

    monkeypatch.setattr(SequencePositions, "find", giving_up)
    strengths = PermutationStrengths(plain, partition).of(np.array([[0, 1, 2, 3], [0, 1, 2, 3], [0, 3, 1, 2]]))
    assert strengths.tolist() == [1.0, GAVE_UP, NOTHING]


def test_what_the_scan_called_a_message_moves_with_its_words() -> None:
    rows = table("id who day manipulation\n1 kira 0 .1\n2 kira 1 .2\n3 kira 2 .3\n")
    rows = [msgspec.structs.replace(row, labels=("praise",) if row.id == "1" else ()) for row in rows]
    praised = rule("PRAISE OTHER", PRAISE='flag("praise")', OTHER='not flag("praise")')
    (partition,) = partitions(timelines(rows)[0], ["agent"])
    every = np.array([[0, 1, 2], [1, 0, 2], [1, 2, 0]])
    table_of_all = PermutationStrengths(praised, partition)
    assert (table_of_all.of(every) > NOTHING).tolist() == [True, True, False]
    table_of_all.at_once = None
    assert (table_of_all.of(every) > NOTHING).tolist() == [True, True, False]


FULL = Row(
    id="1", conversation="t", position=3, agent="kira", target="bo", role="user", observed="yes", tier="deep",
    tier_before="focused", width="message", sampled=True, triage=0.5, flags={"urgency": 1}, total=2, density=0.3,
    loops=(Loop(ngram="so", count=2, scope="reply"),),
    deference=Deference(apologies=1, corrections=2, ratio=0.5, high=False),
    sentiment_score=0.1, code_change_delta=0.2, latency_drop=True, state="scored",
    traits=dict.fromkeys(TRAITS, 0.4), judge="one",
)  # fmt: skip


def test_a_field_is_of_the_words_or_of_the_place_as_what_it_is_read_from_is() -> None:
    empty = Row(id="2", state="unread", traits=None)
    words = msgspec.structs.replace(empty, **{name: getattr(FULL, name) for name in MESSAGE_ATTRIBUTES})
    for name, field in FIELDS.items():
        assert field.read(FULL) != field.read(empty), f"{name} is the same in both"
        assert field.read(words) == field.read(FULL if name in MESSAGE_FIELDS else empty), name
