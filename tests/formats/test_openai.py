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
    result = ingest(content, name)
    assert [(message.role, message.text) for message in result.only.messages] == [
        ("user", "hi"),
        ("assistant", "hello"),
    ]
    assert result.files[0].source_format == "openai"


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
    result = ingest(rows, "a.jsonl")
    assert len(result.only.messages) == 2
    assert result.files[0].skipped == 3
    assert result.problem_texts("note") == ["1 × conversation without messages"]


def test_blocks_of_anthropics_messages_are_read_as_what_they_are(ingest: Any) -> None:
    messages = [
        {"role": "user", "content": "Delete the draft."},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I will."},
            {"type": "tool_use", "id": "t1", "name": "delete", "input": {"file": "draft"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "no such file"},
            {"type": "text", "text": "And?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    ]  # fmt: skip
    result = ingest({"system": "Be brief.", "messages": messages})
    assert [(message.author, message.text) for message in result.only.messages] == [
        ("system", "Be brief."), ("user", "Delete the draft."), ("assistant", "I will."), ("delete", "no such file"),
        ("user", "And?"), ("assistant", "Done."),
    ]  # fmt: skip
    assert result.only.messages[2].tool_calls[0].input == {"file": "draft"}
    assert [(each.call_id, each.is_error) for each in result.only.messages[3].tool_results] == [("t1", True)]
    assert [message.thinking for message in result.only.messages] == ["", "", "hm", "", "", ""]
    assert result.problem_texts("note") == []


@pytest.mark.parametrize(
    ("message", "thinking", "notes"),
    [
        ({"role": "assistant", "content": "hello", "reasoning_content": "hm"}, "hm", []),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}, "hm", []),
        ({"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "a"}]},
         "", ["1 × thinking block (not said to the user), not read"]),
        ({"role": "user", "content": "hello", "reasoning": "hm"}, "",
         ["1 × thinking block (not said to the user), not read"]),
    ],
)  # fmt: skip
def test_what_an_assistant_thought_stands_beside_its_words(
    ingest: Any, message: dict[str, Any], thinking: str, notes: list[str]
) -> None:
    result = ingest([*CHAT, message])
    assert (result.only.messages[-1].thinking, result.problem_texts("note")) == (thinking, notes)


def test_what_a_tool_of_the_server_answers_stands_in_the_assistants_message(ingest: Any) -> None:
    blocks = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "text", "text": "high at nine"}]},
        {"type": "text", "text": "At nine."},
    ]
    (message,) = ingest([{"role": "assistant", "content": blocks}]).only.messages
    assert (message.text, message.tool_results[0].text) == ("At nine.", "high at nine")


@pytest.mark.parametrize(
    "message",
    [{"content": None, "refusal": "I won't."}, {"content": [{"type": "refusal", "refusal": "I won't."}]}],
)
def test_a_refusal_is_what_the_assistant_says(ingest: Any, message: dict[str, Any]) -> None:
    result = ingest([CHAT[0], {"role": "assistant"} | message])
    assert (result.only.messages[1].text, result.problems) == ("I won't.", [])


def test_an_answer_of_the_responses_api_keeps_the_question_beside_it(ingest: Any) -> None:
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]}
    result = ingest({"instructions": "Be brief.", "input": "hi", "output": [{"type": "reasoning"}, answer]})
    assert [(message.role, message.text) for message in result.only.messages] == [
        ("system", "Be brief."), ("user", "hi"), ("assistant", "hello")
    ]  # fmt: skip
    assert result.problem_texts("note") == ["1 × reasoning item (not said to the user), not read"]


def test_a_picture_without_words_is_noted_and_no_mistake(ingest: Any) -> None:
    result = ingest([*CHAT, {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}])
    assert len(result.only.messages) == 2
    assert result.problem_texts("note") == ["1 × image or other block that is not text, not read"]


def test_a_document_may_hold_its_conversations_in_a_list(ingest: Any) -> None:
    turns = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello to you."}]
    result = ingest({"conversations": [{"id": "c1", "messages": turns}, {"messages": turns[:1]}]})
    assert {each.id: len(each.messages) for each in result.conversations} == {"c1": 2, "input-1": 1}
    assert (result.files[0].source_format, result.problems) == ("openai", [])
