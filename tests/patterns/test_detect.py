"""Findings and outcomes: what a finding says, what became of each rule, and what must not change a finding."""

from __future__ import annotations

import hashlib
import random
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.patterns.rulebox import rule
from undersong.errors import RecordError, UndersongWarning, UsageError
from undersong.models import Finding, Hit, Message, Row
from undersong.patterns.catalog import all_rules, load_rules, named
from undersong.patterns.detect import Detection, detect, detect_patterns, quote, strongest_sentences
from undersong.patterns.live.detector import LiveDetector
from undersong.patterns.tools.rule_tests import table

LOVE_BOMBING = named(all_rules(), "love_bombing")
CYCLE = """
    id who     day conversation compassion goodwill manipulation
    1  kira>bo 0   t            .8  .8  .1
    2  kira    1   u            .7  .7  .1
    x  kira>bo 2   t            .5  .5  .1
    3  kira>bo 3   t            ?   ?   ?
    4  kira>bo 3   t            .75 .7  .2
    5  kira>bo 4   t            .1  .2  .7
"""


def run(rows: list[Row], *rules: object) -> Detection:
    return detect(rows, rules or (LOVE_BOMBING,))  # type: ignore[arg-type]


def test_a_finding_names_its_rows_their_stages_what_lay_between_and_what_was_not_read() -> None:
    rows = [msgspec.structs.replace(row, judge="offline") for row in table(CYCLE)]
    (finding,) = run(rows).findings
    assert (finding.pattern, finding.agent, finding.target) == ("love_bombing", "kira", "bo")
    assert finding.stages == (("PRAISE", "1"), ("PRAISE", "2"), ("PRAISE", "4"), ("TURN", "5"))
    assert finding.message_ids == ("1", "2", "4", "5")
    assert (finding.gap_ids, finding.unread_ids) == (("x",), ("3",))
    assert finding.conversations == ("t", "u")
    assert (finding.start, finding.end) == (rows[0].time, rows[-1].time)
    assert finding.judges == ("offline",)
    assert set(finding.balance) == {"ethos", "logos", "pathos"}
    assert 0 < finding.strength < 1
    assert finding.measures["rise"] > 0.3
    assert len(finding.finding_id) == 32


def test_the_balance_is_that_of_all_rows_whichever_of_them_a_rule_looks_at() -> None:
    rows = table("id who compassion\n1 kira .9\n2 kira .1\n3 kira .2")
    everything = rule("A", A="compassion > 0.8")
    some = rule("A", {"where": "compassion > 0.5", "id": "some"}, A="compassion > 0.8")
    alone = detect(rows, [everything]).findings[0].balance
    for rules in ((some,), (some, everything), (everything, some)):
        assert [finding.balance for finding in detect(rows, rules).findings] == [alone] * len(rules)
    live = LiveDetector([some])
    live.extend(rows)
    live.finish(settle=False)
    assert live.findings() == detect(rows, [some]).findings


def test_no_two_findings_have_one_id() -> None:
    """Each start passes over other rows and ends with the same message: one finding, as a store and a live run have."""
    rows = table("id who compassion\n1 kira .1\n2 kira .1\n3 kira .9")
    several = rule("ANY*? A", {"after_match": "skip to next row"}, A="compassion > 0.8")
    batch = detect(rows, [several])
    assert [(finding.message_ids, finding.gap_ids) for finding in batch.findings] == [(("3",), ())]
    live = LiveDetector([several])
    live.extend(rows)
    live.finish(settle=False)
    assert live.findings() == batch.findings
    assert live.outcomes() == batch.outcomes


def test_the_order_of_the_rows_does_not_matter() -> None:
    rows = table(CYCLE)
    shuffled = random.Random(1).sample(rows, len(rows))
    assert run(shuffled) == run(rows)


def test_without_times_within_cannot_be_checked_and_the_finding_says_so() -> None:
    rows = [msgspec.structs.replace(row, time=None, conversation="t") for row in table(CYCLE)]
    (finding,) = run(rows).findings
    assert (finding.start, finding.end) == (None, None)
    assert any("within 21 days could not be checked" in note for note in finding.notes)


def test_a_contrast_of_tiers_says_what_it_rests_on() -> None:
    kinds = ("deep .1", "standard .7") * 5
    text = "who day tier manipulation\n" + "\n".join(f"kira>bo {day} {kind}" for day, kind in enumerate(kinds))
    (finding,) = run(table(text), named(all_rules(), "alignment_faking")).findings
    assert any("nothing but routing" in note for note in finding.notes)


def test_a_rule_without_its_inputs_is_not_applicable_and_named() -> None:
    needs = rule("A", A='indicator("MAN-URGENCY") and signal("heat") > 0')
    (outcome,) = run(table(CYCLE), needs).outcomes
    assert outcome.status == "not_applicable"
    assert "heat, indicators" in outcome.reason
    (outcome,) = run([row for row in table(CYCLE) if row.state == "unread"]).outcomes
    assert (outcome.status, outcome.reason) == ("not_applicable", "no message was read")
    (outcome,) = run(table(CYCLE), named(all_rules(), "alignment_faking_literal")).outcomes
    assert (outcome.status, outcome.reason) == ("not_applicable", "needs tier, which no read message has")


def test_what_the_judge_gives_decides_before_the_rows_do() -> None:
    rows = table("who manipulation indicators\nkira .5 MAN-URGENCY\n")
    probe = rule("A", A='indicator("MAN-URGENCY")')
    assert len(detect(rows, [probe]).findings) == 1
    detection = detect(rows, [probe], gives={"traits"})
    assert detection.findings == ()
    assert detection.outcomes[0].status == "not_applicable"


def test_a_rule_that_ran_and_found_nothing_says_over_how_many_sequences() -> None:
    (outcome,) = run(table("who compassion\nkira>bo .5\nkira>al .5\nbo .5\n")).outcomes
    assert (outcome.status, outcome.partitions, outcome.findings) == ("ran", 3, 0)


def test_a_search_that_reaches_the_step_limit_gave_up_and_says_where() -> None:
    rows = table("who manipulation\n" + "kira .9\n" * 50 + "bo .1\n")
    tangled = rule("(A | A ANY?)* B", A="manipulation > 0.5", B="manipulation < 0.5 or manipulation > 0.99")
    assert detect(rows, [tangled]).outcomes[0].status == "ran"
    both = [*rows, *table("id who manipulation\ny kira .1\n")]
    (outcome,) = detect(both, [tangled], steps=50).outcomes
    assert outcome.status == "gave_up"
    assert "kira" in outcome.reason


def test_plain_dictionaries_go_in_and_come_out() -> None:
    rows = [msgspec.to_builtins(row) for row in table(CYCLE)]
    (finding,) = detect_patterns(rows)
    assert (finding["pattern"], finding["message_ids"]) == ("love_bombing", ["1", "2", "4", "5"])
    with pytest.raises(RecordError):
        detect_patterns([{"agent": "kira"}])


def warned(rows: list[Any], rules: list[str] | None = None) -> tuple[list[dict[str, Any]], list[str]]:
    with pytest.warns(UndersongWarning) as caught:
        findings = detect_patterns(rows, rules)
    return findings, [str(each.message) for each in caught]


def test_what_is_not_read_of_plain_dictionaries_is_a_warning() -> None:
    rows: list[dict[str, Any]] = [msgspec.to_builtins(row) for row in table(CYCLE)]
    again = {**rows[-1], "traits": {**rows[-1]["traits"], "manipulation": 0.1}}
    (finding,), (warning,) = warned([*rows, again])
    assert finding["message_ids"] == ["1", "2", "4", "5"]
    assert warning.startswith("row:7: row '5' repeats the id of line 6, which is kept; ")
    misspelt = {**rows[0], "id": "y", "traits": {"manipulaton": 0.5, "virtue": 0.5}}
    assert warned([*rows, misspelt])[1] == ["row:7: trait 'manipulaton' is not read; did you mean 'manipulation'?"]


def test_an_empty_list_of_rules_that_could_not_run_is_a_warning() -> None:
    findings, warnings = warned([{"id": "1", "agent": "kira", "traits": None}])
    assert findings == []
    names = [each.id for each in load_rules()]
    assert warnings == [f"{', '.join(names[:3])} and {len(names) - 3} more: not applicable: no message was read"]
    assert detect_patterns([]) == []  # and no warning: nothing was asked
    rows = [{"id": "1", "agent": "kira", "target": "bo", "traits": {"compassion": 0.5, "manipulation": 0.5}}]
    findings, (why,) = warned(rows, ["darvo"])
    assert findings == []
    assert why.startswith("darvo: not applicable: needs deception")


def test_rows_go_in_as_they_are_and_rules_by_their_names() -> None:
    rows = table(CYCLE)
    (finding,) = detect_patterns(rows)
    assert detect_patterns(rows, ["love_bombing"]) == detect_patterns(rows, [LOVE_BOMBING]) == [finding]
    assert detect_patterns(rows, ["darvo"]) == []
    with pytest.raises(UsageError, match="love_bombing"):
        detect_patterns(rows, ["love_bombin"])


SCORE = st.sampled_from([0.05, 0.3, 0.6, 0.9])
ROWS = st.lists(
    st.tuples(st.sampled_from(["kira", "bo"]), st.sampled_from([None, "al", "cy"]), SCORE, SCORE, SCORE, st.booleans()),
    max_size=14,
)


def rows_of(values: list[tuple[str, str | None, float, float, float, bool]], prefix: str = "m") -> list[Row]:
    return [
        Row(
            id=f"{prefix}{i:03}",
            agent=agent,
            target=target,
            position=i,
            state="scored" if read else "unread",
            traits={
                "manipulation": manipulation, "exploitation": exploitation, "deception": manipulation, "dismissal": 0.6,
                "compassion": compassion, "goodwill": compassion, "accuracy": compassion, "reasoning": compassion,
            } if read else None,
        )
        for i, (agent, target, manipulation, exploitation, compassion, read) in enumerate(values)
    ]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(values=ROWS)
def test_another_agents_rows_change_nobodys_findings(
    values: list[tuple[str, str | None, float, float, float, bool]],
) -> None:
    rows, rules = rows_of(values), all_rules()
    together = detect(rows, rules).findings
    apart = [finding for name in ("bo", "kira") for finding in _of(rows, name, rules)]
    assert list(together) == apart


def _of(rows: list[Row], agent: str, rules: object) -> tuple[Finding, ...]:
    return detect([row for row in rows if row.agent == agent], rules).findings  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(values=ROWS)
def test_renumbering_changes_only_ids(values: list[tuple[str, str | None, float, float, float, bool]]) -> None:
    rules = all_rules()
    findings = detect(rows_of(values), rules).findings
    renamed = detect(rows_of(values, "z"), rules).findings
    assert [_without_ids(finding) for finding in renamed] == [_without_ids(finding) for finding in findings]
    assert not {finding.finding_id for finding in findings} & {finding.finding_id for finding in renamed}


def _without_ids(finding: Finding) -> tuple[object, ...]:
    stages = tuple((name, ids[1:]) for name, ids in finding.stages)
    return finding.pattern, finding.agent, finding.target, stages, finding.strength, finding.measures


@settings(max_examples=40, deadline=None)
@given(values=ROWS)
def test_a_targeted_finding_has_a_directed_row_and_an_all_public_one_has_no_target(
    values: list[tuple[str, str | None, float, float, float, bool]],
) -> None:
    rows = {row.id: row for row in rows_of(values)}
    for finding in detect(rows.values(), load_rules()).findings:
        targets = {rows[name].target for name in finding.message_ids}
        assert targets <= {None, finding.target}
        assert finding.target in targets


def finding(*message_ids: str) -> Finding:
    (original,) = run(table(CYCLE)).findings
    return msgspec.structs.replace(original, message_ids=message_ids, message_conversations=("t",) * len(message_ids))


def message(text: str) -> Message:
    return Message(id="1", conversation="t", position=0, author="kira", role="agent", text=text)


TEXT = "  Dear Bo. You must choose today! Nobody else will help you.\nYours, Kira  "
LATE = Hit(trait="manipulation", label="urgency", phrase="choose today", start=400, end=412)
HIT = Hit(trait="manipulation", label="urgency", phrase="choose today", start=20, end=32)


@pytest.mark.parametrize(
    ("text", "hits", "expected"),
    [
        (TEXT, (), "Dear Bo. You must choose today! Nobody else will help you.\nYours, Kira"),
        (TEXT, (HIT,), "You must choose today!"),
        ("word " * 100, (), ("word " * 56).strip()),
        ("x" * 500, (), "x" * 280),
        ("a" * 400 + "choose today" + "b" * 400, (LATE,), "a" * 268 + "choose today"),
    ],
)  # fmt: skip
def test_a_quote_is_verbatim_with_the_hash_of_the_whole_message(
    text: str, hits: tuple[Hit, ...], expected: str
) -> None:
    (quoted,) = quote(finding("1"), {("t", "1"): message(text)}, {("t", "1"): hits}).quotes
    assert quoted.text == expected == text[quoted.start : quoted.end]
    assert quoted.sha256 == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ((34, 60), "Nobody else will help you."),
        ((2, 2), "You must choose today!"),
        ((60, 900), "You must choose today!"),
        ((-3, 5), "You must choose today!"),
        ((0, 2), "You must choose today!"),
    ],
)
def test_the_strongest_sentence_is_quoted_and_a_span_that_the_text_has_not_is_passed_over(
    span: tuple[int, int], expected: str
) -> None:
    place = ("t", "1")
    (quoted,) = quote(finding("1"), {place: message(TEXT)}, {place: (HIT,)}, strongest={place: span}).quotes
    assert quoted.text == expected == TEXT[quoted.start : quoted.end]


def test_the_strongest_sentence_is_that_of_the_highest_signal() -> None:
    row = Row(
        id="1", conversation="t", signals={"a": 0.6, "b": 0.9, "c": 0.9}, spans={"a": (0, 4), "c": (9, 12), "b": (5, 8)}
    )
    assert strongest_sentences([row, Row(id="2", conversation="t")]) == {("t", "1"): (5, 8)}


def test_a_message_that_is_not_given_or_empty_has_no_quote() -> None:
    assert quote(finding("1", "2"), {("t", "1"): message("  ")}).quotes == ()


@given(text=st.text(max_size=600).filter(str.strip), start=st.integers(0, 600), size=st.integers(1, 20))
def test_any_quote_is_in_the_text_short_and_not_empty(text: str, start: int, size: int) -> None:
    start = min(start, len(text) - 1)
    hit = Hit(trait="manipulation", label="x", phrase="x", start=start, end=min(len(text), start + size))
    for hits in ((), (hit,)):
        for quoted in quote(finding("1"), {("t", "1"): message(text)}, {("t", "1"): hits}).quotes:
            assert quoted.text == text[quoted.start : quoted.end]
            assert len(quoted.text) <= 280


def test_ids_that_repeat_between_conversations_are_told_apart() -> None:
    """Two episodes with the same ids in two threads are two findings, each with its own messages."""
    first = table(CYCLE)
    later = [msgspec.structs.replace(row, conversation=row.conversation + "2", time=shifted(row.time)) for row in first]
    findings = detect([*first, *later], [named(all_rules(), "love_bombing")]).findings
    assert len({finding.finding_id for finding in findings}) == len(findings) == 2
    texts = {(row.conversation, row.id): f"{row.conversation} said {row.id}." for row in (*first, *later)}
    messages = {
        (name, id_): Message(id=id_, conversation=name, position=0, author="kira", role="agent", text=text)
        for (name, id_), text in texts.items()
    }
    for finding in findings:
        wanted = [texts[place] for place in zip(finding.message_conversations, finding.message_ids, strict=True)]
        assert [quoted.text for quoted in quote(finding, messages).quotes] == wanted


def shifted(time: datetime | None) -> datetime | None:
    return time and time + timedelta(days=90)
