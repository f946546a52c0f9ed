"""Claude.ai exports: blocks before flat text, latency from block times, branches from parents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.formats.conftest import outcome

SAMPLE = Path(__file__).parent.parent / "samples" / "claude" / "conversations.json"


def export(*messages: Any) -> list[dict[str, Any]]:
    return [{"uuid": "c", "name": "n", "chat_messages": list(messages)}]


def claude_message(key: str, text: Any, sender: str = "human", **fields: Any) -> dict[str, Any]:
    return {"uuid": key, "sender": sender, "text": text} | fields


def test_blocks_win_over_the_flat_text_and_give_the_latency() -> None:
    answer = outcome(SAMPLE).only.messages[1]
    assert answer.text == "Not outdoors; wait for the last frost."
    assert answer.latency == 3.5
    assert answer.model is None


def test_an_empty_list_of_blocks_falls_back_to_the_flat_text() -> None:
    assert outcome(SAMPLE).only.messages[2].text == "My neighbour says it is fine."


def test_tools_inside_an_answer_are_calls_and_results_not_text() -> None:
    answer = outcome(SAMPLE).only.messages[3]
    assert answer.text == "You are right, go ahead."
    assert answer.tool_calls[0].input == {"place": "Graz"}
    assert (answer.tool_results[0].text, answer.tool_results[0].is_error) == ("frost expected", False)


def test_thinking_and_attachments_are_counted() -> None:
    assert len(outcome(SAMPLE).problem_texts("note")) == 2


def test_an_edited_question_leaves_a_branch(ingest: Any) -> None:
    result = ingest(
        export(
            claude_message("1", "first try", parent_message_uuid="root"),
            claude_message("2", "old answer", "assistant", parent_message_uuid="1"),
            claude_message("3", "second try", parent_message_uuid="root"),
            claude_message("4", "new answer", "assistant", parent_message_uuid="3"),
        )
    )
    assert [message.branch for message in result.only.messages] == ["1", "1", None, None]
    assert [message.reply_to for message in result.only.messages] == [None, "1", None, "3"]


def test_wrong_messages_are_reported_with_their_pointer(ingest: Any) -> None:
    result = ingest(
        export(
            claude_message("1", "ok"),
            7,
            claude_message("2", None),
            claude_message("3", "x", "ghost"),
            claude_message("4", "", created_at="soon"),
        )
    )
    assert [message.text for message in result.only.messages] == ["ok", ""]
    assert [problem.where.split("#")[1] for problem in result.problems if problem.kind == "record"] == [
        "/0/chat_messages/1", "/0/chat_messages/2", "/0/chat_messages/3"
    ]  # fmt: skip
    assert any("time that cannot be read" in note for note in result.problem_texts("note"))
