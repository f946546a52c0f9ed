"""A message's own prose: its text without code and quoted lines, at the same places; sentences and clauses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from undersong.datafiles.verdict_config import pattern, roleplay_config
from undersong.models import Message, Scan

SENTENCE = 400  # characters looked at on each side for the ends of a sentence, so that one endless line stays cheap
_CURLY = str.maketrans("’‘“”\t", "''\"\" ")
_QUOTED = re.compile(r"^[ \t]{0,3}>[^\n]*$", re.MULTILINE)
_END = re.compile(r"[.!?](?=[\s\"')*_]|$)|\n")
_CLAUSE = re.compile(r"[,;:()]\s|[–—]|\s-\s|\b(?:and|but|so|then)\b")


def prose(message: Message, scan: Scan) -> str:
    """The text with spaces in place of its code and quoted lines, and plain quotation marks; as long as the text."""
    text = message.text.translate(_CURLY)
    spans = [
        (block.start, block.end) for block in scan.code_blocks if block.start is not None and block.end is not None
    ]
    spans += [match.span() for match in _QUOTED.finditer(text)] if ">" in text else []
    pieces, last = [], 0
    for start, end in sorted(spans):
        if end > last:
            start = max(start, last)
            pieces += [text[last:start], " " * (end - start)]
            last = end
    return "".join((*pieces, text[last:])) if pieces else text


def sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """The bounds of the sentence that holds ``start:end``; its end mark belongs to it."""
    low = max(0, start - SENTENCE)
    first = max((match.end() for match in _END.finditer(text, low, start)), default=low)
    after = _END.search(text, max(end - 1, start), end + SENTENCE)
    return first, after.end() if after else min(len(text), end + SENTENCE)


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """The bounds of each sentence in order, end marks included; an endless one is cut every ``SENTENCE`` characters."""
    first = 0
    for match in _END.finditer(text):
        yield from _cut(first, match.end())
        first = match.end()
    yield from _cut(first, len(text))


def _cut(first: int, last: int) -> Iterator[tuple[int, int]]:
    for start in range(first, last, SENTENCE):
        yield start, min(last, start + SENTENCE)


def clause_before(text: str, first: int, start: int) -> str:
    """What stands before ``start`` in its own clause, of a sentence that begins at ``first``."""
    cut = max((match.end() for match in _CLAUSE.finditer(text, first, start)), default=first)
    return text[cut:start]


_SPEECH = re.compile(r"\"[^\"\n]{1,2000}\"|“[^“”\n]{1,2000}”")


def asks_for_a_story(text: str) -> bool:
    """Whether somebody asks that a story be written or told."""
    return pattern((roleplay_config().asked,)).search(text) is not None


def without_speech(text: str) -> str:
    """The text with blanks in place of what is in quotation marks, so that every place stays the same."""
    return _SPEECH.sub(lambda match: " " * len(match[0]), text)


def is_speech(text: str) -> bool:
    """Whether people in quotation marks speak for so large a part that a signal of the whole is theirs."""
    quoted = sum(len(found[0]) for found in _SPEECH.finditer(text))
    return quoted >= roleplay_config().share * max(len(text), 1)
