"""Live against the reference: after every row the findings are those of a batch run over the rows so far."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec
import pytest

from tests.patterns.live import worlds
from tests.patterns.rulebox import rule
from undersong.models import Finding, Row
from undersong.patterns.catalog import all_rules, load_rules, named
from undersong.patterns.detect import detect
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.live import Changes, LiveDetector
from undersong.patterns.live.detector import FEW
from undersong.patterns.tools.rule_tests import table

RULES = all_rules()
LOW, HIGH = "manipulation < 0.3", "manipulation > 0.5"
STEPS = 200_000  # per sequence: beyond it neither engine says what follows


def take_over(reported: dict[str, Finding], changes: Changes) -> None:
    """What somebody knows who reads nothing but the changes."""
    for name in changes.removed:
        reported.pop(name, None)
    reported |= {finding.finding_id: finding for finding in changes.findings}


def agree(
    chosen: Sequence[PatternRule], arrivals: Sequence[Row], parts: Sequence[Sequence[Row]], few: int = FEW
) -> bool:
    """After every part live, the reader of live's changes and the reference matcher say the same; False: it gave up."""
    live, reported, count = LiveDetector(chosen, steps=STEPS, few=few), dict[str, Finding](), 0
    for part in parts:
        take_over(reported, live.extend(part))
        count += len(part)
        batch = detect(arrivals[:count], chosen, steps=STEPS)  # of so few rows the reference finds the matches
        if any(outcome.status == "gave_up" for outcome in batch.outcomes):
            return False
        expected = {finding.finding_id: finding for finding in batch.findings}
        assert _without_balance(reported) == _without_balance(expected)
        assert reported == {finding.finding_id: finding for finding in live.findings()}
    assert live.outcomes() == detect(arrivals, chosen, steps=STEPS).outcomes
    take_over(reported, live.finish(settle=False))
    assert reported == {finding.finding_id: finding for finding in detect(arrivals, chosen, steps=STEPS).findings}
    return True


def _without_balance(findings: dict[str, Finding]) -> dict[str, Finding]:
    return {name: msgspec.structs.replace(finding, balance={}) for name, finding in findings.items()}


@pytest.mark.parametrize("few", [0, 100])  # rows up to which live asks the reference, too: none, or all
@pytest.mark.parametrize("kind", worlds.ARRIVALS)
def test_after_every_prefix_live_is_the_reference_on_it(kind: str, few: int) -> None:
    for case in range(13):  # a twentieth of what ``bench.live`` does
        chance = Random(f"{kind}:{few}:{case}")
        chosen = [worlds.some_rule(chance)]
        arrivals, parts = worlds.arrivals(chance, kind)
        agree(chosen, arrivals, parts, few)


@pytest.mark.parametrize("missing", [(0.3,), (0.6,), (0.0, 0.6)])
def test_so_it_is_where_scores_are_missing(missing: Sequence[float]) -> None:
    chance = Random(str(missing))
    for _ in range(12):
        chosen, rows = [worlds.some_rule(chance)], worlds.in_order(worlds.some_rows(chance, missing=missing))
        agree(chosen, rows, [[row] for row in rows])


def ids(changes: Changes) -> list[tuple[str, ...]]:
    return [finding.message_ids for finding in changes.findings]


def ids_per_row(live: LiveDetector, rows: str | Sequence[Row]) -> list[list[tuple[str, ...]]]:
    """The message ids of the findings that each row brought."""
    return [ids(live.observe(row)) for row in (table(rows) if isinstance(rows, str) else rows)]


def test_the_cases_of_every_shipped_rule_are_told_at_their_last_row() -> None:
    for chosen in RULES:
        for example in chosen.file.cases.hits:
            rows = worlds.in_order(table(example.rows, example.base))
            live, told = LiveDetector([chosen]), dict[str, tuple[Finding, ...]]()
            for row in rows:
                told[row.id] = live.observe(row).findings
            assert live.findings(), (chosen.id, example.name)
            for finding in detect(rows, [chosen]).findings:
                at_once = [(each.finding_id, each.message_ids) for each in told[finding.message_ids[-1]]]
                assert (finding.finding_id, finding.message_ids) in at_once, (chosen.id, example.name)


def test_every_case_beside_a_shipped_rule_says_live_what_batch_says() -> None:
    for chosen in RULES:
        for example in (*chosen.file.cases.hits, *chosen.file.cases.near_misses):
            rows = table(example.rows, example.base)
            agree([chosen], rows, [rows[: len(rows) // 2], rows[len(rows) // 2 :]])


@pytest.mark.parametrize("seed", range(3))
def test_all_shipped_rules_together_on_the_cases_of_some_one_after_the_other(seed: int) -> None:
    """Shapes set indicators on their rows, and combinations and pathways ask for them."""
    chance, rows = Random(seed), list[Row]()
    for number, chosen in enumerate(chance.sample(RULES, 6)):
        for row in (row for example in chosen.file.cases.hits for row in table(example.rows, example.base)):
            name = f"{number}-{len(rows)}"
            rows.append(msgspec.structs.replace(row, id=name, position=len(rows), conversation=f"{number % 3}"))
    rows = worlds.in_order(rows)
    agree(RULES, rows, worlds.chunks(chance, rows))


def test_darvo_is_told_at_its_fifth_message() -> None:
    rows = table("""
        id who     day deception manipulation dismissal exploitation
        1  kira>bo 0   .7 .2 .2 .1
        2  kira>bo 1   .7 .2 .2 .1
        3  kira>bo 2   .2 .7 .6 .2
        4  kira>bo 3   .2 .7 .6 .2
        5  kira>bo 4   .1 .4 .1 .7
    """)
    live = LiveDetector([named(all_rules(), "darvo")])
    told = [[(each.status, each.message_ids) for each in live.observe(row).findings] for row in rows]
    assert told == [[], [], [], [], [("open", ("1", "2", "3", "4", "5"))]]


def test_a_start_that_is_where_a_new_one_begins_is_not_lost() -> None:
    rows = table("id who manipulation\n1 kira .5\n2 kira .5\n3 kira .1\n4 kira .9\n")
    live = LiveDetector([rule("ANY*? LOW HIGH", LOW=LOW, HIGH=HIGH)])
    (finding,) = (finding for row in rows for finding in live.observe(row).findings)
    assert (finding.message_ids, finding.gap_ids) == (("3", "4"), ("1", "2"))


def statuses(live: LiveDetector, rows: str) -> list[list[tuple[str, ...]]]:
    """The status and message ids of the findings that each row brought."""
    return [[(each.status, *each.message_ids) for each in live.observe(row).findings] for row in table(rows)]


def test_a_match_is_told_at_its_last_row_and_grows_under_its_id() -> None:
    rows = """
        id who  day manipulation
        1  kira 0   .1
        2  kira 1   .9
        3  kira 2   .9
        4  kira 3   .1
        5  kira 9   .1
    """
    fixed = LiveDetector([rule("LOW HIGH", LOW=LOW, HIGH=HIGH)])
    assert statuses(fixed, rows) == [[], [("settled", "1", "2")], [], [], []]
    growing = LiveDetector([rule("LOW HIGH+", {"within": "7 days"}, LOW=LOW, HIGH=HIGH)])
    told = [[], [("open", "1", "2")], [("open", "1", "2", "3")], [], [("settled", "1", "2", "3")]]
    assert statuses(growing, rows) == told
    assert len({finding.finding_id for finding in growing.findings()}) == 1


def test_a_better_match_that_begins_elsewhere_replaces_the_one_before() -> None:
    keys = {
        "measures": {"strength": "mean(A.manipulation)"}, "after_match": "skip to next row", "keep": "strongest",
        "within": "3 days",
    }  # fmt: skip
    live = LiveDetector([rule("A{2}", keys, A="manipulation > 0.5")])
    changes = [live.observe(row) for row in table("id who day manipulation\n1 kira 0 .6\n2 kira 1 .7\n3 kira 2 .9\n")]
    assert [ids(each) for each in changes] == [[], [("1", "2")], [("2", "3")]]
    assert changes[2].findings[0].replaces == changes[1].findings[0].finding_id
    assert changes[2].retracted == ()


def test_what_no_longer_holds_of_the_whole_is_retracted_with_the_reason() -> None:
    live = LiveDetector([rule("HIGH+", {"having": ["mean(HIGH.manipulation) > 0.7"]}, HIGH=HIGH)])
    first, second = table("id who manipulation\n1 kira .8\n2 kira .51\n")
    (finding,) = live.observe(first).findings
    (gone,) = live.observe(second).retracted
    assert (gone.finding_id, live.findings()) == (finding.finding_id, ())
    assert gone.reason.startswith("a later message belongs to its sequence")


def test_harmless_messages_change_nothing_and_nobody_elses_rows_do() -> None:
    live = LiveDetector(load_rules())
    chosen = named(all_rules(), "love_bombing").file.cases.hits[0]
    for row in table(chosen.rows, chosen.base):
        live.observe(row)
    before = live.findings()
    assert [finding.pattern for finding in before] == ["love_bombing"]
    plain = {"compassion": 0.5, "goodwill": 0.5, "manipulation": 0.1, "fabrication": 0.1, "deception": 0.1}
    template = table(chosen.rows, chosen.base)[-1]
    for number in range(30):
        harmless = msgspec.structs.replace(
            template, id=f"h{number}", position=100 + number, target=("bo", "al")[number % 2], traits=plain
        )
        assert live.observe(harmless) == Changes()
    assert live.findings() == before


def test_finish_settles_and_later_rows_open_again_what_they_change() -> None:
    first, second, third = table("id who day manipulation\n1 kira 0 .1\n2 kira 1 .9\n3 kira 2 .9\n")
    live = LiveDetector([rule("LOW HIGH+", LOW=LOW, HIGH=HIGH)])
    assert ids_per_row(live, [first, second]) == [[], [("1", "2")]]
    (settled,) = live.finish().findings
    assert (settled.status, live.finish()) == ("settled", Changes())
    (again,) = live.observe(third).findings
    assert (again.finding_id, again.status, again.message_ids) == (settled.finding_id, "open", ("1", "2", "3"))


@pytest.mark.parametrize("further", [".4", ".9", ".1"])  # ends no match, and ends one of the rule
def test_what_finish_settled_is_not_open_again_for_a_row_that_leaves_it_as_it_is(further: str) -> None:
    rows = table(f"id who day manipulation\n1 kira 0 .1\n2 kira 1 .9\n3 kira 2 .4\n4 kira 3 {further}\n")
    live = LiveDetector([rule("LOW HIGH+", {"within": "21 days"}, LOW=LOW, HIGH=HIGH)])
    live.extend(rows[:3])
    settled = live.finish().findings
    assert [finding.status for finding in settled] == ["settled"]
    assert (live.observe(rows[3]), live.findings()) == (Changes(), settled)
    assert [finding.status for finding in live.finish(settle=False).findings] == ["open"]


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
    assert (ids(changes), [gone.finding_id for gone in changes.retracted]) == ([], [before[0].finding_id])
    assert changes.retracted[0].reason.startswith("messages that came late")


def test_a_row_that_is_judged_later_takes_the_place_of_its_hole() -> None:
    low, hole, high = table("id who manipulation\n1 kira .1\n2 kira ?\n3 kira .9\n")
    live = LiveDetector([rule("LOW HIGH", LOW=LOW, HIGH=HIGH)])
    assert ids_per_row(live, [low, hole, high]) == [[], [], [("1", "3")]]
    (finding,) = live.findings()
    changes = live.observe(msgspec.structs.replace(hole, state="scored", traits={"manipulation": 0.8}))
    assert (ids(changes), changes.retracted) == ([("1", "2")], ())
    assert changes.findings[0].finding_id == finding.finding_id


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
    assert [gone.finding_id for gone in changes.retracted] == [before.finding_id]  # an untimed sequence: another name
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
    rows = table("who manipulation\nkira .1\n" + "kira .9\n" * 40 + "bo .9\nbo .1\n")
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
