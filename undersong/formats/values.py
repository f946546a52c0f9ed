"""Values of foreign data, read leniently: times, roles, numbers, texts of blocks; and the log of what is left out."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from undersong.models import Problem, Role, SourceRef, ToolCall, ToolResult

if TYPE_CHECKING:
    from undersong.formats.unread_words import UnreadWords

T = TypeVar("T")
YEARS = range(1900, 2200)  # a time outside is a mistake of the source
INTEGERS = 1 << 53  # beyond, JSON readers disagree
ROLES: dict[str, Role] = {role: role for role in get_args(Role)} | {
    "human": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "developer": "system",
    "function": "tool",
    "observation": "tool",
}
BLOCK = "image or other block that is not text, not read"
EMPTY = "conversation without messages"
ODD = "content that is neither text nor a block, not read"
DELETED = ("deleted", "is_deleted", "isDeleted", "deleted_at", "deletedAt", "tombstone")
EDITED = ("edited", "is_edited", "isEdited", "edited_at", "editedAt", "timestampEdited", "edit_history")
TIMES = ("time", "timestamp", "ts", "created_at", "createdAt", "create_time", "date")
NOTED_KEYS = 40  # distinct keys that are not read, of one input, which notes name
UNREADABLE_TIME = "time that cannot be read, taken as unknown"
_EPOCH_UNITS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9))  # below the bound: seconds, ms, µs, ns
_DATED = re.compile(
    r"(?:(?P<year>\d{4})/(?P<month>\d\d?)/(?P<day>\d\d?)|(?P<dotted_day>\d\d?)\.(?P<dotted_month>\d\d?)\.(?P<dotted_year>\d{4}))"
    r"(?:,?[T ](?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d))?)?",
    re.ASCII,
)
_MAILED = re.compile(r"(?:[A-Za-z]{3},\s{0,3})?\d{1,2} [A-Za-z]{3} \d{4} \d{1,2}:\d\d", re.ASCII)  # RFC 2822
_NUMBER = re.compile(r"\s*\d{9,19}(?:\.\d{1,9})?\s*", re.ASCII)  # shorter ones are years and dates


def role(name: Any) -> Role | None:
    """The role that a source means, or None for a name that is not a role."""
    if not isinstance(name, str):
        return None
    return ROLES.get(name) or ROLES.get(name.strip().lower())


def time(value: Any) -> datetime | None:
    """A moment from ISO 8601, epoch seconds, ms, µs or ns, or as it is; without a zone it is UTC. Raises ValueError."""
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    elif isinstance(value, str):
        moment = _from_text(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        moment = _from_epoch(value)
    else:
        raise ValueError("not a time")
    if moment.year not in YEARS:
        raise ValueError("year out of range")
    return moment


def time_or_none(value: Any) -> datetime | None:
    """The time, or None where there is none that can be read."""
    try:
        return time(value)
    except ValueError:
        return None


def count(value: Any) -> int | None:
    """A whole number from 0, or None."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < INTEGERS and value == int(value) else None


def seconds(value: Any, unit: float = 1.0) -> float | None:
    """A duration from 0 in seconds, or None; ``unit`` is how many of the source's make a second."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value / unit if 0 <= value < INTEGERS and math.isfinite(value) else None


def name(value: Any) -> str | None:
    """A non-empty id or name as text: a string, a number, or the ``name`` or ``id`` of an object."""
    if isinstance(value, str):
        return value if value.strip() else None
    if value is None:
        return None
    if isinstance(value, dict):
        return name(value.get("name")) or name(value.get("id"))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return None


def string(value: Any) -> str | None:
    """The value where it is a non-empty string."""
    return value if isinstance(value, str) and value else None


def blocks(content: Any) -> list[dict[str, Any]]:
    """Content in the shape of blocks: a string is one text block; what is neither is left out."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    return [{"type": "text", "text": each} if isinstance(each, str) else each
            for each in content if isinstance(each, str | dict)]  # fmt: skip


def text(content: Any) -> str | None:
    """The text of a string or of text blocks, paragraphs between blocks; None where there is no text at all."""
    if isinstance(content, str):
        return content
    texts = [each.get("text") for each in blocks(content) if isinstance(each.get("text"), str)]
    return "\n\n".join(str(each) for each in texts) if texts else None


def said_blocks(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks that have a text, of whatever type, but those of tools."""
    texts = (each for each in content if isinstance(each.get("text"), str))
    return [each for each in texts if not str(each.get("type")).startswith("tool_")]


def printed(value: Any) -> str:
    """A result as text: strings and text blocks as they are, anything else as JSON; blocks without words leave none."""
    words = text(value)
    if words is not None:
        return words
    if value is None or (
        isinstance(value, list) and all(isinstance(block, dict) and "type" in block for block in value)
    ):
        return ""
    return json.dumps(value, ensure_ascii=False, default=str)


def block_name(block: Mapping[str, Any]) -> str:
    """What is said of a block that is not read."""
    kind = str(block.get("type", "text"))
    medium = any(word in kind for word in ("image", "audio", "video", "file", "document", "media", "blob"))
    return BLOCK if medium else f"block of type {kind[:40]!r}, not read"


def tool_call(value: Any) -> ToolCall | None:
    """A tool call in the shapes that APIs use: ``{name, input}``, ``{name, arguments}``, ``{function: {…}}``."""
    if not isinstance(value, dict):
        return None
    inner = value["function"] if isinstance(value.get("function"), dict) else value
    called = name(inner.get("name")) or name(inner.get("tool_name"))
    arguments = next((inner[key] for key in ("input", "arguments", "args") if key in inner), None)
    call_id = next((value[key] for key in ("id", "call_id", "tool_call_id") if key in value), None)
    return ToolCall(name=called, id=name(call_id), input=arguments) if called else None


def tool_result(value: Any) -> ToolResult | None:
    """A tool result: its text under ``text``, ``content`` or ``output``, with the call that it answers."""
    if isinstance(value, str):
        return ToolResult(text=value)
    if not isinstance(value, dict):
        return None
    result_text = next((printed(value[key]) for key in _RESULT_TEXTS if value.get(key) is not None), "")
    call_id = next((value[key] for key in ("call_id", "tool_use_id", "tool_call_id") if key in value), None)
    error = value.get("is_error")
    return ToolResult(text=result_text, call_id=name(call_id), is_error=error if isinstance(error, bool) else None)


def convert_list(items: Any, convert: Callable[[Any], T | None]) -> tuple[T, ...]:
    """The items of a list that ``convert`` can read; () for what is no list."""
    if not isinstance(items, list):
        return ()
    return tuple(value for item in items if (value := convert(item)) is not None)


def _from_text(value: str) -> datetime:
    if value[4:5] != "-" and _NUMBER.fullmatch(value):
        return _from_epoch(float(value))
    moment = _from_words(value.strip())
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _from_words(text: str) -> datetime:
    """ISO 8601 in capitals or not, ``2026/04/01 9:00``, ``01.04.2026 9:00`` (day first), or the date of a mail."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    if match := _DATED.fullmatch(text):
        year, month, day = (match[name] or match[f"dotted_{name}"] for name in ("year", "month", "day"))
        hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
        return datetime(int(year), int(month), int(day), hour, minute, second)
    if _MAILED.match(text):
        from email.utils import parsedate_to_datetime  # here, since few inputs have such dates

        return parsedate_to_datetime(text)
    return datetime.fromisoformat(text.upper().replace(" UTC", "Z"))


def _from_epoch(value: float) -> datetime:
    for bound, unit in _EPOCH_UNITS:
        if 0 <= value < bound:
            return datetime.fromtimestamp(value / unit, UTC)
    raise ValueError("not a time")


class SkipLog:
    """Counts per reason, with the first place of each."""

    def __init__(self, net: UnreadWords | None = None) -> None:
        self._counts: dict[str, tuple[int, str]] = {}
        self._keys: set[str] = set()
        self.net = net

    def add(self, what: str, ref: SourceRef | str, number: int = 1, part: Any = None) -> None:
        """Count something once more; ``part`` is what is not read, where that is not all that stands at ``ref``."""
        count, first = self._counts.get(what, (0, str(ref)))
        self._counts[what] = (count + number, first)
        if self.net is not None and part is not None:
            self.net.named(part)
        elif self.net is not None and isinstance(ref, SourceRef) and what.endswith(_UNREAD):
            self.net.noted(ref)

    def time(self, value: Any, ref: SourceRef) -> datetime | None:
        """The time that a value means; one that cannot be read is noted and None."""
        try:
            return time(value)
        except ValueError:
            self.add(UNREADABLE_TIME, ref)
            return None

    def first_time(self, value: Mapping[str, Any], ref: SourceRef, keys: Iterable[str] = TIMES) -> datetime | None:
        """The time under the first of some keys that an object has."""
        return self.time(next((value[key] for key in keys if value.get(key) is not None), None), ref)

    def marks(self, value: Mapping[str, Any], ref: SourceRef) -> None:
        """Note that a source marks a message as deleted or edited; it is read as it stands."""
        if not _MARKS.isdisjoint(value):
            if any(value.get(key) for key in DELETED):
                self.add("message marked as deleted, read as it stands", ref)
            if any(value.get(key) for key in EDITED):
                self.add("edited message, read in its last wording", ref)

    def misplaced(self, value: Any, ref: SourceRef) -> None:
        """Note each sentence of an object that stands where an id, a kind or a time belongs."""
        for key, inner in value.items() if isinstance(value, dict) else ():
            if is_misplaced(key, inner):
                self.words_under(key, ref, inner)

    def no_object(self, value: Mapping[str, Any], ref: SourceRef, *keys: str) -> None:
        """Note each of these keys under which there are words, but not in an object."""
        for key in keys:
            if not isinstance(value.get(key), dict):
                self.unread({key: value.get(key)}, ref, frozenset())

    def blocks(self, content: Any, ref: SourceRef, read: Iterable[str] = ("text",)) -> None:
        """Note the blocks of a content that are of other types than those that are read, and what beside them is no
        block."""
        others = [part for part in content if not isinstance(part, str | dict)] if isinstance(content, list) else []
        if isinstance(content, list) and 0 < len(others) < len(content):
            self.add(ODD, ref, len(others))
        for block in blocks(content):
            self.misplaced(block, ref)
            kind = str(block.get("type", "text"))
            if (kind not in read or kind == "text") and not isinstance(block.get("text"), str):
                self.add(block_name(block), ref, part=block)
            elif kind.endswith(("tool_result", "tool_use")):
                self.unread(block, ref, _CALL_KEYS if kind.endswith("tool_use") else _RESULT_KEYS)
                self._elsewhere(block, ref)
                self.blocks(block.get("content"), ref)
            elif kind == "thinking":
                self.unread({"text": block.get("text")}, ref, frozenset())

    def _elsewhere(self, block: Mapping[str, Any], ref: SourceRef) -> None:
        """Note the keys under which a result that has no text where it belongs has a single word; more of them are
        words under any key."""
        if str(block["type"]).endswith("tool_result") and not block.keys() & set(_RESULT_TEXTS):
            for key, inner in block.items():
                if key not in _RESULT_KEYS and isinstance(inner, str) and inner.strip() and not _has_words(inner):
                    self.words_under(key, ref, inner)

    def odd(self, content: Any, ref: SourceRef) -> None:
        """Note a content, or what stands in its list, that is neither text nor a block."""
        listed = content if isinstance(content, list) else [content] if content is not None else []
        for part in listed:
            if not isinstance(part, str) and (part is content or not isinstance(part, dict)):
                self.add(ODD, ref)

    def calls(self, listed: Any, convert: Callable[[Any], ToolCall | None], ref: SourceRef) -> tuple[ToolCall, ...]:
        """The calls of a list that ``convert`` can read; the others, and what is no list, are noted."""
        calls = convert_list(listed, convert)
        missing = len(listed) - len(calls) if isinstance(listed, list) else int(bool(listed))
        if missing:
            self.add("call of a tool in an unknown form, not read", ref, missing)
        for call in listed if isinstance(listed, list) else ():
            self.misplaced(call, ref)
        return calls

    def unread(self, value: Mapping[str, Any], ref: SourceRef, read: frozenset[str]) -> None:
        """Note every key of an object that is not among those that are read and has words under it; and one that is
        read for an id, a kind or a time, where a sentence stands in its place."""
        for key, inner in value.items():
            if is_misplaced(key, inner) if key in read else key not in _MARKS and _has_words(inner):
                self.words_under(key, ref, inner)

    def words_under(self, key: str, ref: SourceRef, value: Any) -> None:
        """Note that the words of a value under a key are not read."""
        self._keys.add(key[:40])
        shown = key[:40] if len(self._keys) <= NOTED_KEYS else "…"
        self.add(f"words under {shown!r}, not read", ref, part=value)

    def settle(self) -> None:
        """Note words of the records so far that are in nothing that was read of them."""
        if self.net is not None:
            self.net.settle(self)

    def problems(self) -> Iterator[Problem]:
        """One note per reason, such as ``3 × hidden message, not read``."""
        self.settle()
        for what, (count, first) in self._counts.items():
            yield Problem(what=f"{count} × {what}", where=first, kind="note")


_UNREAD = (
    "not read",
    "read as no message",
    "read as none",
    "stand in the sample",
)  # how a note ends that names its place
_STOPS = frozenset(".!?…")  # what a sentence of one word ends with
_MARKS = frozenset((*DELETED, *EDITED))
_RESULT_TEXTS = ("text", "content", "output")  # the keys of a result's text, the first that has any
_TOOL_KEYS = frozenset(("type", "id", "name", "tool_name", "call_id", "tool_use_id", "tool_call_id", "is_error"))
_CALL_KEYS = _TOOL_KEYS | {"input", "arguments", "args", "function"}
_RESULT_KEYS = _TOOL_KEYS.union(_RESULT_TEXTS)
_SPACES, _SMALL = 3, re.compile(r"\b[^\W\d_A-Z]{4,}\b")  # "United States of America" is no sentence
_TOKENS = frozenset(
    ("id", "uuid", "ts", "type", "subtype", "kind", "role", "status", "state", "country", "language", "date", "time",
     "timestamp", "index", "epoch", "position", "weight", "team", "slug", "source", "tier", "version", "header",
     "latency", "latency_ms", "tokens", "cwd", "schema", "model", "model_name", "provided_model_name",
     "providedModelName", "isSidechain", "usage", "metrics", "final_metrics", "stop_reason", "span_kind",
     "openai_moderation", "detoxify_moderation")
)  # fmt: skip
_TOKEN = re.compile(
    r"(?:_(?:id|ip|ts|at|type|time|hash|order|version|slug|identifier|node)|[a-z](?:Id|At|Time|Uuid|Sent))$"
)
_IDS = frozenset(
    ("id", "uuid", "type", "subtype", "kind", "role", "index", "epoch", "position", "version", "cwd", "schema",
     "isSidechain", "usage", "metrics", "final_metrics", "stop_reason", "span_kind", "latency", "latency_ms", "tokens")
)  # fmt: skip
_ID = re.compile(r"(?:_(?:id|ip|type|hash|order|version|identifier|node)|[a-z](?:Id|Uuid))$")
_TIME = re.compile(r"^(?:date|time|timestamp|ts)$|_(?:at|time|ts)$|[a-z](?:At|Time|Sent)$")
_PATH = re.compile(r"(?:[~.]?/|[A-Za-z]:\\)\S|v?\d+\.\d")
_NAMES = frozenset(("name", "title", "model", "sender", "username", "timezone", "target"))


@lru_cache(maxsize=4096)
def is_token(key: str) -> bool:
    """Whether a key, by its name, has an id, a kind, a time or a number in every format."""
    return key in _TOKENS or _TOKEN.search(key) is not None


def is_misplaced(key: str, value: Any) -> bool:
    """Whether a sentence stands where an id, a kind or a time belongs; or words within an object in place of a name."""
    if not isinstance(value, str):
        return isinstance(value, dict | list) and (key in _NAMES or is_token(key)) and _has_words(value)
    return is_token(key) and _is_sentence(value) and time_or_none(value) is None


def is_unusual(key: str, text: str, is_label: bool) -> bool:
    """Whether a text of several words that nobody reads is no id, kind, time, name or label as its key has."""
    has = _usual_value(key)
    if has == "id":  # an id or a kind has no spaces, but a path may
        return _PATH.match(text) is None
    if has == "time" and not any(map(str.isdigit, text)):
        return True
    return not (has or is_label) or (_is_sentence(text) and time_or_none(text) is None)


@lru_cache(maxsize=4096)
def _usual_value(key: str) -> str:
    """What a key has by its name in every format: "id", "time" or "name"; "" for any other."""
    if key in _IDS or _ID.search(key):
        return "id"
    if _TIME.search(key):
        return "time"
    return "name" if key in _NAMES or is_token(key) else ""


def _is_sentence(text: str) -> bool:
    """Whether a text ends as a sentence does, has several lines, or four words and more, not all of them names; a path
    has none."""
    if text.rstrip()[-1:] in _STOPS or "\n" in text.strip():
        return True
    return text.count(" ") >= _SPACES and text[:1] not in "/~" and _SMALL.search(text) is not None


def is_wording(text: str) -> bool:
    """Whether a string has several words, or ends as a sentence does."""
    return " " in text.strip() or text.rstrip()[-1:] in _STOPS


def _has_words(value: Any) -> bool:
    """Whether there is a string of several words anywhere in a value."""
    stack, seen = [value], 0
    while stack and seen < 10_000:
        inner, seen = stack.pop(), seen + 1
        if isinstance(inner, str):
            if is_wording(inner):
                return True
        elif isinstance(inner, dict):
            stack += inner.values()
        elif isinstance(inner, list):
            stack += inner
    return bool(stack)


def inside(ref: SourceRef, *steps: str | int) -> SourceRef:
    """The place below ``ref``: steps of a JSON pointer, escaped."""
    escaped = (str(step)[:200].replace("~", "~0").replace("/", "~1") for step in steps)
    return SourceRef(file=ref.file, line=ref.line, pointer="/".join((ref.pointer or "", *escaped)))
