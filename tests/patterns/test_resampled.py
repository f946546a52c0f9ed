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
from undersong.patterns.language.fields import DOWNSTREAM, FIELDS, MESSAGE_ATTRIBUTES, MESSAGE_FIELDS
from undersong.patterns.reference.downstream import sequences_for
from undersong.patterns.reference.partitions import Partition, partitions, timelines
from undersong.patterns.reference.search import filtered, search_partition
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.estimate import chance, chances
from undersong.patterns.significance.noise_resampling import Survival, noise, survivals
from undersong.patterns.significance.permutations import (
    GAVE_UP,
    NOTHING,
    BatchMatches,
    Permutations,
    SequenceBatch,
    draw_permutations,
    key_of,
    strongest_permuted,
    strongest_searched,
)
from undersong.patterns.tools.rule_tests import table
from undersong.patterns.vectorized.exact_sum import F, NotVectorizable

RANDOM = 240


def matching(chosen: PatternRule, rows: list[Row]) -> Iterator[Partition]:
    for timeline in sequences_for(chosen, timelines(rows)):
        for partition in partitions(filtered(chosen, timeline), chosen.file.partition_by):
            if partition.rows and search_partition(chosen, partition).matches:
                yield partition


def at_once(chosen: PatternRule, partition: Partition, orders: Permutations) -> F:
    return strongest_permuted(SequenceBatch(chosen, [partition]), {0: orders})[0]


def compare(chosen: PatternRule, partition: Partition, draws: int = 12) -> bool:
    """Whether arrays did; what they say must be what the reference says."""
    dealt = draw_permutations(key_of(1, "chance", chosen, partition), 0, draws, len(partition.rows))
    dealt = np.concatenate([np.arange(len(partition.rows))[None, :], dealt])
    try:
        strengths = at_once(chosen, partition, dealt)
    except (NotVectorizable, FloatingPointError):
        return False
    np.testing.assert_array_equal(strengths, strongest_searched(chosen, partition, dealt), err_msg=repr(chosen.file))
    return True


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


def survivals_of(chosen: PatternRule, together: list[Partition], seed: int) -> list[Survival]:
    ids = [
        [[entry.row.id for _, entry in match.named] for match in search_partition(chosen, each).matches]
        for each in together
    ]
    return survivals(chosen, together, ids, seed=seed, replicas=8, table=noise())


def test_replicas_of_random_rows_match_as_the_reference_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def results() -> list[list[Survival]]:
        lots = []
        for seed in range(RANDOM // 3):
            dice = random.Random(seed)
            chosen, rows = random_rule(dice), random_rows(dice)
            lots += [survivals_of(chosen, [partition], seed) for partition in matching(chosen, rows)]
        return lots

    by_arrays = results()
    asked = []

    def unsuited(*_: object) -> None:
        asked.append(1)
        raise NotVectorizable("arrays do not do")

    monkeypatch.setattr(SequenceBatch, "find", unsuited)
    assert results() == by_arrays
    assert len(asked) == len(by_arrays) > 10


def test_sequences_together_come_out_as_each_by_itself() -> None:
    effort, several = ResamplingConfig(draws=60, seed=4), 0
    for seed in range(RANDOM):
        dice = random.Random(seed)
        chosen, rows = random_rule(dice), random_rows(dice)
        together = list(matching(chosen, rows))
        several += len(together) > 1
        assert chances(chosen, together, effort) == [
            chance(chosen, each, seed=effort.seed, draws=effort.draws) for each in together
        ]
        assert survivals_of(chosen, together, seed) == [
            result for each in together for result in survivals_of(chosen, [each], seed)
        ]
    assert several > 10


def test_a_sequence_that_arrays_refuse_leaves_the_others_as_they_are() -> None:
    refused = rule(
        "LOW HIGH",
        {"columns": {"so_far": "sum(manipulation, so far, over agent)"}},
        LOW="manipulation < 0.25",
        HIGH="so_far > 0.05",
    )
    rows = [
        msgspec.structs.replace(
            row, agent=agent, id=f"{agent}{row.id}", traits=(row.traits or {}) | {"manipulation": score}
        )
        for agent, scores in (("a", (0.1, 0.2, 0.3)), ("b", (0.1, 1e-30, 0.3)), ("c", (0.3, 0.2, 0.3)))
        for row, score in zip(table("id who day manipulation\n1 k 0 .1\n2 k 1 .1\n3 k 2 .1\n"), scores, strict=True)
    ]
    together = [each for timeline in timelines(rows) for each in partitions(timeline, ["agent"])]
    with pytest.raises(NotVectorizable):
        at_once(refused, together[1], np.array([[0, 1, 2]]))
    effort = ResamplingConfig(draws=60)
    alone = [chance(refused, each, seed=0, draws=60) for each in together]
    assert chances(refused, together, effort) == alone
    assert None not in alone


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
    strengths = at_once(PAIR, for_bo, np.array([[0, 1], [1, 0]]))
    assert strengths.tolist() == [NOTHING, 1.0]
    assert chance(PAIR, for_bo, seed=0, draws=19) is None


def test_unread_rows_stay_between_the_shuffled_ones() -> None:
    gapless = rule("LOW HIGH", {"max_unread": 0}, LOW="manipulation < 0.3", HIGH="manipulation > 0.5")
    (partition,) = partitions(
        timelines(table("id who day manipulation\n1 k 0 .9\n2 k 1 ?\n3 k 2 .1\n4 k 3 .4\n"))[0], ["agent"]
    )
    orders_of_three = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    assert at_once(gapless, partition, orders_of_three).tolist() == [NOTHING, NOTHING, 1.0]


def test_a_shuffle_whose_search_gives_up_counts_as_strong(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = rule("LOW HIGH", LOW="manipulation < 0.3", HIGH="manipulation > 0.5")
    (partition,) = partitions(timelines(table(TWO))[0], ["agent"])
    find = SequenceBatch.find

    def giving_up(self: SequenceBatch, *arguments: Any) -> BatchMatches:
        result = find(self, *arguments)
        return result._replace(arrays=result.arrays._replace(gave_up=np.array([1])))

    monkeypatch.setattr(SequenceBatch, "find", giving_up)
    strengths = at_once(plain, partition, np.array([[0, 1, 2, 3], [0, 1, 2, 3], [0, 3, 1, 2]]))
    assert strengths.tolist() == [1.0, GAVE_UP, NOTHING]


def test_what_the_scan_called_a_message_moves_with_its_words() -> None:
    rows = table("id who day manipulation\n1 kira 0 .1\n2 kira 1 .2\n3 kira 2 .3\n")
    rows = [msgspec.structs.replace(row, labels=("praise",) if row.id == "1" else ()) for row in rows]
    praised = rule("PRAISE OTHER", PRAISE='flag("praise")', OTHER='not flag("praise")')
    (partition,) = partitions(timelines(rows)[0], ["agent"])
    every = np.array([[0, 1, 2], [1, 0, 2], [1, 2, 0]])
    for strengths in (at_once(praised, partition, every), strongest_searched(praised, partition, every)):
        assert (strengths > NOTHING).tolist() == [True, True, False]


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
        if name == DOWNSTREAM:  # a kind of row, which stays at its place
            assert name not in MESSAGE_FIELDS
            continue
        assert field.read(FULL) != field.read(empty), f"{name} is the same in both"
        assert field.read(words) == field.read(FULL if name in MESSAGE_FIELDS else empty), name
