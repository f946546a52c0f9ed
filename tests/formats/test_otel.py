"""Traces of model calls: histories that every call repeats are read once, whatever the convention."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats.conftest import outcome

SAMPLES = Path(__file__).parent.parent / "samples" / "otel"


def call(trace: str, start: int, said: list[tuple[str, str]], answer: str, **more: str) -> dict[str, Any]:
    parts = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in said]
    values = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(parts),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]),
        **more,
    }
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]
    ends = {"startTimeUnixNano": str(start * 10**9), "endTimeUnixNano": str((start + 1) * 10**9)}
    return {"traceId": trace, "name": "chat", "attributes": attributes} | ends


def otlp(*spans: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def test_calls_out_of_order_are_one_conversation_with_each_message_once() -> None:
    result = outcome(SAMPLES / "trace.json")
    assert [(message.role, message.text) for message in result.only.messages] == [
        ("user", "Which pump feeds the north tank?"),
        ("assistant", ""),
        ("tool", "pump 3, last serviced 2026-01-09"),
        ("assistant", "Pump 3 feeds it."),
        ("user", "When was it serviced?"),
        ("assistant", "On 9 January 2026."),
    ]
    assert result.only.messages[1].tool_calls[0].input == {"tank": "north"}
    assert result.only.messages[5].model == "m-small"


def test_a_call_without_captured_content_is_said() -> None:
    (note,) = outcome(SAMPLES / "trace.json").problem_texts("note")
    assert "were not captured" in note


def test_flat_and_nested_attributes_of_openinference_are_the_same() -> None:
    result = outcome(SAMPLES / "phoenix.jsonl")
    assert (result.only.id, [message.text for message in result.only.messages]) == (
        "valve-2",
        ["Is valve 2 open?", "Yes, since noon.", "Then close it.", "Closed."],
    )


def test_a_history_that_was_cut_at_its_beginning_adds_only_what_is_new(ingest: Any) -> None:
    first = call("t", 1_770_000_000, [("user", "a"), ("assistant", "b"), ("user", "c")], "d")
    second = call("t", 1_770_000_060, [("user", "c"), ("assistant", "d"), ("user", "e")], "f")
    assert [message.text for message in ingest(otlp(second, first)).only.messages] == list("abcdef")


def test_the_same_words_twice_are_two_messages(ingest: Any) -> None:
    one = call("t", 1_770_000_000, [("user", "go")], "ok")
    two = call("t", 1_770_000_060, [("user", "go"), ("assistant", "ok"), ("user", "go")], "ok")
    assert [message.text for message in ingest(otlp(one, two)).only.messages] == ["go", "ok", "go", "ok"]


def test_older_numbered_attributes_are_read(ingest: Any) -> None:
    names = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "is it safe?",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "yes",
    }
    span = {"traceId": "t", "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in names.items()]}
    assert [message.text for message in ingest(otlp(span)).only.messages] == ["is it safe?", "yes"]


def test_a_broken_span_is_named_and_the_others_are_read(ingest: Any) -> None:
    good = call("t", 1_770_000_000, [("user", "a")], "b")
    bad = call("u", 1_770_000_000, [], "b") | {
        "attributes": [{"key": "gen_ai.input.messages", "value": {"stringValue": "[{"}}]
    }
    result = ingest(otlp(7, bad, {"attributes": [3, {"key": {}}]}, good))
    assert [message.text for message in result.only.messages] == ["a", "b"]
    assert len(result.problem_texts("record")) == 2


@pytest.mark.parametrize("key", ["gen_ai.request.model", "gen_ai.conversation.id"])
def test_a_sentence_in_place_of_a_name_is_noted(ingest: Any, key: str) -> None:
    span = call("t1", 1, [("user", "Which pump?")], "Pump 3.", **{key: "It was serviced on the ninth."})
    assert ingest(otlp(span), "a.json").problem_texts("note") == [f"1 × words under {key!r}, not read"]
    span = call("t1", 1, [("user", "Which pump?")], "Pump 3.", **{key: "pump-house small"})
    assert ingest(otlp(span), "a.json").problem_texts("note") == []
