"""Codex rollouts: each turn once, the program's own text left out, old files and event streams too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.formats.conftest import outcome

SAMPLE = Path(__file__).parent.parent / "samples" / "codex" / "rollout-2026-02-02.jsonl"


def test_a_turn_that_stands_twice_in_the_file_is_read_once() -> None:
    session = outcome(SAMPLE).only
    assert session.id == "r-77"
    assert [(message.role, message.text) for message in session.messages] == [
        ("user", "Why is the page blank?"),
        ("assistant", ""),
        ("tool", "<body></body>"),
        ("assistant", "The body is empty; nothing is rendered."),
    ]
    assert session.messages[3].model == "gpt-code"


def test_a_call_and_its_output_carry_the_same_id() -> None:
    call, output = outcome(SAMPLE).only.messages[1:3]
    assert (call.tool_calls[0].id, output.tool_results[0].call_id, output.author) == ("k1", "k1", "shell")


def test_text_in_the_users_name_is_counted() -> None:
    assert "1 × text that the program wrote in the user's name, not read" in outcome(SAMPLE).problem_texts("note")


def test_an_old_file_of_bare_items_is_read(ingest: Any) -> None:
    rows = [
        {"id": "old-1", "timestamp": "2025-05-01T10:00:00Z", "instructions": None, "git": {}},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"record_type": "state", "type": "state"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]},
    ]
    result = ingest(rows, "rollout.jsonl")
    assert (result.only.id, [message.text for message in result.only.messages]) == ("old-1", ["hi", "hello"])


def test_the_event_stream_of_exec_is_read(ingest: Any) -> None:
    command = {
        "id": "i1",
        "type": "command_execution",
        "command": "pytest",
        "aggregated_output": "1 failed",
        "exit_code": 1,
    }
    rows = [
        {"type": "thread.started", "thread_id": "t-1"},
        {"type": "turn.started"},
        {"type": "item.started", "item": command},
        {"type": "item.completed", "item": command},
        {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "All tests pass."}},
        {"type": "turn.completed", "usage": {"output_tokens": 5}},
    ]
    session = ingest(rows, "exec.jsonl").only
    assert session.id == "t-1"
    assert [message.text for message in session.messages] == ["", "1 failed", "All tests pass."]
    assert session.messages[1].tool_results[0].is_error is True


def test_wrong_lines_are_reported(ingest: Any) -> None:
    rows = [
        {"type": "session_meta", "payload": {"id": "x"}},
        {"type": "response_item", "payload": 3},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": None}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "fine"}},
    ]
    result = ingest(rows, "rollout.jsonl")
    assert [message.text for message in result.only.messages] == ["fine"]
    assert result.files[0].skipped == 2
