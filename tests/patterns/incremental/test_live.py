"""Live against batch: the same findings however the rows come, told once they are sure, taken back if need be."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec
import pytest

from tests.patterns.incremental import worlds
from tests.patterns.rulebox import rule
from undersong.models import Finding, Row
from undersong.patterns.catalog import all_rules
from undersong.patterns.detect import detect
from undersong.patterns.incremental.live import APART, AgentState, Changes, LiveDetector
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.tools.rule_tests import table

LOW, HIGH = "manipulation < 0.3", "manipulation > 0.5"
SEEDS = range(25)


def followed(live: LiveDetector, parts: Sequence[Sequence[Row]]) -> dict[str, Finding]:
    """What somebody knows who reads nothing but the changes."""
    findings: dict[str, Finding] = {}
    for change in (*map(live.extend, parts), live.finish()):
        findings |= {finding.finding_id: finding for finding in change.findings}
        for name in change.retracted:
            del findings[name]
    return findings


def agree(chosen: Sequence[PatternRule], arrivals: Sequence[Row], parts: Sequence[Sequence[Row]]) -> None:
    """Batch, live and the reader of live's changes say the same, and the same became of every rule."""
    batch, live = detect(arrivals, chosen, steps=200_000), LiveDetector(chosen)
    followed_findings = followed(live, parts)
    assert followed_findings == {finding.finding_id: finding for finding in live.findings()}
    if any(outcome.status == "gave_up" for outcome in batch.outcomes):
        return  # live has no such limit where nothing is open for long
    assert followed_findings == {finding.finding_id: finding for finding in batch.findings}
    for one, other in zip(live.outcomes(), batch.outcomes, strict=True):
        assert (one.status, one.partitions, one.reason) == (other.status, other.partitions, other.reason)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_one_by_one_in_chunks_late_and_twice_give_what_batch_gives(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("undersong.patterns.incremental.live.APART", 256 if seed % 2 else 3)
    for case in range(10):
        chance = Random(f"{seed}:{case}")
        chosen = [worlds.some_rule(chance)]
        arrivals = worlds.in_order(worlds.some_rows(chance))
        agree(chosen, arrivals, [[row] for row in arrivals])
        arrivals = worlds.in_order(worlds.some_rows(chance))
        agree(chosen, arrivals, worlds.chunks(chance, arrivals))
        arrivals = worlds.some_rows(chance)
        chance.shuffle(arrivals)
        agree(chosen, arrivals, worlds.chunks(chance, arrivals))
        arrivals = worlds.with_earlier_versions(chance, worlds.in_order(worlds.some_rows(chance)))
        agree(chosen, arrivals, [[row] for row in arrivals])


@pytest.mark.parametrize("missing", [(0.3,), (0.6,), (0.0, 0.6)])
def test_live_agrees_with_batch_after_every_row_where_scores_are_missing(missing: Sequence[float]) -> None:
    chance = Random(str(missing))
    for _ in range(12):
        chosen, rows = [worlds.some_rule(chance)], worlds.in_order(worlds.some_rows(chance, missing=missing))
        for end in range(1, len(rows) + 1):
            agree(chosen, rows[:end], [[row] for row in rows[:end]])


def ids(changes: Changes) -> list[tuple[str, ...]]:
    return [finding.message_ids for finding in changes.findings]


def ids_per_row(live: LiveDetector, rows: str | Sequence[Row]) -> list[list[tuple[str, ...]]]:
    """The message ids of the findings that each row brought."""
    return [ids(live.observe(row)) for row in (table(rows) if isinstance(rows, str) else rows)]


def test_every_case_beside_a_shipped_rule_is_found_live_as_well() -> None:
    for chosen in all_rules():
        for example in (*chosen.file.cases.hits, *chosen.file.cases.near_misses):
            rows = table(example.rows, example.base)
            agree([chosen], rows, [[row] for row in rows])


def test_all_shipped_rules_together_on_the_cases_of_all_one_after_the_other() -> None:
    rows = []
    for number, chosen in enumerate(all_rules()):
        for row in (row for example in chosen.file.cases.hits for row in table(example.rows, example.base)):
            name = f"{number}-{len(rows)}"
            rows.append(msgspec.structs.replace(row, id=name, position=len(rows), conversation=f"{number % 3}"))
    rows = worlds.in_order(rows)
    agree(all_rules(), rows, [[row] for row in rows])
    agree(all_rules(), rows, worlds.chunks(Random(1), rows))


def test_a_start_that_is_where_a_new_one_begins_is_not_lost() -> None:
    rows = table("id who manipulation\n1 kira .5\n2 kira .5\n3 kira .1\n4 kira .9\n")
    live = LiveDetector([rule("ANY*? LOW HIGH", LOW=LOW, HIGH=HIGH)])
    (finding,) = (finding for row in rows for finding in live.observe(row).findings)
    assert (finding.message_ids, finding.gap_ids) == (("3", "4"), ("1", "2"))


def test_a_match_is_told_with_the_row_that_decides_it() -> None:
    rows = """
        id who  day manipulation
        1  kira 0   .1
        2  kira 1   .9
        3  kira 2   .9
        4  kira 3   .1
    """
    assert ids_per_row(LiveDetector([rule("LOW HIGH", LOW=LOW, HIGH=HIGH)]), rows) == [[], [("1", "2")], [], []]
    assert ids_per_row(LiveDetector([rule("LOW HIGH+", LOW=LOW, HIGH=HIGH)]), rows) == [[], [], [], [("1", "2", "3")]]
    within = rule("LOW (ANY*? HIGH)+", {"within": "2 days"}, LOW=LOW, HIGH=HIGH)
    assert ids_per_row(LiveDetector([within]), rows) == [[], [], [], [("1", "2", "3")]]


def test_a_gap_that_is_too_wide_decides_as_a_row_does() -> None:
    rows = """
        id who  manipulation
        1  kira .1
        2  kira .9
        3  kira ?
        4  kira ?
    """
    chosen = rule("LOW HIGH+", {"max_unread": 1}, LOW=LOW, HIGH=HIGH)
    assert ids_per_row(LiveDetector([chosen]), rows) == [[], [], [], [("1", "2")]]


def test_of_overlapping_matches_the_strongest_is_told_once_none_can_overlap_it() -> None:
    keys = {
        "measures": {"strength": "mean(A.manipulation)"}, "after_match": "skip to next row", "keep": "strongest",
        "within": "3 days",
    }  # fmt: skip
    rows = """
        id who  day manipulation
        1  kira 0   .6
        2  kira 1   .7
        3  kira 2   .9
        4  kira 3   .2
        5  kira 4   .2
    """
    assert ids_per_row(LiveDetector([rule("A{2}", keys, A="manipulation > 0.5")]), rows) == [
        [],
        [],
        [],
        [("2", "3")],
        [],
    ]


def test_finish_closes_what_is_open_and_later_rows_open_it_again() -> None:
    first, second, third = table("id who day manipulation\n1 kira 0 .1\n2 kira 1 .9\n3 kira 2 .9\n")
    live = LiveDetector([rule("LOW HIGH+", LOW=LOW, HIGH=HIGH)])
    assert ids_per_row(live, [first, second]) == [[], []]
    closed = live.finish()
    assert ids(closed) == [("1", "2")]
    assert live.finish() == Changes((), ())
    again = live.observe(third)
    assert (ids(again), again.retracted) == ([], (closed.findings[0].finding_id,))
    assert ids(live.finish()) == [("1", "2", "3")]


def test_a_late_row_takes_back_what_it_contradicts_and_leaves_the_rest() -> None:
    rows = table("""
        id who  day manipulation
        1  kira 0   .1
        2  kira 1   .9
        3  kira 2   .5
        4  kira 3   .1
        5  kira 4   .9
    """)
    live = LiveDetector([rule("LOW HIGH", LOW=LOW, HIGH=HIGH)])
    before = [finding for row in (rows[0], rows[1], *rows[3:]) for finding in live.observe(row).findings]
    assert [finding.message_ids for finding in before] == [("1", "2"), ("4", "5")]
    late = msgspec.structs.replace(rows[2], time=rows[0].time, position=1, id="1b")
    changes = live.observe(late)
    assert (ids(changes), changes.retracted) == ([], (before[0].finding_id,))


def test_a_row_that_is_judged_later_takes_the_place_of_its_hole() -> None:
    low, hole, high = table("id who manipulation\n1 kira .1\n2 kira ?\n3 kira .9\n")
    live = LiveDetector([rule("LOW HIGH", LOW=LOW, HIGH=HIGH)])
    assert ids_per_row(live, [low, hole, high]) == [[], [], [("1", "3")]]
    (finding,) = live.findings()
    changes = live.observe(msgspec.structs.replace(hole, state="scored", traits={"manipulation": 0.8}))
    assert (ids(changes), changes.retracted) == ([("1", "2")], (finding.finding_id,))


def test_a_row_that_is_given_twice_changes_nothing() -> None:
    rows = table("id who manipulation\n1 kira .1\n2 kira .9\n")
    live = LiveDetector([rule("LOW HIGH", LOW=LOW, HIGH=HIGH)])
    assert ids_per_row(live, [*rows, *rows, rows[0]]) == [[], [("1", "2")], [], [], []]


def test_a_finding_that_says_something_new_is_told_again_under_its_id() -> None:
    low, between, high = table("id who manipulation\n1 kira .1\n2 kira .4\n3 kira .9\n")
    keys = {"measures": {"strength": "count(ANY) / 10"}}
    live = LiveDetector([rule("LOW ANY*? HIGH", keys, LOW=LOW, HIGH=HIGH)])
    (before,) = (finding for row in (low, high) for finding in live.observe(row).findings)
    changes = live.observe(between)
    assert changes.retracted == ()
    assert [(finding.finding_id, finding.gap_ids) for finding in changes.findings] == [(before.finding_id, ("2",))]


def test_the_first_time_in_a_conversation_moves_its_rows_to_the_agents_history() -> None:
    rows = table("id who manipulation\n1 kira .1\n2 kira .9\n")
    (dated,) = table("id who day manipulation\n3 kira 0 .5\n")
    dated = msgspec.structs.replace(dated, position=2)
    live = LiveDetector([rule("LOW HIGH", LOW=LOW, HIGH=HIGH)])
    assert ids_per_row(live, rows) == [[], [("1", "2")]]
    (before,) = live.findings()
    changes = live.observe(dated)
    assert changes.retracted == (before.finding_id,)  # an untimed sequence has another name
    assert [finding.start for finding in changes.findings] == [dated.time]


def test_a_new_target_begins_with_what_is_public_so_far() -> None:
    rows = """
        id who     day manipulation
        1  kira    0   .1
        2  kira>bo 1   .9
        3  kira    2   .5
        4  kira>al 3   .9
    """
    chosen = rule("LOW ANY*? HIGH", {"partition_by": ["agent", "target"]}, LOW=LOW, HIGH=HIGH)
    assert ids_per_row(LiveDetector([chosen]), rows) == [[], [("1", "2")], [], [("1", "4")]]


def test_a_rule_is_silent_until_each_of_its_inputs_was_seen_and_then_says_all() -> None:
    chosen = rule("LOW HIGH", LOW=f'{LOW} and coalesce(indicator("MAN-URGENCY"), false) = false', HIGH=HIGH)
    rows = table("""
        id who  manipulation indicators
        1  kira .1 -
        2  kira .9 -
        3  bo   .5 MAN-URGENCY
    """)
    rows[:2] = [msgspec.structs.replace(row, indicators=None) for row in rows[:2]]
    live = LiveDetector([chosen])
    assert ids_per_row(live, rows[:2]) == [[], []]
    assert live.outcomes() == detect(rows[:2], [chosen]).outcomes
    assert live.outcomes()[0].status == "not_applicable"
    assert ids(live.observe(rows[2])) == [("1", "2")]
    changes = live.observe(msgspec.structs.replace(rows[2], indicators=None))
    assert (changes.findings, len(changes.retracted)) == ((), 1)


def test_what_was_held_back_is_told_with_the_row_that_brings_the_input() -> None:
    chosen = rule("LOW HIGH", LOW=f'{LOW} and coalesce(indicator("MAN-URGENCY"), false) = false', HIGH=HIGH)
    rows = table("id who manipulation indicators\n1 kira .1 -\n2 kira .9 -\n3 kira .1 -\n4 kira .9 MAN-URGENCY\n")
    rows[:3] = [msgspec.structs.replace(row, indicators=None) for row in rows[:3]]
    assert ids_per_row(LiveDetector([chosen]), rows) == [[], [], [], [("1", "2"), ("3", "4")]]


def test_what_the_judge_does_not_give_keeps_a_rule_silent() -> None:
    rows = table("who manipulation indicators\nkira .5 MAN-URGENCY\n")
    live = LiveDetector([rule("A", A='indicator("MAN-URGENCY")')], given_by={"traits"})
    assert ids_per_row(live, rows) == [[]]
    assert live.outcomes()[0].status == "not_applicable"


def test_another_agents_rows_change_nobodys_findings() -> None:
    chance = Random(5)
    for _ in range(20):
        chosen, rows = worlds.some_rule(chance), worlds.in_order(worlds.some_rows(chance))
        rows = [msgspec.structs.replace(row, time=row.time or worlds.START) for row in rows]
        kira, both = LiveDetector([chosen]), LiveDetector([chosen])
        kira.extend(row for row in rows if row.agent == "kira")
        both.extend(rows)
        if kira.outcomes()[0].status == both.outcomes()[0].status:
            assert kira.findings() == tuple(finding for finding in both.findings() if finding.agent == "kira")


def test_a_rule_that_takes_too_many_steps_gives_up_aloud_and_only_there() -> None:
    rows = table("who manipulation\n" + "kira .9\n" * 40 + "bo .9\nbo .1\n")
    live = LiveDetector([rule("A+ B", A=HIGH, B=LOW)], steps=50)
    for row in rows:
        live.observe(row)
    (outcome,) = live.outcomes()
    assert outcome.status == "gave_up"
    assert "1 of 2 partitions (agents: kira) at 50 steps" in outcome.reason
    assert [finding.agent for finding in live.findings()] == ["bo"]


def test_a_restart_is_a_replay_of_the_rows() -> None:
    chance = Random(3)
    rows = worlds.in_order(worlds.some_rows(chance, most=40))
    chosen = rule("LOW (ANY*? HIGH)+", {"within": "4 days"}, LOW=LOW, HIGH=HIGH)
    through, again = LiveDetector([chosen]), LiveDetector([chosen])
    for row in rows[:-10]:
        through.observe(row)
    again.extend(reversed(rows[:-10]))
    for row in rows[-10:]:
        assert through.observe(row) == again.observe(row)
    assert through.finish() == again.finish()


def test_a_row_that_is_a_little_late_replays_a_little(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table("who day manipulation\n" + "".join(f"kira {day} {'.1' if day % 3 else '.9'}\n" for day in range(900)))
    live = LiveDetector([rule("LOW HIGH", LOW=LOW, HIGH=HIGH)])
    live.extend(row for row in rows if row.position not in (5, 880))
    taken = []
    take = AgentState.take
    monkeypatch.setattr(AgentState, "take", lambda self, row, time: taken.append(row.id) or take(self, row, time))
    live.observe(rows[880])
    assert "881" in taken
    assert len(taken) <= 2 * APART
    taken.clear()
    live.observe(rows[5])
    assert len(taken) == len(rows)
    live.finish()
    assert live.findings() == detect(rows, live.rules).findings


@pytest.mark.parametrize("function", ["mean", "max"])
def test_who_was_addressed_in_another_conversation_has_its_own_others_there(function: str) -> None:
    """Until ``z`` is addressed in ``u``, the public row there is already one of its sequence with ``z``."""
    keys = {
        "partition_by": ["agent", "target", "conversation"],
        "columns": {"before": f"{function}(manipulation, so far, over others)"},
    }
    chosen = rule("ALONE{2}", keys, ALONE="before is null")
    rows = table(
        "id who conversation day manipulation\n"
        "1 kira>z t 0 .1\n"
        "2 kira u 1 .2\n"
        "3 kira>x t 2 .3\n"
        "4 kira u 3 .4\n"
        "5 kira>z u 4 .5\n"
        "6 kira>z v 5 .5\n"
    )
    agree([chosen], rows, [[row] for row in rows])
    agree([chosen], rows[:2] + rows[4:], [[row] for row in rows[:2] + rows[4:]])
    assert [finding.message_ids for finding in detect(rows[:2] + rows[4:], [chosen]).findings] == [("2", "5")]
