"""What a session is called: the title that people gave, else the first request in it."""

from __future__ import annotations

from undersong.models import Conversation

LEAST, MOST = 8, 70  # characters of a line that says something, and of a title
SPEAKING = ("user", "agent")  # whose first words name a session; chats between people go by their file


def title_of(conversation: Conversation) -> str | None:
    """The title of a conversation; None where it has none and nobody asks for anything.

    A title without a space is a file name or an id, and gives way to the first request.
    """
    if conversation.title and " " in conversation.title.strip():
        return conversation.title
    for role in SPEAKING:
        texts = (message.text for message in conversation.messages if message.role == role)
        for text in texts:
            if line := _line(text):
                return line if len(line) <= MOST else f"{line[:MOST].rsplit(' ', 1)[0]} …"
    return conversation.title


def _line(text: str) -> str:
    """The first line with words in it; tags and headings of tools are none."""
    lines = (" ".join(line.strip().strip("#*>-_`").split()) for line in text.splitlines())
    return next((line for line in lines if len(line) >= LEAST and " " in line and not line.startswith("<")), "")
