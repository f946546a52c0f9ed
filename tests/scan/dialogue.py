"""Dialogues for the tests of the scanner: ``talk("kira: you're wonderful", "bicep: thanks")``."""

from __future__ import annotations

from typing import Any

import msgspec

from undersong.models import Conversation, Message, Role, Scan, ThreadScan
from undersong.scan import load_book, scan_conversation

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}


def talk(*lines: str, **fields: Any) -> Conversation:
    """A conversation from ``name: text`` lines; user, assistant, system and tool are roles, other names agents."""
    messages = []
    for place, line in enumerate(lines):
        name, _, text = line.partition(": ")
        messages.append(
            Message(
                id=f"m{place}",
                conversation="c",
                position=place,
                author=name,
                agent=name,
                role=ROLES.get(name, "agent"),
                text=text,
            )
        )
    return Conversation(id="c", source_format="test", messages=tuple(messages), **fields)


def change(conversation: Conversation, place: int, **fields: Any) -> Conversation:
    """The conversation with other fields in one of its messages."""
    messages = list(conversation.messages)
    messages[place] = msgspec.structs.replace(messages[place], **fields)
    return msgspec.structs.replace(conversation, messages=tuple(messages))


def scan(conversation: Conversation) -> tuple[tuple[Scan, ...], ThreadScan]:
    """Scanned with the shipped book."""
    return scan_conversation(conversation, load_book())


def scans(*lines: str) -> tuple[Scan, ...]:
    """The scans of a dialogue."""
    return scan(talk(*lines))[0]
