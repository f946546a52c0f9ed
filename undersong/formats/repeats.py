"""Texts that a source holds once more beside its messages: where one of them says something else, that is noted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from undersong.formats import values
from undersong.formats.values import SkipLog
from undersong.models import Message, SourceRef

OTHER_WORDS = "text that should repeat a message and has other words, not read"
_WORD = re.compile(r"\w+")


class Repeats:
    """The repeated texts of an input, or of a conversation, with their places."""

    def __init__(self) -> None:
        self._texts: list[tuple[str, SourceRef]] = []

    def add(self, content: Any, ref: SourceRef) -> None:
        """A content that is not read, since a message has its words."""
        text = values.text(content)
        if text and text.strip():
            self._texts.append((text.strip(), ref))

    def note_others(self, messages: Iterable[Message], notes: SkipLog) -> None:
        """Note each text with a word that no message, thought, call or result has."""
        messages = list(messages)
        whole = {message.text.strip() for message in messages}
        others = [(text, ref) for text, ref in self._texts if text not in whole]
        if not others:
            return
        words = {word for message in messages for text in texts_of(message) for word in _WORD.findall(text)}
        answers = squeezed(message.text for message in messages if message.role == "assistant")
        for text, ref in others:
            if not words.issuperset(_WORD.findall(text)) and squeezed((text,)) not in answers:
                notes.add(OTHER_WORDS, ref)


def squeezed(texts: Iterable[str]) -> str:
    """Texts one after the other without spaces, as some programs repeat the answers to a question."""
    return "".join("".join(text.split()) for text in texts)


def texts_of(message: Message) -> Iterator[str]:
    """What a message says, what was thought, what its tools were given and answered."""
    yield message.text
    yield message.thinking
    yield from (result.text for result in message.tool_results)
    for call in message.tool_calls:
        yield from strings(call.input)


def strings(value: Any) -> Iterator[str]:
    """Every string within a value."""
    stack = [value]
    while stack:
        inner = stack.pop()
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, dict):
            stack += inner.values()
        elif isinstance(inner, list):
            stack += inner
