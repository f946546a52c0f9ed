"""``--map text=body,author=user_id``: keys of somebody's own JSON become those of our JSON Lines before any reader."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from undersong.datafiles.yaml_loader import did_you_mean
from undersong.errors import UsageError
from undersong.formats.json_stream import LIMIT
from undersong.formats.jsonl import JsonlLine
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource

FieldMap: TypeAlias = Mapping[str, str]  # the key of the input → our key
NESTED = "messages"  # of a record that is a conversation: its messages are renamed, too
WRAPPED = ("", "messages.", "data.", "posts.", "results.", "conversations.messages.", "threads.messages.")
SYNONYMS = {  # our key → what others call it, the likeliest first
    "text": ("body", "message", "msg", "message_text", "comment", "utterance", "post"),
    "author": ("handle", "username", "user_name", "display_name", "nickname", "screen_name", "sender_name", "from"),
    "agent_id": ("user_id", "author_id", "sender_id", "account_id", "uid", "user"),
    "id": ("msg_id", "message_id", "comment_id", "post_id", "uuid"),
    "conversation": ("channel_id", "chat_id", "room_id", "session_id", "dialog_id", "ticket_id", "channel", "room"),
    "time": ("sent_at", "posted_at", "created", "createdAt", "datetime", "date", "created_utc"),
    "reply_to": ("reply_to_id",),
}
SPELLINGS = {  # our keys that the reader takes under other names, too
    "text": ("content",),
    "author": ("agent", "sender"),
    "conversation": ("conversation_id", "thread", "thread_id"),
    "time": ("ts", "timestamp", "created_at"),
    "reply_to": ("in_reply_to", "parent_id"),
}


def field_map(text: str) -> dict[str, str]:
    """The pairs of ``--map OURS=THEIRS,…``; raises UsageError for a key that we do not have, or one named twice."""
    pairs: dict[str, str] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        ours, equals, theirs = (one.strip() for one in part.partition("="))
        if not equals or not theirs:
            raise UsageError(f"{part!r} is no pair", where="--map", remedy="write text=body,author=user_id")
        if ours not in JsonlLine.__struct_fields__:
            remedy = did_you_mean(ours, list(JsonlLine.__struct_fields__))
            raise UsageError(f"we have no key '{ours}'", where="--map", remedy=remedy)
        if theirs in pairs or ours in pairs.values():
            raise UsageError(f"'{part}' names a key twice", where="--map", remedy="give each key once")
        pairs[theirs] = ours
    return pairs


class MappedSource(TextSource):
    """An input whose JSON objects have other keys: those of each line, or of a document that is not one a line."""

    def __init__(self, source: TextSource, fields: FieldMap) -> None:
        super().__init__(source.name, source.stem, source._open, source._packed, source.path)
        self._fields = fields

    def chunks(self) -> Iterator[bytes]:
        """See TextSource; a line that is no JSON object stays as it is, and so do its number and its ends."""
        rest, whole = b"", False
        for chunk in super().chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            if whole:  # a document over several lines: its end decides
                rest = b"\n".join((*lines, rest))
            elif lines and lines[0].strip() in (b"[", b"{"):
                whole, rest = True, b"\n".join((*lines, rest))
            else:
                yield b"".join(self._renamed(line) + b"\n" for line in lines)
            if len(rest) > LIMIT:
                raise self.error(f"a record is longer than {LIMIT >> 20} MiB", "give one message a line with --map")
        yield self._renamed(rest)

    def _renamed(self, text: bytes) -> bytes:
        return renamed_line(text, self._fields)


def renamed_line(text: bytes, fields: FieldMap) -> bytes:
    """A JSON object or list with our keys; what is none stays as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(renamed(value, fields)).encode() if isinstance(value, dict | list) else text


def renamed(value: Any, fields: FieldMap, depth: int = 0) -> Any:
    """The objects with our keys; what stood under one of ours and was given another meaning is kept as ``KEY_``."""
    if isinstance(value, list):
        return [renamed(one, fields, depth) for one in value]
    if not isinstance(value, dict) or depth > 2:
        return value
    taken = {ours for theirs, ours in fields.items() if theirs in value}
    ours_by_key = {fields.get(key, f"{key}_" if key in taken else key): part for key, part in value.items()}
    inner = [key for key, part in ours_by_key.items() if isinstance(part, list) and key in (NESTED, "data", "threads",
             "conversations", "posts", "results")]  # fmt: skip
    return ours_by_key | {key: renamed(ours_by_key[key], fields, depth + 1) for key in inner}


def suggested_map(sample: FormatSample) -> str:
    """The ``--map`` that the keys of a JSON input ask for: text=body,author=user_id; "" where none gives a message."""
    keys = {".".join(path) for path in sample.keys}
    prefix = next((one for one in WRAPPED if _pairs(keys, one)), "")
    pairs = _pairs(keys, prefix)
    have = {ours for ours, _ in pairs} | {ours for ours in SYNONYMS if _has(keys, prefix, ours)}
    return ",".join(f"{ours}={theirs}" for ours, theirs in pairs) if "text" in have and have & _AUTHORS else ""


_AUTHORS = {"author", "agent_id"}


def _pairs(keys: set[str], prefix: str) -> list[tuple[str, str]]:
    wanted = [ours for ours in SYNONYMS if not _has(keys, prefix, ours)]
    likely = ((ours, next((each for each in SYNONYMS[ours] if f"{prefix}{each}" in keys), "")) for ours in wanted)
    return [(ours, theirs) for ours, theirs in likely if theirs]


def _has(keys: set[str], prefix: str, ours: str) -> bool:
    return any(f"{prefix}{name}" in keys for name in (ours, *SPELLINGS.get(ours, ())))
