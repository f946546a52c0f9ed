"""Thinking between tags in the text of a message is read as thinking, and nothing else is."""

from __future__ import annotations

import pytest

from undersong.formats.normalize import normalize_conversation
from undersong.models import Conversation, Message, Role


@pytest.mark.parametrize(
    ("text", "role", "speech", "thinking"),
    [
        ("<scratchpad>They watch.</scratchpad>Here is the log.", "assistant", "Here is the log.", "They watch."),
        ("<SCRATCHPAD_REASONING>\nA\n</SCRATCHPAD_REASONING>\n\nB", "assistant", "B", "A"),
        ("One.\n<think>two</think>\nThree.\n<thinking>four</thinking>", "assistant", "One.\nThree.", "two\n\nfour"),
        ("<think>all of it</think>", "agent", "", "all of it"),
        ("<think>mine</think>I say it.", "user", "<think>mine</think>I say it.", ""),
        ("Use <thinking>…</thinking> in prompts.", "assistant", "Use <thinking>…</thinking> in prompts.", ""),
        ("```\n<thinking>x</thinking>\n```", "assistant", "```\n<thinking>x</thinking>\n```", ""),
        ("<think>cut off", "assistant", "<think>cut off", ""),
        ("<b>bold</b> words", "assistant", "<b>bold</b> words", ""),
    ],
)
def test_what_stands_between_tags_is_thinking(text: str, role: Role, speech: str, thinking: str) -> None:
    message = Message(id="m", conversation="c", position=0, author="a", agent="c/a", role=role, text=text)
    part = Conversation(id="c", source_format="jsonl", messages=(message,))
    conversation, notes = normalize_conversation([part])
    assert (conversation.messages[0].text, conversation.messages[0].thinking) == (speech, thinking)
    assert ["thinking between tags" in note.what for note in notes] == [True] * bool(thinking)
