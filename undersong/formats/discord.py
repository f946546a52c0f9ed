"""Discord channels as DiscordChatExporter writes them (its JSON form: ``guild``, ``channel``, ``messages``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import problems_of, records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog
from undersong.models import Conversation, Message, SourceRef

_LISTS = ("attachments", "embeds", "stickers", "reactions", "mentions")
SPOKEN = ("Default", "Reply", "ChatInputCommand", "ContextMenuCommand", "0", "19")


_KEYS = frozenset(
    ("id", "type", "timestamp", "content", "author", "attachments", "embeds", "stickers", "reactions", "mentions",
     "reference")
)  # fmt: skip


def sniff(sample: FormatSample) -> bool:
    """A guild and a channel, or messages whose author has an ``isBot``."""
    return sample.has("guild", "channel") or sample.has("channel", "messages.author.isBot")


def read(source: TextSource) -> Iterator[Item]:
    """One conversation: an export is one channel or thread."""
    notes, messages = SkipLog(source.net), list[Message]()
    head = FormatSample(source)
    key = next(iter(head.values_at("channel.id")), source.stem)
    yield from problems_of(
        records(source, ("messages",)), lambda value, ref: messages.extend(_message(value, ref, key, notes))
    )
    ref = SourceRef(file=source.name)
    if messages:
        title = next(iter(head.values_at("channel.name")), None)
        yield Conversation(id=key, source_format="discord", messages=tuple(messages), title=title, source_ref=ref)
    else:
        notes.add(values.EMPTY, ref)
    yield from notes.problems()


def _message(value: Any, ref: SourceRef, key: str, notes: SkipLog) -> Iterator[Message]:
    """A message of a person or bot; nothing for what Discord itself says, which is noted."""
    if not isinstance(value, dict):
        raise RecordError("a message that is not an object")
    if str(value.get("type", "Default")) not in SPOKEN:
        notes.add("notice of Discord (joined, pinned, called), not read", ref)
        return
    text = value.get("content")
    if not isinstance(text, str):
        raise RecordError("a message without 'content'")
    notes.marks(value, ref)
    notes.unread(value, ref, _KEYS)
    for name in ("attachments", "embeds", "stickers"):
        if isinstance(value.get(name), list) and value[name]:
            notes.add(f"{name}, not read", ref, len(value[name]))
    notes.unread({name: value.get(name) for name in _LISTS if not isinstance(value.get(name), list)}, ref, frozenset())
    notes.no_object(value, ref, "reference")
    author = value.get("author")
    own_name = author if isinstance(author, dict) else {}
    reference = value.get("reference")
    yield Message(
        id=values.name(value.get("id")) or "",
        conversation=key,
        position=-1,
        author=values.string(own_name.get("nickname")) or values.name(author) or "(unknown)",
        role="agent" if own_name.get("isBot") is True else "participant",
        text=text,
        time=notes.time(value.get("timestamp"), ref),
        reply_to=values.name(reference.get("messageId")) if isinstance(reference, dict) else None,
        source_ref=ref,
    )
