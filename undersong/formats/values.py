"""Values of foreign data, read leniently: times, roles, numbers, texts of blocks; and the log of what is left out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar, get_args

from undersong.models import Problem, Role, SourceRef, ToolCall, ToolResult

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
EMPTY = "conversation without messages"
UNREADABLE_TIME = "time that cannot be read, taken as unknown"
_EPOCH_UNITS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9))  # below the bound: seconds, ms, µs, ns
_NUMBER = re.compile(r"\s*\d{9,19}(?:\.\d{1,9})?\s*", re.ASCII)  # shorter ones are years and dates


def role(name: Any) -> Role | None:
    """The role that a source means, or None for a name that is not a role."""
    if not isinstance(name, str):
        return None
    return ROLES.get(name) or ROLES.get(name.strip().lower())


def time(value: Any) -> datetime | None:
    """A moment from ISO 8601 or epoch seconds, ms, µs or ns; without a zone it is UTC. Raises ValueError."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
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
    result_text = next((text(value[key]) for key in ("text", "content", "output") if value.get(key) is not None), "")
    call_id = next((value[key] for key in ("call_id", "tool_use_id", "tool_call_id") if key in value), None)
    error = value.get("is_error")
    return ToolResult(
        text=result_text or "", call_id=name(call_id), is_error=error if isinstance(error, bool) else None
    )


def convert_list(items: Any, convert: Callable[[Any], T | None]) -> tuple[T, ...]:
    """The items of a list that ``convert`` can read; () for what is no list."""
    if not isinstance(items, list):
        return ()
    return tuple(value for item in items if (value := convert(item)) is not None)


def _from_text(value: str) -> datetime:
    if value[4:5] != "-" and _NUMBER.fullmatch(value):
        return _from_epoch(float(value))
    moment = datetime.fromisoformat(value.strip())
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _from_epoch(value: float) -> datetime:
    for bound, unit in _EPOCH_UNITS:
        if 0 <= value < bound:
            return datetime.fromtimestamp(value / unit, UTC)
    raise ValueError("not a time")


class SkipLog:
    """Counts per reason, with the first place of each."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, str]] = {}

    def add(self, what: str, ref: SourceRef | str, number: int = 1) -> None:
        """Count something once more."""
        count, first = self._counts.get(what, (0, str(ref)))
        self._counts[what] = (count + number, first)

    def time(self, value: Any, ref: SourceRef) -> datetime | None:
        """The time that a value means; one that cannot be read is noted and None."""
        try:
            return time(value)
        except ValueError:
            self.add(UNREADABLE_TIME, ref)
            return None

    def problems(self) -> Iterator[Problem]:
        """One note per reason, such as ``3 × hidden message, not read``."""
        for what, (count, first) in self._counts.items():
            yield Problem(what=f"{count} × {what}", where=first, kind="note")


def inside(ref: SourceRef, *steps: str | int) -> SourceRef:
    """The place below ``ref``: steps of a JSON pointer, escaped."""
    escaped = (str(step)[:200].replace("~", "~0").replace("/", "~1") for step in steps)
    return SourceRef(file=ref.file, line=ref.line, pointer="/".join((ref.pointer or "", *escaped)))
