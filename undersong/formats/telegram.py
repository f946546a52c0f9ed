"""Telegram Desktop exports: ``result.json`` of one chat, or of an account with all its chats.

The shape is that of Telegram Desktop's own writer, ``Telegram/SourceFiles/export/output/export_output_json.cpp``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import JsonRecord, elements, problems_of, records
from undersong.formats.repeats import Repeats
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog, inside
from undersong.models import Conversation, Message, Problem, SourceRef

LISTS = ("chats", "left_chats")  # of an account's export
NOBODY = "Deleted Account"  # as Telegram itself shows an author without a name
_MEDIA = (
    "photo",
    "file",
    "media_type",
    "sticker_emoji",
    "contact_information",
    "location_information",
    "poll",
    "thumbnail",
)
_KEYS = frozenset(
    ("id", "type", "date", "date_unixtime", "from", "from_id", "text", "text_entities", "reply_to_message_id",
     "forwarded_from", "reactions", "edited_unixtime", *_MEDIA)
)  # fmt: skip
_PART_KEYS = frozenset(("type", "text", "href", "user_id", "language", "document_id", "collapsed"))
_CHAT_KEYS = frozenset(("id", "name", "type", "messages"))
_GREETINGS = ("Here is the data you requested", "This page lists all ")
_ACCOUNT = re.compile(r'"(?:left_)?chats"\s*:')
_ID = re.compile(r'"id"\s*:\s*(-?\d{1,20})')


def sniff(sample: FormatSample) -> bool:
    """Messages with a Telegram sender, in a chat or in the chats of an account."""
    markers = ("from_id", "actor_id")
    return any(
        sample.under(steps, (marker,))
        for steps in (("messages",), *((name, "list", "messages") for name in LISTS))
        for marker in markers
    )


def read(source: TextSource) -> Iterator[Item]:
    """One conversation for each chat."""
    notes = SkipLog(source.net)
    chat = list[JsonRecord | Problem]()
    for record in records(source, ("messages",)):
        if isinstance(record, JsonRecord) and record.ref.pointer == "":
            yield from _account(record, notes)
        else:
            chat.append(record)
    if chat:
        head = FormatSample(source)
        before = head.text.partition('"messages"')[0]
        if _ACCOUNT.search(before):
            yield Problem(what="an account whose JSON is broken, read from behind the damage on", where=source.name)
        key = _ID.search(before)
        title = next(iter(head.values_at("name")), None)
        yield from _conversation(chat, key[1] if key else source.stem, title, SourceRef(file=source.name), notes)
    yield from notes.problems()


def _account(record: JsonRecord, notes: SkipLog) -> Iterator[Item]:
    """The chats of an account."""
    value, ref = record
    account = value if isinstance(value, dict) else {}
    chats = list[JsonRecord]()
    for name in LISTS:
        about = account.get(name)
        if isinstance(about, dict) and isinstance(about.get("list"), list):
            chats += (JsonRecord(chat, place) for chat, place in elements(about["list"], ref, name, "list"))
            notes.unread(_without_greeting(about), ref, frozenset(("list",)))
        elif about:
            notes.add(f"{name!r} that is not an object with a 'list', not read", ref)
    notes.unread(_without_greeting(account), ref, frozenset(LISTS))
    if not chats:
        yield Problem(what="no list of messages or chats", where=str(ref))
    for chat, place in chats:
        messages = chat.get("messages") if isinstance(chat, dict) else None
        if isinstance(messages, list):
            notes.unread(chat, place, _CHAT_KEYS)
            key = values.name(chat.get("id")) or str(place)
            title = values.string(chat.get("name"))
            yield from _conversation(elements(messages, place, "messages"), key, title, place, notes)
        else:
            yield Problem(what="a chat without a list of 'messages'", where=str(place))


def _without_greeting(value: dict[str, Any]) -> dict[str, Any]:
    """An object without the sentence with which Telegram itself says what it is."""
    about = value.get("about")
    return {key: part for key, part in value.items() if part is not about or not str(about).startswith(_GREETINGS)}


def _conversation(
    items: Any, key: str, title: str | None, ref: SourceRef, notes: SkipLog
) -> Iterator[Item]:  # fmt: skip
    messages, entities = list[Message](), Repeats()
    yield from problems_of(items, lambda value, place: messages.extend(_message(value, place, key, notes, entities)))
    entities.note_others(messages, notes)
    if messages:
        yield Conversation(id=key, source_format="telegram", messages=tuple(messages), title=title, source_ref=ref)
    else:
        notes.add(values.EMPTY, ref)


def _message(value: Any, ref: SourceRef, key: str, notes: SkipLog, entities: Repeats) -> Iterator[Message]:
    """A message of a person; nothing for what Telegram itself says, which is noted."""
    if not isinstance(value, dict):
        raise RecordError("a message that is not an object")
    if value.get("type") != "message":
        notes.add("service message of Telegram (joined, called, pinned), not read", ref)
        return
    notes.marks(value, ref)
    notes.unread(value, ref, _KEYS)
    text = _text(value.get("text"))
    if text is None:
        raise RecordError("a message without text")
    notes.odd(value["text"], ref)
    notes.blocks(values.blocks(value["text"]), ref)
    for part in values.blocks(value["text"]):
        notes.unread(part, ref, _PART_KEYS)
    marked = inside(ref, "text_entities")
    for part in values.blocks(value.get("text_entities")):
        notes.unread(part, marked, _PART_KEYS)
    entities.add(_text(value.get("text_entities")), marked)
    if any(value.get(name) for name in _MEDIA):
        notes.add("picture, recording or other attachment, not read", ref)
    forwarded = values.string(value.get("forwarded_from"))
    if forwarded is not None:
        notes.add("forwarded message, read as its forwarder's", ref)
    author = values.name(value.get("from"))
    if author is None:
        notes.add(f"message of an account without a name, read as {NOBODY!r}", ref)
    yield Message(
        id=values.name(value.get("id")) or "",
        conversation=key,
        position=-1,
        author=author or f"{NOBODY} {values.name(value.get('from_id')) or ''}".strip(),
        role="participant",
        text=text,
        time=notes.time(value.get("date_unixtime") or value.get("date"), ref),
        reply_to=values.name(value.get("reply_to_message_id")),
        source_ref=inside(ref),
    )


def _text(value: Any) -> str | None:
    """A string, or a list of strings and of marked parts such as ``{"type": "bold", "text": "…"}``."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    parts = (part.get("text") if isinstance(part, dict) else part for part in value)
    return "".join(part for part in parts if isinstance(part, str))
