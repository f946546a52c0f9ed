"""Text → the spans of its sentences; a long one is cut at a space."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST = 400  # characters of a span: what a reader takes in as one quote
_END = re.compile(r"[.!?…][.!?…\"'”’)\]*_]*\s+|\n")


class Span(NamedTuple):
    """``text[start:end]`` of a message, in Unicode code points."""

    start: int
    end: int


def sentences(text: str) -> list[Span]:
    """The sentences in order, without outer white space; none is empty."""
    spans: list[Span] = []
    start = 0
    for end in [found.end() for found in _END.finditer(text)] + [len(text)]:
        kept = text[start:end].strip()
        if len(kept) > LONGEST:
            spans += _within(text, start, end)
        elif kept:
            first = text.index(kept, start)
            spans.append(Span(first, first + len(kept)))
        start = end
    return spans


def _within(text: str, start: int, end: int) -> Iterator[Span]:
    while start < end:
        cut = end if end - start <= LONGEST else text.rfind(" ", start + 1, start + LONGEST)
        cut = start + LONGEST if cut < 0 else cut
        kept = text[start:cut].strip()
        if kept:
            first = text.index(kept, start)
            yield Span(first, first + len(kept))
        start = cut
