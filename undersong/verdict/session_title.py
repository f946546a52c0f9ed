"""What a session is called: the title that people gave, else the first request in it."""

from __future__ import annotations

from undersong.core.text import shortened
from undersong.models import Conversation

LEAST, MOST = 8, 160  # characters of a line that says something, and of a title; a report shows the part that differs
SPEAKING = ("user", "agent")  # whose first words name a session; chats between people go by their file
ANNOUNCING = (":", "?")  # ends of a line that more belongs to
TITLED = ("chatgpt", "claude")  # exports in which a word by itself is a title
NAMELESS = ("new chat", "new conversation", "untitled chat", "untitled conversation")  # what programs call every chat


def title_of(conversation: Conversation) -> str | None:
    """The title of a conversation; None where it has none and nobody asks for anything.

    A title without a space is a file name or an id, save in exports whose chats have titles, and gives way to the first
    request; so does what a program calls every conversation.
    """
    title = (conversation.title or "").strip()
    is_words = " " in title or (title and conversation.source_format in TITLED)
    if is_words and title.lower() not in NAMELESS:
        return conversation.title
    for role in SPEAKING:
        texts = (message.text for message in conversation.messages if message.role == role)
        for text in texts:
            if line := _request(text):
                return shortened(line, MOST)
    return conversation.title


def _request(text: str) -> str:
    """The first line with words in it, and what it announces; tags and headings of tools are none."""
    lines = (" ".join(line.strip().strip("#*>-_`").split()) for line in text[: 20 * MOST].splitlines())
    telling = (line for line in lines if line and not line.startswith("<"))
    title = next((line for line in telling if len(line) >= LEAST and " " in line), "")
    for line in telling:
        if len(title) >= MOST or not title.endswith(ANNOUNCING):
            break
        title = f"{title} {line}"
    return title
