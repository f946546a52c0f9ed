"""Moltbook dumps: a post and its comments, flat or nested, and threads cut from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import JsonRecord, elements, problems_of, read_records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog, inside
from undersong.models import Conversation, Message, Problem, SourceRef

NOBODY = "(unknown)"  # the source names no author; not an identity, so never merged across threads


_KEYS = frozenset(("id", "title", "content", "author", "created_at", "parent_id", "submolt", "url", "post_id"))


def sniff(sample: FormatSample) -> bool:
    """A post with comments, or a thread of posts, comments and replies."""
    if sample.has("comments") and sample.any_of("submolt", "comments.author", "comments.parent_id", "post.submolt"):
        return True
    return sample.has("submolt", "author", "content") or sample.has("messages.message_type", "thread_id")


def read(source: TextSource) -> Iterator[Item]:
    """One conversation per post; the post is its first message."""
    return read_records(source, ("posts", "data"), _thread)


def _thread(record: JsonRecord, fallback: str, notes: SkipLog) -> Iterator[Item]:
    value, ref = record
    if not isinstance(value, dict):
        yield Problem(what="a post that is not an object", where=str(ref))
        return
    if isinstance(value.get("messages"), list):
        yield from _cut_thread(record, fallback, notes)
        return
    post, place = value, ref
    if isinstance(value.get("post"), dict):
        post, place = value["post"], inside(ref, "post")
        notes.unread(value, ref, frozenset(("post", "comments")))
    if isinstance(place_of := post.get("submolt"), dict) and " " in str(place_of.get("name")):
        notes.words_under("name", inside(place, "submolt"), place_of["name"])  # which is a short one
    key = values.name(post.get("id")) or fallback
    messages: dict[str, Message] = {}
    root, under = None, value if value.get("comments") is not None else post
    try:
        root = _message(post, place, key, None, notes, "comments" if under is post else "")
        messages[root.id] = root
    except RecordError as error:
        yield Problem(what=f"post: {error.what}", where=str(place))
    yield from _comments(under.get("comments"), inside(ref, "comments"), key, root, messages, notes)
    if messages:
        yield Conversation(
            id=key,
            source_format="moltbook",
            messages=tuple(messages.values()),
            title=values.string(post.get("title")),
            started_at=values.time_or_none(post.get("created_at")),
            source_ref=ref,
        )


def _comments(
    comments: Any, ref: SourceRef, key: str, root: Message | None, messages: dict[str, Message], notes: SkipLog
) -> Iterator[Problem]:
    """Comments and their replies, parents first; a reply that stands nested and flat is read once."""
    if comments is None:
        return
    if not isinstance(comments, list):
        yield Problem(what="comments that are not a list", where=str(ref))
        return
    post_id = root.id if root else None
    stack = [(each, inside(ref, index), post_id) for index, each in reversed(list(enumerate(comments)))]
    while stack:
        value, place, parent = stack.pop()
        replies = value.get("replies") if isinstance(value, dict) else None
        above = parent
        try:
            message = _message(value, place, key, parent, notes, "replies")
            above = message.id or parent
            first = messages.get(message.id)
            again = first is not None and (first.author, first.text) == (message.author, message.text)
            if not again:
                messages.setdefault(message.id if first is None and message.id else f"\0{len(messages)}", message)
        except RecordError as error:
            yield Problem(what=f"comment: {error.what}", where=str(place))
        if replies and not isinstance(replies, list):
            notes.add("replies that are not a list, not read", place)
        if isinstance(replies, list):
            below = [(each, inside(place, "replies", index), above) for index, each in enumerate(replies)]
            stack += reversed(below)


def _message(value: Any, ref: SourceRef, key: str, parent: str | None, notes: SkipLog, answers: str = "") -> Message:
    """A post or comment; what answers it stands under the key ``answers``."""
    if not isinstance(value, dict):
        raise RecordError("not an object")
    notes.marks(value, ref)
    notes.unread(value, ref, _KEYS | {answers})
    text = _text(value)
    if text is None:
        raise RecordError("no text")
    for part in ("title", "content"):
        if value.get(part) is not None and not isinstance(value[part], str):
            notes.add(values.ODD, inside(ref, part))
    author = values.name(value.get("author"))
    if author is None:
        notes.add("message without an author", ref)
    return Message(
        id=values.name(value.get("id")) or "",
        conversation=key,
        position=-1,
        author=author or NOBODY,
        role="agent" if author else "participant",
        text=text,
        time=notes.time(value.get("created_at"), ref),
        reply_to=values.name(value.get("parent_id")) or parent,
        source_ref=ref,
    )


def _text(value: dict[str, Any]) -> str | None:
    """The content, below the title where there is one."""
    parts = [value[key] for key in ("title", "content") if isinstance(value.get(key), str)]
    return "\n".join(parts) if parts else None


def _cut_thread(record: JsonRecord, fallback: str, notes: SkipLog) -> Iterator[Item]:
    """A thread of the ``a2a_threads.json`` kind: its messages in order, without ids."""
    value, ref = record
    key = values.name(value.get("thread_id")) or fallback
    messages: list[Message] = []
    yield from problems_of(
        elements(value["messages"], ref, "messages"),
        lambda item, place: messages.append(_message(item, place, key, None, notes)),
        "message: ",
    )
    if messages:
        title = values.string(value.get("post_title"))
        yield Conversation(id=key, source_format="moltbook", messages=tuple(messages), title=title, source_ref=ref)
