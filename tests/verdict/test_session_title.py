"""What a session is called."""

from __future__ import annotations

import msgspec
import pytest

from undersong.models import Conversation, Message
from undersong.verdict.session_title import title_of


def test_a_word_is_a_title_where_chats_have_titles() -> None:
    talk = asked("Write a polite mail to the landlord about the heating.", "Heating")
    assert title_of(msgspec.structs.replace(talk, source_format="chatgpt")) == "Heating"
    assert title_of(talk) != "Heating"


def asked(text: str, title: str | None = None) -> Conversation:
    said = Message(id="m", conversation="c", position=0, author="user", agent="c/user", role="user", text=text)
    return Conversation(id="c", source_format="jsonl", title=title, messages=(said,))


@pytest.mark.parametrize(
    ("text", "title", "called"),
    [
        ("Fix the CSV import\nThe trace is below.", None, "Fix the CSV import"),
        (
            "Implement the following plan:\n\n# Lock the store\nSteps",
            None,
            "Implement the following plan: Lock the store",
        ),
        (
            "What do you think of this?\nIs boxing fair?\nAnswer",
            None,
            "What do you think of this? Is boxing fair? Answer",
        ),
        ("Is my partner angry with me?", "New chat", "Is my partner angry with me?"),
        ("Is my partner angry with me?", "Old friends", "Old friends"),
        ("ok", "New chat", "New chat"),
        ("<context>\nPlease sum up the report", None, "Please sum up the report"),
    ],
)
def test_a_session_is_called_by_its_title_or_by_what_it_first_asks_for(
    text: str, title: str | None, called: str
) -> None:
    assert title_of(asked(text, title)) == called
