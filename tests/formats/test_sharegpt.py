"""ShareGPT: speakers under their many names, both spellings of the keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.formats.conftest import outcome

SAMPLE = Path(__file__).parent.parent / "samples" / "sharegpt" / "chats.json"


def test_speakers_get_their_roles() -> None:
    first, second = outcome(SAMPLE).conversations
    assert [message.role for message in first.messages] == ["system", "user", "assistant", "user", "assistant"]
    assert [message.role for message in second.messages] == ["user", "assistant", "tool", "assistant"]
    assert second.messages[1].tool_calls[0].input == '{"name": "weather"}'


def test_role_and_content_are_accepted_too(ingest: Any) -> None:
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    result = ingest([{"conversations": turns}, {"conversations": turns}], "x.jsonl")
    assert [conversation.id for conversation in result.conversations] == ["x-0", "x-1"]


def test_wrong_turns_are_reported_with_their_pointer(ingest: Any) -> None:
    result = ingest([{"conversations": [{"from": "human", "value": "a"}, {"from": "ghost", "value": "b"}, None]}, {}])
    assert len(result.only.messages) == 1
    assert [problem.where.split("#")[1] for problem in result.problems] == [
        "/0/conversations/1", "/0/conversations/2", "/1"
    ]  # fmt: skip


def test_conversations_may_be_lists_of_turns(ingest: Any) -> None:
    turns = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello to you."}]
    result = ingest({"conversations": [turns, turns[:1]]})
    assert {each.id: len(each.messages) for each in result.conversations} == {"input-0-0": 2, "input-0-1": 1}
    assert str(result.conversations[0].messages[1].source_ref).endswith("#/conversations/0/1")
