"""A rule over several agents live: told with the row that completes it, whoever wrote that one."""

from __future__ import annotations

from random import Random

import pytest

from tests.patterns.live import worlds
from tests.patterns.live.test_live import agree
from tests.patterns.rulebox import rule
from tests.patterns.test_downstream import CASCADE, CHAIN, world
from undersong.patterns.catalog import all_rules, load_rules
from undersong.patterns.live import LiveDetector
from undersong.patterns.tools.rule_tests import table


def test_a_harmful_request_that_is_passed_on_is_told_with_the_message_that_passes_it_on() -> None:
    live = LiveDetector(load_rules())
    told = [
        [each.message_ids for each in live.observe(row).findings if each.pattern == CASCADE.id] for row in table(CHAIN)
    ]
    assert told == [[], [], [("1", "2", "3")], [("1", "2", "3", "4")]]
    (finding,) = (each for each in live.findings() if each.pattern == CASCADE.id)
    assert (finding.agent, finding.target, finding.status) == ("kira", "bo", "open")


def test_a_request_that_came_late_is_told_with_itself() -> None:
    live, (first, second, *passed) = LiveDetector([CASCADE]), table(CHAIN)
    assert not live.extend([second, *passed]).findings
    assert [each.message_ids for each in live.observe(first).findings] == [("1", "2", "3", "4")]


@pytest.mark.parametrize("seed", range(12))
def test_after_every_row_live_is_batch_over_agents_who_write_to_each_other(seed: int) -> None:
    """The rows come in the order in which they were drawn, so that most are late."""
    rows, chance = world(seed), Random(seed)
    agree([CASCADE], rows, [[row] for row in rows])
    in_order = worlds.in_order(rows)
    agree([CASCADE], in_order, [[row] for row in in_order])
    newer = worlds.with_earlier_versions(chance, rows)
    agree(all_rules() if seed == 0 else [CASCADE], newer, worlds.chunks(chance, newer))


def test_a_rule_over_several_agents_that_asks_for_what_findings_set_is_not_applicable_by_name() -> None:
    asks = 'directed and not downstream and indicator("DEC-SANDBAG")'
    own = rule("ASK TAKES", {"partition_by": ["agent", "target"]}, ASK=asks, TAKES="downstream and deception > 0.5")
    live = LiveDetector([own])
    live.extend(table("id who day deception indicators\n1 kira>bo 0 .1 DEC-SANDBAG\n2 bo>cy 1 .9 -\n"))
    (outcome,) = live.outcomes()
    assert (live.findings(), outcome.status) == ((), "not_applicable")
    assert outcome.reason.startswith("needs the messages of other agents")
