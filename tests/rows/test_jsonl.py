"""Rows from JSON Lines: lenient in names, strict in scores, and no bad line stops the rest."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undersong.errors import RecordError
from undersong.models import TRAITS, Indicator, Problem, Row, encode
from undersong.patterns.detect import detect_patterns
from undersong.rows.jsonl import read_rows, rounded, row_of

DOCUMENT = (Path(__file__).parents[2] / "docs" / "rows.md").read_text(encoding="utf-8")
SCORED = {"id": "1", "agent": "kira", "traits": {"manipulation": 0.5}}


def read(*lines: str | bytes) -> list[Row | Problem]:
    return list(read_rows(lines, name="rows.jsonl"))


def test_the_older_names_of_keys_are_understood() -> None:
    row = row_of({**SCORED, "thread": "t", "ts": "2026-01-01T00:00:00Z", "target": None, "colour": "red"})
    assert (row.conversation, row.time, row.target, row.state) == (
        "t",
        datetime(2026, 1, 1, tzinfo=UTC),
        None,
        "scored",
    )


@pytest.mark.parametrize(
    ("given_keys", "state"),
    [
        ({}, "scored"),
        ({"traits": None}, "unread"),
        ({"traits": {}}, "unread"),
        ({"scored": False}, "unread"),
        ({"scored": True}, "scored"),
        ({"state": "refused"}, "refused"),
        ({"state": "failed", "traits": None}, "failed"),
    ],
)
def test_the_state_is_given_or_follows_from_the_scores(given_keys: dict[str, Any], state: str) -> None:
    row = row_of({**SCORED, **given_keys})
    assert row.state == state
    assert (row.traits is None) == (state != "scored")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ([], ()),
        (["MAN-URGENCY"], (Indicator(id="MAN-URGENCY"),)),
        ([{"id": "MAN-URGENCY", "confidence": 0.4}], (Indicator(id="MAN-URGENCY", confidence=0.4),)),
        ({"MAN-URGENCY": 0.4}, (Indicator(id="MAN-URGENCY", confidence=0.4),)),
    ],
)
def test_indicators_may_be_plain_ids_and_null_is_not_none_seen(value: Any, expected: Any) -> None:
    assert row_of({**SCORED, "indicators": value}).indicators == expected


def test_positions_follow_the_order_within_a_conversation_where_they_are_missing() -> None:
    lines = [json.dumps({"id": str(i), "agent": "a", "thread": thread}) for i, thread in enumerate("ttut")]
    assert [row.position for row in read(*lines) if isinstance(row, Row)] == [0, 1, 0, 2]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        (b"\xff", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"id": "1", "traits": {"virtue": "\\ud800"}}', "not JSON"),
        ('{"agent": "a"}', "row without id"),
        ('{"id": "1", "traits": {"virtue": 1.1}}', "virtue is '1.1'"),
        ('{"id": "1", "traits": {"virtue": true}}', "virtue is 'True'"),
        ('{"id": "1", "traits": [1]}', "traits is not an object"),
        ('{"id": "1", "state": "scored"}', "scored without traits"),
        ('{"id": "1", "state": "lost"}', "unknown state 'lost'"),
        ('{"id": "1", "time": "yesterday"}', "time"),
        ('{"id": "1", "indicators": 3}', "indicators is not a list"),
        ('{"id": "1", "agent": "a", "position": 99999999999999999999999}', "position is 1e+23"),
    ],
)
def test_a_bad_line_is_a_problem_with_its_place_and_the_rest_is_read(line: str | bytes, words: str) -> None:
    problem, row = read("", line, json.dumps(SCORED))
    assert isinstance(problem, Problem)
    assert isinstance(row, Row)
    assert problem.where == "rows.jsonl:2"
    assert words in problem.what


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        (b"\x1f\x8b\x08", "unpack the file"),
        ('{"id": "1", "agent": "a", "time": "2026-01-01"}', "such as 2026-01-01T09:30:00Z"),
    ],
)
def test_a_remedy_fits_what_is_wrong(line: str | bytes, remedy: str) -> None:
    (problem,) = read(line)
    assert isinstance(problem, Problem)
    assert remedy in problem.remedy


def test_a_score_of_null_stays_null_and_an_unknown_trait_is_ignored() -> None:
    traits = {"virtue": None, "charm": 0.3, "goodwill": 1}
    assert row_of({**SCORED, "traits": traits}).traits == {"virtue": None, "goodwill": 1.0}


@pytest.mark.parametrize(("state", "read_as"), [("scored", "scored"), (None, "unread"), ("unread", "unread")])
def test_a_row_to_which_no_trait_applies_is_read_where_it_says_so(state: str | None, read_as: str) -> None:
    row = row_of({"id": "1", "agent": "a", "traits": dict.fromkeys(TRAITS), "state": state})
    assert (row.state, row.traits) == (read_as, dict.fromkeys(TRAITS) if read_as == "scored" else None)


def test_only_null_stands_for_a_missing_score() -> None:
    for junk in ("", "null", "n/a", [], False):
        (problem,) = read(json.dumps({**SCORED, "traits": {"virtue": junk}}))
        assert isinstance(problem, Problem)
        assert (problem.where, "virtue is" in problem.what) == ("rows.jsonl:1", True)


def test_rounding_leaves_null_as_it_is() -> None:
    row = Row(id="1", agent="a", state="scored", traits={"virtue": None, "goodwill": 0.12345})
    assert rounded(row).traits == {"virtue": None, "goodwill": 0.123}
    even = Row(id="1", agent="a", state="scored", traits={"virtue": None, "goodwill": 0.5})
    assert rounded(even) is even


def test_one_bad_mapping_is_an_error() -> None:
    with pytest.raises(RecordError, match="row 1"):
        row_of({"id": "1", "hits": "none"})


@given(
    traits=st.none() | st.dictionaries(st.sampled_from(TRAITS), st.none() | st.floats(0, 1), min_size=1),
    target=st.none() | st.text(max_size=5),
    time=st.none() | st.datetimes(timezones=st.just(UTC)),
)
def test_a_written_row_is_read_back_the_same(traits: Any, target: str | None, time: datetime | None) -> None:
    row = Row(id="1", agent="a", traits=traits, state="scored" if traits else "unread", target=target, time=time)
    assert read(encode(row)) == [row]


@pytest.mark.parametrize("agent", [{}, {"agent": None}, {"agent": ""}])
def test_a_row_without_an_agent_is_refused(agent: dict[str, Any]) -> None:
    with pytest.raises(RecordError, match="row 7 without agent"):
        row_of({"id": "7", "traits": {"manipulation": 0.5}} | agent)


def test_a_row_that_is_one_already_stays_as_it_is() -> None:
    row = row_of(SCORED)
    assert row_of(row) is row


def test_the_example_of_the_documentation_is_found_as_it_says() -> None:
    shown = re.search(r"<!-- example: rows -->\n```json\n(.*?)```", DOCUMENT, re.DOTALL)
    assert shown
    rows = [row for row in read(*shown[1].splitlines()) if isinstance(row, Row)]
    (finding,) = detect_patterns(rows, ["love_bombing"])
    assert finding["message_ids"] == ["1", "2", "4", "5"]
    assert finding["unread_ids"] == ["3"]


def test_the_documentation_names_keys_and_values_that_exist() -> None:
    keys = {
        key for line in re.findall(r"^\| (`.*?) \|", DOCUMENT, re.MULTILINE) for key in re.findall(r"`(\w+)`", line)
    }
    allowed = {*Row.__struct_fields__, "thread", "ts", "timestamp", "scored", "unread", "refused", "failed"}
    assert keys - allowed == set()
    assert all(f"`{trait}`" in DOCUMENT for trait in TRAITS)


def test_a_repeated_id_of_a_conversation_is_told_with_the_line_that_is_kept() -> None:
    rows = [SCORED, SCORED | {"conversation": "c"}, SCORED | {"agent": "tom"}, SCORED | {"id": "2"}]
    items = read(*(json.dumps(row) for row in rows))
    assert [each.id for each in items if isinstance(each, Row)] == ["1", "1", "2"]
    (problem,) = (each for each in items if isinstance(each, Problem))
    assert problem.where == "rows.jsonl:3"
    assert "line 1, which is kept" in problem.what
    assert [each.agent for each in items if isinstance(each, Row)] == ["kira", "kira", "kira"]


def notes(*rows: dict[str, Any]) -> list[tuple[str, str, str]]:
    items = read(*(json.dumps({"id": str(i), **row}) for i, row in enumerate(rows)))
    return [(item.where, item.what, item.remedy) for item in items if isinstance(item, Problem) and item.kind == "note"]


def test_a_misspelt_trait_is_told_once_with_its_line_and_what_was_meant() -> None:
    right, wrong = {"agent": "a", "traits": {"deception": 0.9}}, {"agent": "a", "traits": {"decepton": 0.9}}
    assert notes(right, wrong, wrong) == [("rows.jsonl:2", "trait 'decepton' is not read", "did you mean 'deception'?")]


def test_a_trait_of_ones_own_is_told_with_the_known_ones() -> None:
    ((_, what, remedy),) = notes({"agent": "a", "traits": {"wit": 0.9, "virtue": 0.1}})
    assert what == "trait 'wit' is not read"
    assert all(trait in remedy for trait in TRAITS)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"traist": {"deception": 0.9}}, ["key 'traist' is not read"]),
        ({"traits": {"virtue": 1}, "trait": {}}, []),
        ({"Target": "bo"}, ["key 'Target' is not read"]),
        ({"timestmp": "2026-01-01T00:00:00Z"}, ["key 'timestmp' is not read"]),
        ({"timestmp": "2026-01-01T00:00:00Z", "ts": "2026-01-01T00:00:00Z"}, []),
        ({"deception": 0.9}, ["key 'deception' is not read"]),
        ({"scores": {"deception": 0.9}}, ["key 'scores' is not read"]),
        ({"agent_id": "b", "thread_id": "t"}, ["key 'thread_id' is not read"]),
        ({"colour": "red", "channel": "x", "scored": False}, []),
    ],
)
def test_a_key_is_told_where_it_looks_like_one_that_the_row_lacks(keys: dict[str, Any], expected: list[str]) -> None:
    assert [what for _, what, _ in notes({"agent": "a", **keys})] == expected


@pytest.mark.parametrize(
    ("indicators", "expected"),
    [
        (["MAN-URGENCY"], []),
        ([{"id": "man-urgency"}], ["did you mean 'MAN-URGENCY'?"]),
        ({"MAN-URGENCI": 0.5, "MAN-URGENCY": 0.5}, ["did you mean 'MAN-URGENCY'?"]),
        (["OUR-OWN"], []),
        (None, []),
        ([7], []),
    ],
)
def test_a_misspelt_indicator_is_told(indicators: Any, expected: list[str]) -> None:
    assert [remedy for _, _, remedy in notes({"agent": "a", "indicators": indicators})] == expected


def test_a_byte_order_mark_is_no_part_of_the_first_row() -> None:
    (row,) = read(b"\xef\xbb\xbf" + json.dumps(SCORED).encode())
    assert isinstance(row, Row)


def test_a_truth_value_is_nobody_s_name() -> None:
    with pytest.raises(RecordError, match=r"\$\.agent"):
        row_of({**SCORED, "agent": True})


def test_a_line_that_is_refused_still_says_what_it_may_have_meant() -> None:
    items = read(json.dumps({"id": "1", "agnet": "kira"}))
    assert [item.what for item in items if isinstance(item, Problem)] == [
        "key 'agnet' is not read",
        "row 1 without agent",
    ]


def test_a_file_with_a_name_of_its_own_in_each_row_does_not_tell_them_all() -> None:
    listed = notes(*({"agent": "a", "traits": {f"{i}" * 500: 0.5}} for i in range(100)))
    assert len(listed) == 20
    assert listed[-1][1].endswith("(further such names are not told)")
    assert max(len(what) for _, what, _ in listed) < 200
