"""Keys that nobody reads and that look like one that is read: without a word, conversations would run together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from undersong.formats.plain import JsonlLine
from undersong.formats.sample import FormatSample

_OTHER_NAMES = {
    "id": ("message_id", "msg_id", "uuid"),
    "reply_to": ("parent", "parent_id", "in_reply_to"),
    "conversation": (
        "chat",
        "chat_id",
        "session",
        "session_id",
        "channel",
        "channel_id",
        "room",
        "room_id",
        "dialog_id",
    ),
    "time": ("date", "datetime", "date_time", "sent_at", "created"),
}
_SAME = {
    "conversation": ("conversation", "conversation_id", "thread", "thread_id"),
    "time": ("time", "ts", "timestamp", "created_at"),
}
_LISTS = ("data", "conversations", "threads")
_PLACES = ((), ("messages",), *((name,) for name in _LISTS), *((name, "messages") for name in _LISTS))


def misspelt(sample: FormatSample) -> Iterator[tuple[str, str]]:
    """(Key of the messages in a sample, the key that is read in its place), in the order of the keys."""
    for prefix in _PLACES:
        keys = {path[-1] for path in sample.keys if path[:-1] == prefix}
        yield from ((key, meant) for key in sorted(keys) if (meant := _meant(key, keys)))


def _meant(key: str, keys: Iterable[str]) -> str | None:
    """The key that is read and that another one may stand for; None where the messages have that one as well."""
    read_keys = JsonlLine.__struct_fields__
    if key in read_keys:
        return None
    meant = next((name for name in read_keys if _letters(name) == _letters(key)), None)
    meant = meant or next(
        (name for name, others in _OTHER_NAMES.items() if _letters(key) in map(_letters, others)), None
    )
    same = next((names for names in _SAME.values() if meant in names), (meant,))
    return None if meant is None or not set(same).isdisjoint(keys) else meant


def _letters(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()
