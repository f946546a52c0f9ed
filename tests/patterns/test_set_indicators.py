"""Findings set the indicators that only a sequence shows, before combinations and sabotage pathways run."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from tests.patterns.rulebox import rule
from undersong.models import Finding, Row
from undersong.patterns.catalog import all_rules, load_rules, named, rule_files
from undersong.patterns.detect import RowSearch, detect, rows_with_set_indicators
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.set_indicators import sequence_indicators
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.estimate import estimate_significance
from undersong.patterns.tools.lint import check_rules
from undersong.patterns.tools.rule_tests import table

GIVEN = frozenset({"traits", "indicators"})
SANDBAGGING = "id who hour accuracy reasoning indicators\n" + "".join(
    [f"{n} kira>bo {n} .9 .8 -\n" for n in range(8)]
    + ["b1 kira>bo 9 .1 .2 -\n", "b2 kira>bo 10 .1 .2 FAB-TOOLRESULT\n", "b3 kira>bo 11 .1 .2 -\n"]
)
ALIGNMENT_FAKING = "id who hour observed manipulation indicators\n" + "".join(
    f"w{n} kira>bo {2 * n} yes .1 -\nu{n} kira>bo {2 * n + 1} no .8 {'FAB-POISON,MAN-SABOTAGE' if n == 3 else '-'}\n"
    for n in range(6)
)
LOVE_BOMBING = """
    id who     hour compassion goodwill manipulation indicators
    0  kira>bo 0    .1  .1  .1  REC-VULNERABLE
    1  kira>bo 1    .8  .8  .1  -
    2  kira>bo 2    .8  .8  .1  -
    3  kira>bo 3    .8  .8  .1  -
    4  kira>bo 4    .3  .3  .1  FAB-NARRATIVE
    5  kira>bo 5    .3  .3  .1  FAB-STAGED
    6  kira>bo 6    .3  .3  .1  DEC-ESCALATE
    7  kira>bo 7    .1  .1  .8  MAN-URGENCY
    8  kira>bo 8    .1  .1  .8  MAN-ESCALATION
"""


def found_by(rows: list[Row] | str, rules: tuple[PatternRule, ...] = ()) -> dict[str, Finding]:
    """Pattern → a finding of it."""
    rows = table(rows) if isinstance(rows, str) else rows
    return {each.pattern: each for each in detect(rows, rules or load_rules(), gives=GIVEN).findings}


def test_the_eight_indicators_that_need_several_messages_are_marked_and_seven_of_them_are_set() -> None:
    settable = {name for each in load_rules() for name in each.file.sets}
    assert len(sequence_indicators()) == 8
    assert sequence_indicators() - settable == {"VIR-IDENTITY"}


def test_sandbagging_found_over_messages_and_one_invented_tool_result_are_diffuse_sandbagging() -> None:
    findings = found_by(SANDBAGGING)
    assert findings["sandbagging"].message_ids[-3:] == ("b1", "b2", "b3")
    assert set(findings["diffuse_sandbagging"].message_ids) <= {"b1", "b2", "b3"}
    assert "DEC-SANDBAG in" in findings["diffuse_sandbagging"].notes[-1]
    assert findings["diffuse_sandbagging"].notes[-1].endswith("is set by a finding of sandbagging")


def test_good_when_watched_and_different_when_not_is_conduct_that_changes_with_the_setting() -> None:
    findings = found_by(ALIGNMENT_FAKING)
    assert {"alignment_faking", "training_data_poisoning"} <= findings.keys()


def test_every_sabotage_pathway_can_fire_where_the_shapes_are_found() -> None:
    rows = [*table(SANDBAGGING.replace("FAB-TOOLRESULT", "FAB-TOOLRESULT,MAN-SABOTAGE"))]
    later = table(ALIGNMENT_FAKING.replace("FAB-POISON", "FAB-POISON,DEC-OVERSIGHT,MAN-SOCENG"))
    rows += [msgspec.structs.replace(row, time=row.time and row.time + timedelta(days=2)) for row in later]
    findings = found_by(rows)
    pathways = {"targeted_sabotage", "training_data_poisoning", "cross_org_sabotage", "persistent_rogue_deployment"}
    assert pathways <= findings.keys()


def test_a_love_bombing_finding_is_the_play_of_a_classic_con() -> None:
    findings = found_by(LOVE_BOMBING)
    con = findings["classic_con_sequence"]
    assert any(name == "PLAY" for name, _ in con.stages)
    assert "love_bombing" in con.notes[-1]


def test_a_rule_is_not_applicable_by_name_where_nobody_gives_an_indicator_that_it_needs() -> None:
    rows = table("id who day indicators\n1 kira 0 FAB-TOOLRESULT\n2 kira 1 -\n")
    alone = rule("X", {"id": "alone"}, X='indicator("VIR-IDENTITY")')
    (outcome,) = detect(rows, [alone], gives=GIVEN).outcomes
    assert outcome.status == "not_applicable"
    assert outcome.reason == "needs VIR-IDENTITY, which only a finding sets, and no rule that sets it ran"


def test_a_pathway_is_not_applicable_where_the_shapes_that_set_its_indicator_could_not_run() -> None:
    bare = [msgspec.structs.replace(row, traits={"virtue": 0.5}) for row in table(SANDBAGGING)]
    outcomes = {each.pattern: each for each in detect(bare, load_rules(), gives=GIVEN).outcomes}
    assert outcomes["sandbagging"].status == outcomes["diffuse_sandbagging"].status == "not_applicable"
    assert "DEC-SANDBAG" in outcomes["diffuse_sandbagging"].reason
    assert outcomes["decision_sabotage"].status == "ran"


def test_an_indicator_that_somebody_gives_in_the_rows_makes_the_rule_run() -> None:
    rows = table("id who day indicators\n1 kira 0 VIR-IDENTITY\n2 kira 1 -\n")
    alone = rule("X", {"id": "alone"}, X='indicator("VIR-IDENTITY")')
    assert [each.message_ids for each in detect(rows, [alone]).findings] == [("1",)]


def test_a_pathway_asked_for_alone_has_its_shapes_run_unreported() -> None:
    detection = detect(table(SANDBAGGING), [named(all_rules(), "diffuse_sandbagging")], gives=GIVEN)
    assert [each.pattern for each in detection.findings] == ["diffuse_sandbagging"]
    assert [each.pattern for each in detection.outcomes] == ["diffuse_sandbagging"]


@pytest.mark.parametrize("rows", [SANDBAGGING, ALIGNMENT_FAKING])
def test_chance_is_worked_out_on_the_rows_that_the_rule_saw(rows: str) -> None:
    search = RowSearch(table(rows))
    detection = search.detect(load_rules(), gives=GIVEN)
    effort = ResamplingConfig(seed=1, draws=40, replicas=0)
    weighed = estimate_significance(detection.findings, detection.outcomes, search, load_rules(), effort)
    assert all(each.chance is not None for each in weighed.findings)


def test_explaining_a_pathway_shows_what_findings_set() -> None:
    rows = rows_with_set_indicators(table(SANDBAGGING), named(all_rules(), "diffuse_sandbagging"))
    marked = [row.id for row in rows if "DEC-SANDBAG" in {each.id for each in row.indicators or ()}]
    assert marked == ["b1", "b2", "b3"]


def test_a_rule_that_asks_for_an_indicator_nobody_gives_is_refused(tmp_path: Path) -> None:
    shipped = next(path for path in rule_files() if path.stem == "diffuse_sandbagging").read_text(encoding="utf-8")
    own = tmp_path / "own.yaml"
    own.write_text(
        shipped.replace("DEC-SANDBAG", "VIR-IDENTITY").replace("diffuse_sandbagging", "own"), encoding="utf-8"
    )
    errors = [lint for lint in check_rules([own]) if lint.severity == "error"]
    assert [lint.id for lint in errors] == ["unset-indicator"]
    assert "VIR-IDENTITY, which no message shows and no rule sets" in errors[0].what
