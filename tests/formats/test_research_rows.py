"""Rows of WildChat and LMSYS-Chat, and trajectories of coding agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.formats.conftest import outcome

SAMPLES = Path(__file__).parent.parent / "samples"


def test_a_hashed_address_is_one_person_across_conversations() -> None:
    result = outcome(SAMPLES / "wildchat" / "rows.jsonl")
    people = {message.agent for each in result.conversations for message in each.messages if message.role == "user"}
    assert people == {"ff01aa22cc33"}
    assert {message.model for each in result.conversations for message in each.messages} == {None, "gpt-4o-mini"}


def test_a_row_without_an_address_keeps_its_user_to_itself() -> None:
    result = outcome(SAMPLES / "wildchat" / "lmsys.json")
    assert [message.agent for message in result.only.messages] == ["7d2e/user", "7d2e/vicuna-13b"]


def test_wrong_rows_are_named(ingest: Any) -> None:
    rows = [
        {"conversation_id": "a", "model": "m", "conversation": [{"role": "captain", "content": "x"}, 4]},
        {"conversation": 4},
    ]
    result = ingest(rows, source_format="wildchat")
    assert result.problem_texts("record") == [
        "a turn without a known 'role' and a 'content'",
        "a turn that is not an object",
        "a row without a list 'conversation'",
    ]


def test_steps_calls_answers_and_thoughts_of_a_trajectory() -> None:
    main, inner = outcome(SAMPLES / "atif" / "trajectory.json").conversations
    assert [(message.author, message.role) for message in main.messages] == [
        ("user", "user"),
        ("fixer", "assistant"),
        ("bash", "tool"),
        ("fixer", "assistant"),
        ("bash", "tool"),
        ("fixer", "assistant"),
    ]
    assert main.messages[1].thinking == "Probably a duplicate entry."
    assert main.messages[1].tool_calls[0].input == {"command": "cat ring.py"}
    assert main.messages[4].tool_results[0].text == "1 failed, 3 passed"
    assert inner.id == "bell-tower-7-a"


def test_a_wrong_step_is_named_and_the_others_are_kept(ingest: Any) -> None:
    steps = [{"source": "robot"}, 7, {"step_id": 1, "source": "user", "message": [{"type": "text", "text": "go"}]}]
    result = ingest({"schema_version": "ATIF-v1.0", "agent": [], "steps": steps})
    assert [message.text for message in result.only.messages] == ["go"]
    assert len(result.problem_texts("record")) == 2
