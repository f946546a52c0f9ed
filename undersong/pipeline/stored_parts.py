"""What a store already has of a conversation that an audit reads: to be added to, or to be told of as lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from undersong.formats.normalize import normalize_conversation, normalize_messages
from undersong.models import Conversation, Message
from undersong.stores.protocol import Store


def messages_lost(conversation: Conversation, store: Store) -> int:
    """How many messages of a conversation leave a store when this version of it takes the place of the stored one."""
    stored = store.length(conversation.id)
    return (
        stored - len(store.messages(conversation.id, (message.id for message in conversation.messages)))
        if stored
        else 0
    )


def added_to_stored(conversation: Conversation, store: Store) -> Conversation:
    """The conversation behind the messages that a store has of it: by time where all have one, else at their end.

    A message with the id of a stored one is its newer version. Where the id was only made from its place, and text,
    author or time are others, it is another message and gets an id of its own.
    """
    if not store.length(conversation.id):
        return conversation
    stored = {
        message.id: message for message in _as_read(store.conversation(conversation.id)[0].messages, conversation.id)
    }
    new = {message.id: message for message in _renamed(_as_read(conversation.messages, conversation.id), stored)}
    together = [*(message for name, message in stored.items() if name not in new), *new.values()]
    if all(message.time for message in together):
        together.sort(key=lambda message: message.time)  # type: ignore[arg-type,return-value]
    placed = tuple(msgspec.structs.replace(message, position=place) for place, message in enumerate(together))
    return normalize_conversation([msgspec.structs.replace(conversation, messages=placed)])[0]


def _as_read(messages: Sequence[Message], conversation: str) -> list[Message]:
    """The messages without the targets that were worked out from who speaks, since more speak in all of them."""
    plain = [msgspec.structs.replace(message, target=None) for message in messages]
    worked_out = normalize_messages(plain, conversation)
    return [
        message if message.target != own.target else unnamed
        for message, unnamed, own in zip(messages, plain, worked_out, strict=True)
    ]


def _renamed(messages: Sequence[Message], stored: dict[str, Message]) -> list[Message]:
    """The messages, those whose id was made from their place under one that no other message has."""
    renamed = []
    for message in messages:
        name = message.id
        while name.startswith(f"{message.conversation}:") and name in stored and _differ(stored[name], message):
            name = f"{name}~2"
        renamed.append(message if name == message.id else msgspec.structs.replace(message, id=name))
    return renamed


def _differ(one: Message, other: Message) -> bool:
    return _content(one) != _content(other)


def _content(message: Message) -> tuple[Any, ...]:
    return message.author, message.text, message.time
