"""Gemini Apps activity of Google Takeout: prompts with their answers, newest first, without conversations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from html import unescape
from typing import Any, NamedTuple

from undersong.formats import Item, values
from undersong.formats.json_stream import JsonRecord, records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog, inside
from undersong.models import Conversation, Message, Problem, SourceRef

PROMPT = "Prompted "
PRODUCTS = ("gemini", "bard")  # as the activity names its product, now and before 2024
GAP = timedelta(minutes=30)  # between two prompts, beyond which a new conversation is taken to begin
BLOCKS = frozenset(
    ("p", "div", "br", "li", "ul", "ol", "tr", "table", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "hr")
)
# A tag ends before the next one begins, so that no markup takes more than linear time; html.parser of Python 3.11 does.
_TAG = re.compile(r"<(?:(?P<end>/?)(?P<name>[a-zA-Z][a-zA-Z0-9]*)(?:[\s/][^<>]*)?|[!?][^<>]*)>")


_KEYS = frozenset(
    ("header", "title", "titleUrl", "time", "products", "activityControls", "safeHtmlItem", "attachedFiles")
)
_LISTS_OF_NAMES = ("products", "activityControls")


class Activity(NamedTuple):
    """A prompt and its answer, ``""`` where the export holds none."""

    prompt: str
    answer: str
    time: datetime
    ref: SourceRef


def sniff(sample: FormatSample) -> bool:
    """Activities whose header names Gemini."""
    return (
        sample.list_first and sample.has("header", "title", "time") and any(map(_is_gemini, sample.values_at("header")))
    )


def read(source: TextSource) -> Iterator[Item]:
    """A conversation for each stretch of prompts with less than GAP between them: the export itself has none."""
    notes, number, activities = SkipLog(source.net), 0, list[Activity]()
    for record in records(source):
        if isinstance(record, Problem):
            yield record
            continue
        activity = _activity(record, notes)
        if isinstance(activity, Problem):
            yield activity
        elif activity is not None:
            if activities and abs(activity.time - activities[-1].time) > GAP:
                yield _conversation(f"{source.stem}-{number}", activities)
                number, activities = number + 1, []
            activities.append(activity)
    if activities:
        yield _conversation(f"{source.stem}-{number}", activities)
        minutes = GAP // timedelta(minutes=1)
        notes.add(
            f"conversations are inferred from pauses of {minutes} minutes: the export has none", activities[0].ref
        )
    yield from notes.problems()


def _is_gemini(header: str) -> bool:
    return any(name in header.lower() for name in PRODUCTS)


def _is_list_of_names(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(name, str) for name in value))


def _activity(record: JsonRecord, notes: SkipLog) -> Activity | Problem | None:
    """An activity, None for one that is no talk, which is noted."""
    value, ref = record
    title = value.get("title") if isinstance(value, dict) else None
    if not isinstance(title, str):
        return Problem(what="an activity without a title", where=str(ref))
    notes.marks(value, ref)
    notes.unread(value, ref, _KEYS)
    odd = {key: value[key] for key in _LISTS_OF_NAMES if not _is_list_of_names(value.get(key))}
    notes.unread(odd, ref, frozenset())
    if not _is_gemini(str(value.get("header"))):
        notes.add("activity of another product, not read", ref)
        return None
    answer = "\n\n".join(_answers(value.get("safeHtmlItem"), ref, notes))
    if not answer and not title.startswith(PROMPT):
        notes.add("activity that is no prompt, not read", ref)
        return None
    time = values.time_or_none(value.get("time"))
    if time is None:
        return Problem(what="an activity without a time, by which alone it can be put in its place", where=str(ref))
    files = value.get("attachedFiles")
    if isinstance(files, list) and files:
        notes.add("attached file, not read", ref, len(files))
    return Activity(title.removeprefix(PROMPT), answer, time, ref)


def _answers(items: Any, ref: SourceRef, notes: SkipLog) -> Iterator[str]:
    for item in items if isinstance(items, list) else [items]:
        html = item.get("html") if isinstance(item, dict) else None
        notes.unread(item if isinstance(item, dict) else {"safeHtmlItem": item}, ref, frozenset(("html",)))
        if html is not None and not isinstance(html, str):
            notes.add(values.ODD, ref)
        if isinstance(html, str) and (text := _text(html)):
            yield text


def _conversation(key: str, activities: list[Activity]) -> Conversation:
    """The messages of some activities in the order of time."""
    messages = list[Message]()
    for activity in sorted(activities, key=lambda one: one.time):
        turns = [("user", activity.prompt, "title")] + (
            [("assistant", activity.answer, "safeHtmlItem")] if activity.answer else []
        )
        for role, text, part in turns:
            messages.append(
                Message(
                    id="",
                    conversation=key,
                    position=len(messages),
                    author="user" if role == "user" else "Gemini",
                    role="user" if role == "user" else "assistant",
                    text=text,
                    time=activity.time,
                    source_ref=inside(activity.ref, part),
                )
            )
    return Conversation(id=key, source_format="gemini", messages=tuple(messages), source_ref=activities[0].ref)


def _text(markup: str) -> str:
    """The words of an answer, code in fences, a line for each block."""
    lines = [line.rstrip() for line in unescape(_TAG.sub(_plain, markup)).split("\n")]
    cleaned = [line for number, line in enumerate(lines) if line or (number and lines[number - 1])]
    return "\n".join(cleaned).strip("\n")


def _plain(tag: re.Match[str]) -> str:
    """What stands in place of a tag."""
    name = (tag["name"] or "").lower()
    if name == "pre":
        return "\n```\n"
    return "\n- " if name == "li" and not tag["end"] else "\n" if name in BLOCKS else ""
