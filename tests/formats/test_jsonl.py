"""Our JSON Lines: any number of named agents, interleaved conversations, rows of earlier steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.formats.conftest import outcome
from undersong.models import Conversation, Row, encode

SAMPLE = Path(__file__).parent.parent / "samples" / "jsonl" / "harbour.jsonl"


def test_interleaved_conversations_come_apart() -> None:
    harbour, quay = outcome(SAMPLE).conversations
    assert [message.id for message in harbour.messages] == ["h1", "h2", "h3"]
    assert [message.id for message in quay.messages] == ["q1", "q2", "q3"]
    assert harbour.title == "Harbour talk"


def test_named_agents_are_the_same_in_every_conversation() -> None:
    harbour, quay = outcome(SAMPLE).conversations
    assert harbour.messages[0].agent == quay.messages[1].agent == "kira"
    assert quay.messages[2].agent == "quay-bot-1"
    assert harbour.messages[2].observed == "no"


def test_a_line_keeps_its_number() -> None:
    assert str(outcome(SAMPLE).conversations[0].messages[1].source_ref).endswith("harbour.jsonl:3")


@pytest.mark.parametrize(
    ("row", "role", "agent"),
    [
        ({"author": "kira", "role": "agent"}, "agent", "kira"),
        ({"author": "kira"}, "participant", "in/kira"),
        ({"author": "user"}, "user", "in/user"),
        ({"role": "assistant"}, "assistant", "in/assistant"),
        ({"agent_id": "k-1"}, "agent", "k-1"),
        ({"author": "kira", "agent_id": "k-1", "role": "participant"}, "participant", "k-1"),
        ({"author": {"id": 7, "name": "kira"}, "role": "agent"}, "agent", "kira"),
        ({"author": "kira", "role": "captain"}, "participant", "in/kira"),
    ],
)
def test_role_and_identity_follow_from_what_is_given(ingest: Any, row: dict[str, Any], role: str, agent: str) -> None:
    message = ingest([row | {"text": "x"}], "in.jsonl").only.messages[0]
    assert (message.role, message.agent) == (role, agent)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"author": "a"}, "without text"),
        ({"author": "a", "text": 5}, "a text that is a number"),
        ({"author": "a", "text": {}}, "a text that is an object"),
        ({"text": "x"}, "without an author"),
        (7, "a message that is a number"),
        (None, "a message that is null"),
        ([], "a message that is a list"),
    ],
)
def test_a_wrong_row_is_reported_with_its_line_and_the_rest_goes_on(ingest: Any, row: Any, expected: str) -> None:
    good = {"author": "a", "text": "fine"}
    result = ingest([good, row, good], "in.jsonl")
    assert len(result.only.messages) == 2
    (problem,) = result.problems
    assert expected in problem.what
    assert problem.where.endswith("in.jsonl:2")
    assert problem.remedy
    assert result.files[0].skipped == 1


def test_a_time_that_cannot_be_read_costs_the_time_not_the_message(ingest: Any) -> None:
    result = ingest(
        [{"author": "a", "text": "x", "ts": "1901-Spring"}, {"author": "a", "text": "y", "ts": 1e300}], "in.jsonl"
    )
    assert [message.time for message in result.only.messages] == [None, None]
    assert result.problem_texts("note") == [
        "2 × time that cannot be read, taken as unknown; write ISO 8601 or epoch seconds"
    ]
    assert result.files[0].skipped == 0


@pytest.mark.parametrize("wrong", [-1, 1.5, "3", 1 << 70, True])
def test_a_place_that_is_none_is_told_and_costs_the_place_not_the_message(ingest: Any, wrong: object) -> None:
    rows = [{"conversation": "c", "author": "a", "text": text, "position": wrong} for text in "xy"]
    result = ingest(rows, "in.jsonl")
    assert [message.text for message in result.only.messages] == ["x", "y"]
    assert result.problem_texts("note") == ["2 × position that is no whole number from 0, read as none"]


@pytest.mark.parametrize("wrong", ["maybe", True, ["yes"]])
def test_who_watched_is_told_where_it_cannot_be_read(ingest: Any, wrong: object) -> None:
    rows = [{"conversation": "c", "author": "a", "text": text, "observed": wrong} for text in "xy"]
    result = ingest(rows, "in.jsonl")
    assert [message.observed for message in result.only.messages] == ["unknown", "unknown"]
    assert result.problem_texts("note") == ["2 × observed that is neither yes, no nor unknown, taken as unknown"]


def test_a_line_may_hold_a_whole_conversation(ingest: Any) -> None:
    rows = [
        {"conversation_id": "c1", "labels": {}, "messages": [
            {"author": "ann", "role": "user", "text": "hi", "ts": None}, {"author": "ann", "text": None}]},
        {"messages": [{"author": "bob", "role": "agent", "text": "yo"}]},
        {"conversation_id": "c3", "messages": []},
    ]  # fmt: skip
    result = ingest(rows, "in.jsonl")
    assert [(each.id, len(each.messages)) for each in result.conversations] == [("c1", 1), ("in-2", 1)]
    assert result.problem_texts("record") == ["message 1: a message without text"]
    assert result.problem_texts("note") == ["1 × conversation without messages"]


def test_tools_latency_and_tokens_are_kept(ingest: Any) -> None:
    row = {"author": "bot", "role": "assistant", "latency_ms": 250, "tokens": 12, "tool_calls": [{"name": "ls"}, "?"],
           "tool_results": [{"call_id": "1", "content": "a b", "is_error": False}]}  # fmt: skip
    message = ingest([row | {"text": "x"}], "in.jsonl").only.messages[0]
    assert (message.latency, message.tokens, len(message.tool_calls)) == (0.25, 12, 1)
    assert message.tool_results[0].text == "a b"


def test_conversations_may_span_files(tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    first.write_text('{"conversation": "c", "id": "1", "author": "a", "text": "x", "time": "2026-01-01T00:00:00Z"}\n')
    second.write_text(
        '{"conversation": "c", "id": "2", "author": "b", "text": "y", "time": "2025-12-31T00:00:00Z"}\n'
        '{"conversation": "c", "id": "1", "author": "a", "text": "x", "time": "2026-01-01T00:00:00Z"}\n'
    )
    result = outcome(tmp_path)
    assert [message.id for message in result.only.messages] == ["2", "1"]
    assert [(each.conversations, each.messages) for each in result.files] == [(1, 1), (1, 2)]
    assert len(result.problem_texts("note")) == 1


def test_rows_of_earlier_steps_are_read_back(tmp_path: Path) -> None:
    conversations = outcome(SAMPLE.parent.parent).conversations
    path = tmp_path / "rows.jsonl"
    path.write_bytes(
        b"\n".join(encode(row_of(each, number)) for each in conversations for number in range(len(each.messages)))
    )
    again = outcome(path).conversations
    assert [(each.id, *map(row_like, each.messages)) for each in again] == [
        (each.id, *map(row_like, each.messages)) for each in conversations
    ]


def row_of(conversation: Conversation, number: int) -> Row:
    message = conversation.messages[number]
    return Row(**{name: getattr(message, name) for name in ROW_FIELDS})


def row_like(message: Any) -> tuple[Any, ...]:
    return tuple(getattr(message, name) for name in ROW_FIELDS)


ROW_FIELDS = ("id", "conversation", "position", "time", "agent", "target", "role", "observed", "branch", "text")


@pytest.mark.parametrize(
    ("keys", "key_pairs"),
    [
        (
            {"conversationId": "c9", "createdAt": "2026-01-01"},
            ["conversationId conversation_id", "createdAt created_at"],
        ),
        ({"session_id": 4, "date": "2026-01-01"}, ["date time", "session_id conversation"]),
        ({"conversation": "c", "session_id": 4, "ts": 1735725600, "date": "2026-01-01", "tier": "deep"}, []),
        ({"conversation_id": "c", "conversationId": "c", "createdAt": "x", "time": "2026-01-01"}, []),
        ({"user_id": "u1", "sender": "x"}, ["user_id author"]),
    ],
)
def test_a_key_that_looks_like_one_that_is_read_is_named(
    ingest: Any, keys: dict[str, Any], key_pairs: list[str]
) -> None:
    result = ingest([{"author": "ann", "text": "a"} | keys, {"author": "bo", "text": "b"}], "a.jsonl")
    expected = [f"1 × key {key!r}, which is not read; {meant!r} is" for key, meant in map(str.split, key_pairs)]
    assert result.problem_texts("note") == expected


TALKS = [
    {"id": "c1", "messages": [{"author": "kira", "text": "Hello, Bo."}, {"author": "bo", "text": "Hello."}]},
    {"conversation": "c2", "title": "Tea", "messages": [{"author": "kira", "content": "Tea, Al?"}]},
]


@pytest.mark.parametrize("wrapper", ["conversations", "threads", "data"])
def test_a_document_may_hold_its_conversations_in_a_list(ingest: Any, wrapper: str) -> None:
    result = ingest({"version": 2, wrapper: TALKS})
    assert {each.id: len(each.messages) for each in result.conversations} == {"c1": 2, "c2": 1}
    assert result.conversations[1].title == "Tea"
    assert str(result.conversations[0].messages[1].source_ref).endswith(f"input.json#/{wrapper}/0/messages/1")
    assert result.problems == []


def test_a_conversation_may_be_a_bare_list_of_messages(ingest: Any) -> None:
    result = ingest({"conversations": [each["messages"] for each in TALKS] + [[], [7]]})
    assert {each.id: len(each.messages) for each in result.conversations} == {"input-0": 2, "input-1": 1}
    assert str(result.conversations[0].messages[1].source_ref).endswith("input.json#/conversations/0/1")
    assert [problem.what for problem in result.problems] == [
        "a message that is a list",
        "message 0: a message that is a number",
    ]


def test_messages_in_a_list_of_conversations_name_their_own(ingest: Any) -> None:
    rows = [{"conversation": key, "author": "kira", "role": "agent", "text": "x"} for key in "abab"]
    assert {each.id: len(each.messages) for each in ingest({"conversations": rows}).conversations} == {"a": 2, "b": 2}


def test_a_key_that_is_not_read_is_named_in_a_wrapped_document(ingest: Any) -> None:
    result = ingest({"conversations": [{"messages": [{"author": "kira", "text": "x", "sent_at": "2026-01-01"}]}]})
    assert result.problem_texts("note") == ["1 × key 'sent_at', which is not read; 'time' is"]


@pytest.mark.parametrize(
    ("links", "answered"),
    [
        ({"reply_to": "a"}, "a"),
        ({"parent_id": "a"}, "a"),
        ({"in_reply_to": "a"}, "a"),
        ({"in_reply_to": "a", "parent_id": "root"}, "a"),
        ({"reply_to": "a", "parent_id": "root"}, "a"),
        ({"reply_to": None, "parent_id": "a"}, "a"),
        ({"parent_id": None}, None),
        ({"parent_comment": "a"}, None),
        ({"parents": "a"}, None),
        ({"thread_root": "a"}, None),
        ({"in_reply_to_name": "ada"}, None),
    ],
)
def test_a_link_to_what_is_answered_is_read_under_its_usual_names(
    links: dict[str, Any], answered: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "in.jsonl"
    rows = [
        {"id": "a", "author": "ada", "text": "Did it rain?"},
        {"id": "b", "author": "bo", "text": "It did."} | links,
    ]
    path.write_bytes(b"".join(encode(row) + b"\n" for row in rows))
    (conversation,) = outcome(path).conversations
    assert conversation.messages[1].reply_to == answered
