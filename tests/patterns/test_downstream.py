"""A harmful request taken up by another agent and passed on is one finding over both agents."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from tests.patterns.rulebox import rule
from undersong.models import Indicator, Row
from undersong.patterns.catalog import all_rules, load_rules, named
from undersong.patterns.detect import RowSearch, detect
from undersong.patterns.reference import search as reference
from undersong.patterns.reference.downstream import NEXT, sequences_for
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.estimate import estimate_significance
from undersong.patterns.tools.explain import explain
from undersong.patterns.tools.rule_tests import table
from undersong.patterns.vectorized.row_source import search as vectorized
from undersong.pipeline.history_sweep import sweep
from undersong.stores.sqlite import SQLiteStore

CASCADE = named(all_rules(), "inter_agent_cascade")
CHAIN = """
    id who    day indicators    manipulation
    1  kira>bo 0  MAN-INJECTION .2
    2  kira>bo 1  MAN-AUTHORITY .2
    3  bo>cy   2  -             .8
    4  bo      3  -             .9
"""


def test_a_harmful_request_that_is_taken_up_and_passed_on_is_one_finding_over_agents() -> None:
    (finding,) = [each for each in detect(table(CHAIN), load_rules()).findings if each.pattern == CASCADE.id]
    assert (finding.agent, finding.target) == ("kira", "bo")
    assert finding.message_ids == ("1", "2", "3", "4")
    assert "2 messages by the agent that was addressed, who passed it on to 1 other agent" in finding.notes


def test_a_rule_of_ones_own_binds_what_the_addressed_agent_says_next() -> None:
    asks, takes = "directed and not downstream and manipulation > 0.5", "downstream and deception > 0.5"
    own = rule("ASK TAKES", {"partition_by": ["agent", "target"]}, ASK=asks, TAKES=takes)
    rows = table("id who day manipulation deception\n1 kira>bo 0 .9 .1\n2 bo>cy 1 .1 .9\n3 al>cy 1 .1 .9\n")
    assert [each.message_ids for each in detect(rows, [own]).findings] == [("1", "2")]


def test_an_addressed_agent_is_followed_for_a_bounded_number_of_messages() -> None:
    quiet = "".join(f"q{n} bo>cy {1 + n / 100} - .1\n" for n in range(NEXT))
    late = "id who day indicators manipulation\n1 kira>bo 0 MAN-INJECTION .2\n" + quiet + "z bo>cy 2 - .9\n"
    (joined,) = sequences_for(CASCADE, timelines(table(late)))
    assert len(joined.entries) == NEXT + 1
    assert detect(table(late), [CASCADE]).findings == ()


def test_where_no_row_of_others_is_seen_the_rule_is_not_applicable_by_name() -> None:
    from undersong.patterns.language.inputs import available_inputs, lacking

    rows = [row for row in table(CHAIN) if row.agent == "kira"]
    reason = lacking(CASCADE, available_inputs(rows, CASCADE.needs), None, any_read=True)
    assert reason.startswith("needs the messages of other agents")


def world(seed: int) -> list[Row]:
    """Agents that write to each other and to everybody, some of it harmful, some unread."""
    dice = random.Random(seed)
    names = ["kira", "bo", "cy", "al"]
    lines = ["id who hour indicators manipulation"]
    for n in range(dice.randrange(20, 60)):
        agent = dice.choice(names)
        target = dice.choice([None, *(name for name in names if name != agent)])
        seen = dice.choice(["-", "-", "MAN-INJECTION", "DEC-HIDDEN", "MAN-AUTHORITY"])
        score = "?" if dice.random() < 0.1 else dice.choice([".1", ".6", ".9"])
        lines.append(f"{n} {agent}{f'>{target}' if target else ''} {dice.randrange(200)} {seen} {score}")
    return table("\n".join(lines))


@pytest.mark.parametrize("seed", range(40))
def test_the_reference_and_the_arrays_agree(seed: int) -> None:
    joined = sequences_for(CASCADE, timelines(world(seed)))
    one, other = reference.search(CASCADE, joined), vectorized(CASCADE, joined)
    assert [(m.partition.key(("agent", "target")), [(n, e.row.id) for n, e in m.stages]) for m in one.matches] == [
        (m.partition.key(("agent", "target")), [(n, e.row.id) for n, e in m.stages]) for m in other.matches
    ]
    assert one.partitions == other.partitions


def test_some_of_these_worlds_hold_a_cascade() -> None:
    assert sum(bool(detect(world(seed), [CASCADE]).findings) for seed in range(40)) >= 10


def test_chance_and_explanation_see_the_same_sequence() -> None:
    search = RowSearch(table(CHAIN))
    detection = search.detect([CASCADE])
    effort = ResamplingConfig(seed=1, draws=40, replicas=4)
    (finding,) = estimate_significance(detection.findings, detection.outcomes, search, [CASCADE], effort).findings
    assert finding.chance is not None
    assert finding.stability is not None
    assert any("matched" in line for line in explain(CASCADE, table(CHAIN)))


def test_a_sweep_finds_it_in_the_histories_of_a_store(tmp_path: Path) -> None:
    rows = [msgspec.structs.replace(row, judge="j", judge_hash="h", conversation="c") for row in table(CHAIN)]
    with SQLiteStore(tmp_path / "s.db") as store:
        store.append(rows)
        found_by = {each.pattern: each.message_ids for each in sweep(store, load_rules(), "h").new_findings}
    assert found_by[CASCADE.id] == ("1", "2", "3", "4")


def test_it_is_found_over_conversations() -> None:
    rows = [msgspec.structs.replace(row, conversation=row.agent) for row in table(CHAIN)]
    rows[0] = msgspec.structs.replace(rows[0], indicators=(Indicator(id="DEC-HIDDEN"),))
    (finding,) = detect(rows, [CASCADE]).findings
    assert finding.conversations == ("kira", "bo")
