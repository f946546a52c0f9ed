"""The net under all readers of JSON: strings with words that are in no message, no field that is kept and no note.

A reader says of what it knows that it does not read it. This net looks at every string of a record with several words
and names those that are nowhere afterwards, whichever key of whichever format they stand under.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import unescape
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from undersong.formats import values
from undersong.formats.quiet_keys import FRAMES, LABELS, REPEATING
from undersong.formats.repeats import squeezed, strings, texts_of
from undersong.formats.values import SkipLog
from undersong.models import Conversation, Message, Problem, SourceRef

if TYPE_CHECKING:
    from undersong.formats import Item
    from undersong.formats.json_stream import JsonRecord

Path: TypeAlias = "tuple[Path, str | int] | None"  # from the innermost step outwards
_WORD = re.compile(r"[^\W\d_]{4,}")
_TAG = re.compile(r"<[^<>]{0,400}>")
_NOT_SPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]{6,}")  # Thai, Japanese and Chinese have no spaces
_TYPED = frozenset(("value", "stringValue", "arrayValue", "kvlistValue", "values"))  # steps to the value in OTLP
_ENDS = frozenset(".!?…\n")  # most strings have neither a space nor such an end, and no words
_PLACE = re.compile(r":(\d+)|#(/.*)?", re.DOTALL)


class UnreadWords:
    """The strings of an input that have words, until something is seen that has the same words."""

    def __init__(self, form: str, name: str) -> None:
        self._form, self._name = form, name
        self._labels, self._repeating = LABELS.get(form, frozenset()), REPEATING.get(form, frozenset())
        self._open: dict[str, list[tuple[SourceRef, Path]]] = {}  # with its places
        self._read: list[Message] = []
        self._heads: dict[str, None] = {}  # titles of conversations
        self._noted = set[tuple[int | None, str]]()  # places that a note or a problem names
        self._named = set[str]()  # strings that a note names

    def records(self, items: Iterable[JsonRecord | Problem]) -> Iterator[JsonRecord | Problem]:
        """The records of an input, each looked at before it is handed on."""
        for item in items:
            if not isinstance(item, Problem):
                self.record(item.value, item.ref)
            yield item

    def record(self, value: Any, ref: SourceRef) -> None:
        """One record more."""
        for text, path in self._strings(value, None):
            self._open.setdefault(text, []).append((ref, path))

    def _strings(self, value: Any, path: Path) -> Iterator[tuple[str, Path]]:
        """The strings below a place that have words, but those that a program says."""
        stack: list[tuple[Any, Path]] = [(value if isinstance(value, dict | list) else [value], path)]
        while stack:
            inner, path = stack.pop()
            if self._form == "otel" and path is not None and _is_attribute(inner):
                path, inner = (path[0], inner["key"]), inner["value"]
            is_object = type(inner) is dict
            steps: Iterable[tuple[Any, Any]] = inner.items() if is_object else enumerate(inner)
            for step, below in steps:
                kind = type(below)
                if kind is str:
                    if (" " in below or below[-1:] in _ENDS or not below.isascii()) and _may_have_words(below):
                        key = step if type(step) is str else _key(path)
                        if self._is_unusual(below, key, inner if is_object else {}):
                            yield below, (path, step)
                elif (kind is dict or kind is list) and below and step not in self._repeating:
                    stack.append((below, (path, step)))

    def _is_unusual(self, text: str, key: str, around: Mapping[str, Any]) -> bool:
        """Whether somebody may have said a text with words, which stands under a key of an object."""
        if key in self._repeating or not values.is_unusual(key, text, key in self._labels):
            return False
        if key == "name" or "name" not in around:
            return True
        return _letters(around.get("name")) != _letters(text)  # "General Talk" named "generaltalk"

    def read(self, message: Message) -> None:
        """A message that came of the records."""
        if not self._open:
            return
        self._read.append(message)
        done = self._open.pop
        done(message.text, None)
        done(message.thinking, None)
        for result in message.tool_results:
            done(result.text, None)
        for call in message.tool_calls:
            for text in strings(call.input):
                done(text, None)

    def watched(self, items: Iterable[Item]) -> Iterator[Item]:
        """What came of the records, looked at before it is handed on."""
        for item in items:
            self.item(item)
            yield item

    def item(self, item: Item) -> None:
        """What came of the records: a conversation or a part of it, or a record that could not be read."""
        if isinstance(item, Conversation):
            if item.title:
                self._heads[item.title] = None
            for message in item.messages if self._open else ():
                self.read(message)
        elif isinstance(item, Problem) and item.kind == "record":
            match = _PLACE.fullmatch(item.where.removeprefix(self._name))
            if match:
                self._noted.add((int(match[1]) if match[1] else None, match[2] or ""))

    def noted(self, ref: SourceRef) -> None:
        """What stands at a place is not read, and a note says so."""
        place = ref.line, ref.pointer or ""
        if place != (None, ""):
            self._noted.add(place)

    def named(self, value: Any) -> None:
        """A value is not read, and a note says so."""
        for text in strings(value):
            if self._open.pop(text, None) is None:
                self._named.add(text)  # it may stand in a string that is JSON itself

    def settle(self, notes: SkipLog) -> None:
        """Note the strings whose words nothing has that was read so far; then begin anew."""
        if not self._open and not self._read:
            return
        nowhere = [item for item in self._open.items() if not any(self._is_noted(*place) for place in item[1])]
        if nowhere:
            words = _ReadWords(self._read, self._heads, FRAMES.get(self._form, frozenset()))
            for text, places in nowhere:
                if not (words.has(text) or self._is_read_json(text, words, places[0][1])):
                    notes.words_under(_key(places[0][1]), places[0][0], text)
        self._open, self._read = {}, []
        self._noted.clear()
        self._named.clear()

    def _is_read_json(self, text: str, words: _ReadWords, path: Path) -> bool:
        """Whether a string is JSON whose strings were read."""
        if text[0] not in "[{" or not isinstance(value := _decoded(text), dict | list):
            return False
        return all(inner in self._named or words.has(inner) for inner, _ in self._strings(value, path))

    def _is_noted(self, ref: SourceRef, path: Path) -> bool:
        """Whether a note says of a place, or of one around it, that it is not read."""
        steps = _steps(path) if self._noted else []
        places = (values.inside(ref, *steps[:number]).pointer or "" for number in range(len(steps) + 1))
        return bool(self._noted) and any((ref.line, place) in self._noted for place in places)


def settled(record: JsonRecord | Problem, items: Iterable[Item | Message], notes: SkipLog) -> Iterable[Item | Message]:
    """What came of a record that has nothing to do with others, whose words are looked for at once."""
    net = notes.net
    if net is None or isinstance(record, Problem):
        return items
    net.record(record.value, record.ref)
    came = list(items)
    for item in came:
        if isinstance(item, Message):
            net.read(item)
        else:
            net.item(item)
    net.settle(notes)
    return came


class _ReadWords:
    """The words of what was read."""

    def __init__(self, messages: list[Message], heads: Iterable[str], frame: frozenset[str]) -> None:
        self._texts = [text for message in messages for text in _texts(message)] + list(heads)
        self._words = frame.union(word for text in self._texts for word in _WORD.findall(text))
        self._squeezed = ""

    def has(self, text: str) -> bool:
        """Whether every word of a string was read, or all of it within a text that was joined."""
        plain = unescape(_TAG.sub(" ", text)) if "<" in text or "&" in text else text
        if _NOT_SPACED.search(plain) is None and self._words.issuperset(_WORD.findall(plain)):
            return True
        self._squeezed = self._squeezed or squeezed(self._texts)
        return any(squeezed((each,)) in self._squeezed for each in (plain, text))


def _texts(message: Message) -> Iterator[str]:
    """All that is kept of a message."""
    names = (message.author, message.agent, message.conversation, message.id, message.reply_to, message.target)
    yield from filter(None, (*names, message.model, message.branch))
    for call in message.tool_calls:
        yield from filter(None, (call.name, call.id))
    yield from filter(None, (result.call_id for result in message.tool_results))
    yield from texts_of(message)


def _is_attribute(value: Any) -> bool:
    """Whether an object is an attribute of OTLP: {"key": "a.name", "value": {"stringValue": …}}."""
    if not isinstance(value, dict) or value.keys() != {"key", "value"}:
        return False
    return isinstance(value["key"], str) and " " not in value["key"] and isinstance(value["value"], dict)


def _letters(name: Any) -> str:
    return "".join(filter(str.isalnum, name)).lower() if isinstance(name, str) else ""


def _may_have_words(text: str) -> bool:
    return values.is_wording(text) or not (text.isascii() or _NOT_SPACED.search(text) is None)


def _steps(path: Path) -> list[str | int]:
    """The steps to a place, the outermost first."""
    steps = list[str | int]()
    while path is not None:
        path, step = path
        steps.append(step)
    return steps[::-1]


def _key(path: Path) -> str:
    """The innermost key of a place."""
    while path is not None:
        if isinstance(path[1], str) and path[1] not in _TYPED:
            return path[1]
        path = path[0]
    return ""


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
