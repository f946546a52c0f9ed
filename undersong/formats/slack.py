"""Slack exports: a ZIP or folder with a file for each channel and day.

The shape is documented by Slack: "How to read Slack data exports" (slack.com/help/articles/220556107).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from html import unescape
from typing import Any, TypeVar

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import decode, problems_of, records
from undersong.formats.repeats import Repeats
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog
from undersong.models import Conversation, Message, SourceRef

T = TypeVar("T")
NOBODY = "(unknown)"
_KEYS = frozenset(
    (
        "type",
        "subtype",
        "ts",
        "user",
        "username",
        "bot_id",
        "text",
        "blocks",
        "files",
        "thread_ts",
        "user_profile",
        "reactions",
        "bot_profile",
        "team",
    )
)  # blocks repeat the text, or have it alone
SPOKEN = frozenset(("", "bot_message", "thread_broadcast", "me_message", "file_comment", "file_share"))
_MENTION = re.compile(r"<@(\w+)(?:\|([^<>]+))?>")
_LINK = re.compile(r"<(?:[#!]\w+\|([^<>|]+)|((?:https?|mailto):[^<>|]+)(?:\|([^<>]+))?)>")


def sniff(sample: FormatSample) -> bool:
    """A list of messages with a ``ts`` such as "1767348000.000100", or one of the people or channels of a workspace."""
    if sample.list_first and _is_about(sample):
        return True
    stamps = sample.values_at("ts")
    return sample.list_first and sample.has("type", "ts") and any(map(re.compile(r"\d{9,11}\.\d{6}").fullmatch, stamps))


def _is_about(sample: FormatSample) -> bool:
    """Whether these are ``users.json``, or ``channels.json``, ``groups.json``, ``dms.json``, ``mpims.json``."""
    is_people = sample.has("id", "name", "profile.real_name")
    return is_people or (sample.has("id", "created", "members") and sample.any_of("creator", "name", "members"))


def read(source: TextSource) -> Iterator[Item]:
    """One conversation for each channel, whose name is that of the file's folder: each file holds a day of it."""
    notes = SkipLog(source.net)
    ref = SourceRef(file=source.name)
    if _is_about(FormatSample(source)):
        notes.add("list of people or channels, read for their names", ref)
        yield from notes.problems()
        return
    folder, _, _ = source.name.rpartition("/")
    root, _, _ = folder.rpartition("/")
    key = folder.rpartition("/")[2].removesuffix(".zip") or source.stem
    rows = list(records(source))
    names = dict(pair for row in rows if (pair := _named(row))) | _listed(source, f"{root}/users.json", _people)
    members = _listed(source, f"{root}/dms.json", _members).get(key, ())
    title = ", ".join(names.get(member, member) for member in members) or f"#{key}"
    messages, blocks = list[Message](), Repeats()
    yield from problems_of(rows, lambda value, ref: messages.extend(_message(value, ref, key, names, notes, blocks)))
    blocks.note_others(messages, notes)
    if messages:
        yield Conversation(id=key, source_format="slack", messages=tuple(messages), title=title, source_ref=ref)
    yield from notes.problems()


def _listed(source: TextSource, name: str, work: Callable[[bytes | None], dict[str, T]]) -> dict[str, T]:
    """What a list at the top of the export says; {} where it is not among the inputs."""
    return source.neighbours.ask_of(name.removeprefix("/"), work) if source.neighbours else {}


def _rows(content: bytes | None) -> Iterator[tuple[str, dict[str, Any]]]:
    rows = None
    if content is not None:
        with suppress(RecordError):  # it is named where the file itself is read
            rows, _ = decode(content)
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and (key := values.string(row.get("id"))):
            yield key, row


def _people(content: bytes | None) -> dict[str, str]:
    """Ids and names in ``users.json``."""
    named = ((key, _profile_name({"user_profile": row.get("profile")}) or _shown(row)) for key, row in _rows(content))
    return {key: shown for key, shown in named if shown}


def _members(content: bytes | None) -> dict[str, tuple[str, ...]]:
    """Who talks with whom in the conversations of two, whose folders are named by an id."""
    return {key: values.convert_list(row.get("members"), values.string) for key, row in _rows(content)}


def _named(row: Any) -> tuple[str, str] | None:
    """Id and name of a message's author, where the message itself has both."""
    value = getattr(row, "value", None)
    user = value.get("user") if isinstance(value, dict) else None
    return (user, name) if isinstance(user, str) and (name := _profile_name(value)) else None


def _profile_name(value: Any) -> str | None:
    profile = value.get("user_profile")
    return _shown(profile) if isinstance(profile, dict) else None


def _shown(profile: dict[str, Any]) -> str | None:
    """The name by which people see somebody."""
    return next(
        (shown for key in ("display_name", "real_name", "name") if (shown := values.string(profile.get(key)))), None
    )


def _message(
    value: Any, ref: SourceRef, key: str, names: dict[str, str], notes: SkipLog, blocks: Repeats
) -> Iterator[Message]:
    """A message of a person or bot; nothing for what Slack itself says, which is noted."""
    if not isinstance(value, dict):
        raise RecordError("a message that is not an object")
    if value.get("type") != "message" or str(value.get("subtype") or "") not in SPOKEN:
        notes.add("notice of Slack (joined, topic, deleted), not read", ref)
        return
    shown = _plain(_block_text(value.get("blocks")), names)
    text = values.string(value.get("text")) or ""
    if text:
        blocks.add(shown, ref)
    if isinstance(value.get("files"), list) and value["files"]:
        notes.add("attached file, not read", ref, len(value["files"]))
    elif value.get("files"):
        notes.add("attached file, not read", ref)
    elif not text and not shown and not value.get("attachments"):
        raise RecordError("a message without text")
    notes.marks(value, ref)
    notes.unread(value, ref, _KEYS)
    is_bot = bool(value.get("bot_id")) or value.get("subtype") == "bot_message"
    user = values.string(value.get("user"))
    author = names.get(user or "") or values.string(value.get("username")) or user or values.string(value.get("bot_id"))
    if author is None:
        notes.add(f"message without an author, read as {NOBODY!r}", ref)
    thread = values.string(value.get("thread_ts"))
    yield Message(
        id=values.string(value.get("ts")) or "",
        conversation=key,
        position=-1,
        author=author or NOBODY,
        role="agent" if is_bot else "participant",
        text=_plain(text, names) or shown,
        time=notes.time(value.get("ts"), ref),
        reply_to=thread if thread != value.get("ts") else None,
        source_ref=ref,
    )


def _block_text(blocks: Any) -> str:
    """The words of blocks: each string under a key ``text``, those of one block in one line."""
    if not isinstance(blocks, list):
        return ""
    return "\n".join(line for block in blocks if (line := "".join(_leaves(block)).strip()))


def _leaves(value: Any) -> Iterator[str]:
    """The strings under a key ``text``, in their order."""
    stack = [value]
    while stack:
        inner = stack.pop()
        if isinstance(inner, dict):
            if isinstance(inner.get("text"), str):
                yield inner["text"]
            stack += reversed([more for more in inner.values() if isinstance(more, dict | list)])
        elif isinstance(inner, list):
            stack += reversed(inner)


def _plain(text: str, names: dict[str, str]) -> str:
    """Slack's markup as people see it: names in place of ids, links as their words and address."""
    text = _MENTION.sub(lambda match: f"@{match[2] or names.get(match[1], match[1])}", text)
    text = _LINK.sub(lambda match: match[1] or " ".join(part for part in (match[3], match[2]) if part), text)
    return unescape(text)
