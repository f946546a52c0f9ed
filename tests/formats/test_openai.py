"""OpenAI messages: one conversation a line, or a bare list; tools and the Responses items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.formats.conftest import outcome

SAMPLE = Path(__file__).parent.parent / "samples" / "openai" / "chats.jsonl"
CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


def test_each_line_is_a_conversation_named_after_file_and_line() -> None:
    first, second = outcome(SAMPLE).conversations
    assert (first.id, second.id) == ("chats-0", "chats-1")
    assert second.messages[0].author == "ada"
    assert second.messages[1].model == "m-2"


def test_calls_and_results_are_paired() -> None:
    call, result = outcome(SAMPLE).conversations[0].messages[2:4]
    assert (call.text, call.tool_calls[0].id, call.tool_calls[0].name) == ("", "call_1", "lookup")
    assert (result.author, result.role, result.tool_results[0].call_id) == ("lookup", "tool", "call_1")


@pytest.mark.parametrize(
    ("content", "name"),
    [(CHAT, "a.json"), (CHAT, "a.jsonl"), ({"messages": CHAT}, "a.json"), ([{"messages": CHAT}], "a.json"),
     ({"input": CHAT[:1], "output": CHAT[1:]}, "a.json")],
)  # fmt: skip
def test_lists_and_objects_give_the_same_messages(ingest: Any, content: Any, name: str) -> None:
    found = ingest(content, name)
    assert [(message.role, message.text) for message in found.only.messages] == [("user", "hi"), ("assistant", "hello")]
    assert found.files[0].source_format == "openai"


def test_items_of_the_responses_api_are_read(ingest: Any) -> None:
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]},
        {"type": "function_call", "call_id": "1", "name": "grep", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "found"},
    ]
    messages = ingest({"input": items}).only.messages
    assert [(message.author, message.text) for message in messages] == [
        ("user", "look"), ("assistant", ""), ("grep", "found")
    ]  # fmt: skip


def test_wrong_messages_are_reported_and_an_empty_list_is_noted(ingest: Any) -> None:
    rows = [
        {"messages": [*CHAT, 3, {"role": "user", "content": None}, {"role": "x", "content": "y"}]},
        {"messages": []},
    ]
    found = ingest(rows, "a.jsonl")
    assert len(found.only.messages) == 2
    assert found.files[0].skipped == 3
    assert found.told("note") == ["1 × conversation without messages"]
