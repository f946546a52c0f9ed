"""Text → the spans of its sentences; a long one is cut at a space."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST = 400  # characters of a span: what a reader takes in as one quote
_END = re.compile(r"[.!?…][.!?…\"'”’)\]*_]*\s+|\n")


class SentenceSpan(NamedTuple):
    """``text[start:end]`` of a message, in Unicode code points."""

    start: int
    end: int


def sentences(text: str) -> list[SentenceSpan]:
    """The sentences in order, without outer white space; none is empty."""
    spans: list[SentenceSpan] = []
    start = 0
    for end in [found.end() for found in _END.finditer(text)] + [len(text)]:
        sentence = text[start:end].strip()
        if len(sentence) > LONGEST:
            spans += _within(text, start, end)
        elif sentence:
            first = text.index(sentence, start)
            spans.append(SentenceSpan(first, first + len(sentence)))
        start = end
    return spans


def _within(text: str, start: int, end: int) -> Iterator[SentenceSpan]:
    while start < end:
        cut = end if end - start <= LONGEST else text.rfind(" ", start + 1, start + LONGEST)
        cut = start + LONGEST if cut < 0 else cut
        piece = text[start:cut].strip()
        if piece:
            first = text.index(piece, start)
            yield SentenceSpan(first, first + len(piece))
        start = cut
