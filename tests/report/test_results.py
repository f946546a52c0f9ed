"""What ``--fail-on`` counts is what SARIF lists, by the same levels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.report.conftest import with_moments
from undersong.cli.claims import fails
from undersong.cli.gate_lines import failed_results
from undersong.cli.gates import Gates, failing_line
from undersong.cli.stop_hook import answer_for
from undersong.models import LEVELS, Bypass, Case, Finding, Lead, LedgerClaim, Row
from undersong.models.finding import distinct
from undersong.models.verdict import BypassKind, ClaimState
from undersong.pipeline.session_check import CheckedSession
from undersong.report.headline import findings_words
from undersong.report.opening import finding_state
from undersong.report.order import ORDER, SARIF, at_or_above, order_findings
from undersong.report.render.sarif import sarif

Make = Callable[..., tuple[Case, list[Row]]]
REACHED = [
    ("informational", "1 finding (love_bombing), 1 deduction (false promise), 1 smoking gun (fault admission)"),
    ("low", "1 finding (love_bombing), 1 deduction (false promise), 1 smoking gun (fault admission)"),
    ("medium", "1 finding (love_bombing), 1 deduction (false promise)"),
    ("high", "1 finding (love_bombing), 1 deduction (false promise)"),
]


@pytest.mark.parametrize(("level", "expected"), REACHED)
def test_findings_deductions_and_smoking_guns_count_by_their_levels(make_case: Make, level: str, expected: str) -> None:
    case = with_moments(make_case()[0])
    assert failing_line(at_or_above(case, level), level) == f"--fail-on {level}: {expected}"


def test_a_finding_counts_by_its_own_level_which_is_finer_than_sarif(make_case: Make) -> None:
    case, _ = make_case()
    assert {each.level for each in case.findings} == {"high"}
    assert at_or_above(case, "critical") == []
    low = msgspec.structs.replace(case.findings[0], level="informational")
    case = msgspec.structs.replace(case, findings=(low,), sessions=())
    assert at_or_above(case, "low") == []
    assert len(at_or_above(case, "informational")) == 1


@pytest.mark.parametrize("level", [each for each in LEVELS if each in ("informational", "medium", "high")])
def test_the_lowest_level_of_each_kind_counts_as_many_as_sarif_lists(make_case: Make, level: str) -> None:
    case = with_moments(make_case()[0])
    listed = [each["level"] for each in sarif(case, {})["runs"][0]["results"]]
    bar = ORDER.index(SARIF[level])
    assert len(at_or_above(case, level)) == sum(ORDER.index(each) >= bar for each in listed)


def test_a_lead_is_a_note_and_counts_at_no_level_while_an_unknown_confidence_counts(make_case: Make) -> None:
    case = msgspec.structs.replace(make_case()[0], sessions=())
    lead = msgspec.structs.replace(case.findings[0], confidence=0.3)
    unknown = msgspec.structs.replace(case.findings[0], confidence=None)
    case = msgspec.structs.replace(case, findings=(lead,))
    assert [each["level"] for each in sarif(case, {})["runs"][0]["results"]] == ["note"]
    assert at_or_above(case, "informational") == []
    assert len(at_or_above(msgspec.structs.replace(case, findings=(unknown,)), "high")) == 1


@pytest.mark.parametrize(
    ("decided", "failed", "left_out"),
    [
        (None, ["--fail-on lead: 2 leads above the cut"], []),
        ("unsure", ["--fail-on lead: 2 leads above the cut"], []),
        ("rejected", ["--fail-on lead: 1 lead above the cut"], ["1 rejected"]),
        ("confirmed", ["--fail-on lead: 1 lead above the cut"], ["1 confirmed"]),
    ],
)
def test_a_gate_on_leads_counts_those_on_which_somebody_has_to_decide(
    decided: Any, failed: list[str], left_out: list[str]
) -> None:
    one = Lead(id="a", rank=1, kind="agent", agent="ada", conversation=None, reason="", message_ids=("m1",),
               message_conversations=("c",), score=2.0, above_cut=True, decided=decided)  # fmt: skip
    pair = msgspec.structs.replace(one, id="b", kind="conversation", conversation="c", decided=None)
    other_side, below = (msgspec.structs.replace(pair, id=name, above_cut=name == "c") for name in "cd")
    case = Case(version="0", parameters={}, leads=(one, pair, other_side, below))
    assert Gates(level="lead").failures(case) == failed
    assert [line.rpartition("(")[2].rstrip(")") for line in Gates(level="lead").left_out(case)] == left_out
    assert Gates(level="high").left_out(case) == []
    listed = sarif(case, {})["runs"][0]["results"]
    assert [each["partialFingerprints"]["lead/v1"] for each in listed] == ["a", "b"]
    assert ["suppressions" in each for each in listed] == [decided == "rejected", False]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"confidence": 0.9, "level": "low"}, {"confidence": 0.7, "level": "critical"}),
        ({"confidence": 0.91, "ids": 5}, {"confidence": 0.93, "ids": 2, "level": "critical"}),
        ({"confidence": 0.9, "level": "critical"}, {"confidence": 0.9, "level": "low", "strength": 1.0}),
        ({"confidence": 0.6, "ids": 2}, {"confidence": None, "ids": 5}),
    ],
)
def test_findings_stand_by_confidence_then_by_the_messages_that_support_them(
    make_case: Make, first: dict[str, Any], second: dict[str, Any]
) -> None:
    def finding(name: str, count: int = 3, **facts: Any) -> Finding:
        ids = tuple(f"{name}{number}" for number in range(facts.pop("ids", count)))
        base = make_case()[0].findings[0]
        return msgspec.structs.replace(
            base, finding_id=name, pattern=name, message_ids=ids, message_conversations=("c",) * len(ids), **facts
        )

    likelier, other = finding("z", **first), finding("a", **second)
    assert [each.finding_id for each in order_findings((other, likelier))] == ["z", "a"]
    assert finding_state(finding("b", confidence=0.95)) == "sure"
    assert finding_state(finding("b", confidence=0.95, ids=2)) == "finding"


def test_rules_that_find_one_pattern_in_the_same_messages_are_one_result(make_case: Make) -> None:
    case = msgspec.structs.replace(make_case()[0], sessions=())
    ids = case.findings[0].message_ids
    places = ("here",) * len(ids)
    sure = msgspec.structs.replace(case.findings[0], finding_id="b", confidence=0.9, message_conversations=places)
    again = msgspec.structs.replace(sure, finding_id="a", confidence=0.7, message_ids=(*ids[1:], "elsewhere"))
    apart = msgspec.structs.replace(again, finding_id="c", message_conversations=("there",) * len(ids))
    other = msgspec.structs.replace(again, finding_id="d", pattern="darvo")
    listed = order_findings((again, sure, apart, other))
    assert [finding.finding_id for finding in listed] == ["b", "c", "d"]
    case = msgspec.structs.replace(case, findings=(again, sure))
    assert len(sarif(case, {})["runs"][0]["results"]) == len(at_or_above(case, "low")) == 1
    assert findings_words(case).startswith("1 sequence of messages is consistent")


def test_what_is_more_likely_than_not_stays_before_what_nobody_measured(make_case: Make) -> None:
    finding = make_case()[0].findings[0]
    finding = msgspec.structs.replace(finding, message_conversations=("here",) * len(finding.message_ids))
    some = [msgspec.structs.replace(finding, finding_id=str(sure), confidence=sure) for sure in (0.3, None, 0.6)]
    assert [each.finding_id for each in distinct(some)] == ["0.6"]
    assert [each.finding_id for each in distinct(some[:2])] == ["None"]


@pytest.mark.parametrize(("confidence", "counted"), [(None, 1), (0.6, 1), (0.61, 0), (0.2, 1)])
def test_a_finding_counts_from_the_confidence_asked_for(
    make_case: Make, confidence: float | None, counted: int
) -> None:
    case = msgspec.structs.replace(make_case()[0], sessions=())
    likely = msgspec.structs.replace(case.findings[0], confidence=0.6)
    case = msgspec.structs.replace(case, findings=(likely,))
    assert len(at_or_above(case, "high", confidence)) == counted


def test_a_contradicted_claim_counts_once_beside_the_points_of_its_message(make_case: Make) -> None:
    case, _ = make_case()
    session = next(each for each in case.sessions if each.deductions)
    taken = session.deductions[0]
    sentence = taken.quotes[0]
    claim = LedgerClaim(
        conversation=session.conversation, message_id=taken.message_id, position=taken.position, agent="a", time=None,
        kind="fixed", object="", sentence=sentence, state="contradicted", reason="The code is the same.",
    )  # fmt: skip
    elsewhere = msgspec.structs.replace(claim, message_id="another")
    for claims, more in (((claim,), 0), ((claim, elsewhere), 1), ((elsewhere,), 1)):
        with_claims = msgspec.structs.replace(session, claims=claims)
        changed = msgspec.structs.replace(case, findings=(), sessions=(with_claims,))
        assert len(at_or_above(changed, "high")) == 1 + more
        listed = [each["ruleId"] for each in sarif(changed, {})["runs"][0]["results"]]
        assert listed.count("contradicted_claim") == more


@pytest.mark.parametrize(
    ("state", "level", "reached"),
    [
        ("disputed", "medium", 1), ("disputed", "low", 1), ("disputed", "high", 0), ("disputed", "bypass", 0),
        ("unsupported", "informational", 0), ("withdrawn", "informational", 0), ("contradicted", "high", 1),
    ],
)  # fmt: skip
def test_a_claim_to_which_a_person_answers_that_it_fails_counts_as_medium(
    make_case: Make, state: ClaimState, level: str, reached: int
) -> None:
    case, _ = make_case()
    sentence = next(each for each in case.sessions if each.deductions).deductions[0].quotes[0]
    claim = LedgerClaim(
        conversation="c", message_id="m", position=3, agent="a", time=None, kind="fixed", object="", sentence=sentence,
        state=state, reason="The next words of the person say so.",
    )  # fmt: skip
    session = msgspec.structs.replace(case.sessions[0], deductions=(), moments=(), claims=(claim,))
    case = msgspec.structs.replace(case, findings=(), sessions=(session,))
    assert Gates(level=level).failures(case) == [f"--fail-on {level}: 1 {state} claim (fixed)"] * reached
    listed = [(each["ruleId"], each["level"]) for each in sarif(case, {})["runs"][0]["results"]]
    counted = {"disputed": [("disputed_claim", "warning")], "contradicted": [("contradicted_claim", "error")]}
    assert listed == counted.get(state, [])


@pytest.mark.parametrize(("kind", "level", "reached"), [
    ("no_verify", "high", 1), ("no_verify", "critical", 0), ("silenced", "bypass", 1),
    ("part_run", "high", 0), ("part_run", "medium", 1), ("part_run", "bypass", 1),
])  # fmt: skip
def test_a_way_round_a_check_counts_and_is_named(make_case: Make, kind: BypassKind, level: str, reached: int) -> None:
    case, _ = make_case()
    line = "git commit -m 'tides' --no-verify"
    bypass = Bypass(kind=kind, message_id="m", position=3, agent="a", explanation="It went round.", lines=(line,))
    session = msgspec.structs.replace(case.sessions[0], deductions=(), moments=(), claims=(), bypasses=(bypass,))
    case = msgspec.structs.replace(case, findings=(), sessions=(session,))
    named = f"--fail-on {level}: 1 way round a check ({kind.replace('_', ' ')})"
    assert Gates(level=level).failures(case) == [named] * reached
    (listed,) = sarif(case, {})["runs"][0]["results"]
    assert (listed["ruleId"], line in listed["message"]["text"]) == ("check_bypass", True)


def test_what_says_nothing_of_a_check_does_not_count_for_the_gate_of_checks(make_case: Make) -> None:
    case = with_moments(make_case()[0])
    bare = (msgspec.structs.replace(each, deductions=()) for each in case.sessions)
    assert Gates(level="bypass").failures(msgspec.structs.replace(case, sessions=tuple(bare))) == []


def test_each_gate_says_what_did_not_hold(make_case: Make) -> None:
    case, _ = make_case()
    low = next(each for each in case.sessions if each.score is not None and each.deductions)
    assert low.score is not None
    assert Gates(score=low.score).failures(msgspec.structs.replace(case, sessions=(low,))) == []
    (line,) = Gates(score=low.score + 1).failures(msgspec.structs.replace(case, sessions=(low,)))
    assert line == f"--fail-under {low.score + 1}: 1 session ({low.conversation} {low.score})"
    unscored = msgspec.structs.replace(low, score=None, deductions=())
    assert Gates(score=100).failures(msgspec.structs.replace(case, sessions=(unscored,))) == []
    (gap,) = Gates(unassessed=True).failures(msgspec.structs.replace(case, sessions=(unscored,)))
    assert gap.startswith("--fail-on-unassessed: ")
    assert Gates().failures(case) == []


TABLE = (Path(__file__).parents[2] / "docs" / "recipes" / "ci.md").read_text(encoding="utf-8")
COUNTED: dict[str, dict[str, Any]] = {  # how a row of the table begins, and what a session has then
    "a contradicted claim": {"claim": "contradicted"},
    "a check was skipped": {"bypass": {"kind": "skipped"}},
    "the same": {"bypass": {"kind": "skipped", "disclosed": True}},
    "more is claimed": {"bypass": {"kind": "part_run"}},
    "a [disputed claim]": {"claim": "disputed"},
    "a check that nobody saw fail": {"bypass": {"kind": "suppressed"}},
    "a claim that nothing checked": {"claim": "unsupported"},
    "claims that could not be read": {"unread": "it is mostly in German"},
}
ROWS = [line.strip("| ").split(" | ") for line in TABLE.split("| `undersong claims --hook` |")[1].splitlines()[2:10]]


@pytest.mark.parametrize("cells", ROWS, ids=lambda cells: cells[0][:30])
def test_the_table_of_what_counts_where_is_true(make_case: Make, cells: list[str]) -> None:
    case, _ = make_case()
    what, level, *gates, claims, hook = cells
    (about,) = (facts for start, facts in COUNTED.items() if what.startswith(start))
    taken = next(each for each in case.sessions if each.deductions).deductions[0]
    base = msgspec.structs.replace(case.sessions[0], deductions=(), moments=(), claims=(), bypasses=(), score=100)
    base = msgspec.structs.replace(base, profile="coding", unread=about.get("unread", ""))
    if state := about.get("claim"):
        claim = LedgerClaim(
            conversation=base.conversation, message_id=taken.message_id, position=3, agent="a", time=None, kind="tests",
            object="", sentence=taken.quotes[0], state=state, reason="So it is.",
        )  # fmt: skip
        base = msgspec.structs.replace(base, claims=(claim,))
    if state == "contradicted":
        base = msgspec.structs.replace(base, deductions=(taken,), score=100 - taken.points)
    if facts := about.get("bypass"):
        bypass = Bypass(message_id="m", position=3, agent="a", explanation="It went round.", **facts)
        base = msgspec.structs.replace(base, bypasses=(bypass,))
    case = msgspec.structs.replace(case, findings=(), sessions=(base,), problems=())
    high, medium, low = (bool(Gates(level=name).failures(case)) for name in ("high", "medium", "low"))
    got = "high" if high else "medium" if medium else "low" if low else "none"
    assert got == level.split(":")[0]
    asked = (Gates(level="high"), Gates(level="medium"), Gates(level="bypass"), Gates(score=100))
    assert [bool(gate.failures(case)) for gate in asked] == [cell == "fails" for cell in gates]
    assert bool(Gates(unread=True).failures(case)) is ("--fail-on-unread" in level)
    assert fails(base) is (claims == "ends with 1")
    answer = answer_for(CheckedSession(base, "claude-code", "f", None, -1))
    does = "goes on" if "decision" in answer else "tells the person" if answer else "–"
    assert hook.split(",")[0] == does
    rows = failed_results(Gates(level="bypass"), case, "undersong explain")
    assert [row["command"] for row in rows] == ["undersong explain " + row for row in
            ([taken.message_id] if state == "contradicted" else ["m"] if gates[2] == "fails" else [])]  # fmt: skip
