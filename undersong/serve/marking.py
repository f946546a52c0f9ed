"""Text cut into runs where something is marked in it; a run says everything that marks it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice, pairwise
from typing import NamedTuple

_WORD = re.compile(r"\S+")
LONGEST = 20_000  # characters of a message that a page shows; the rest is said to be left out


class Span(NamedTuple):
    """``text[start:end]`` is marked, by a ``kind`` (a CSS class of ours) and with a title in words."""

    start: int
    end: int
    kind: str
    title: str


class MarkedRun(NamedTuple):
    """A run of text; ``kinds`` is "" where nothing marks it."""

    text: str
    kinds: str = ""
    title: str = ""


def marked(text: str, spans: Iterable[Span], longest: int = LONGEST) -> tuple[MarkedRun, ...]:
    """The text as runs in order, at most ``longest`` characters of it."""
    shown = text[:longest]
    inside = sorted({span for span in spans if 0 <= span.start < span.end <= len(text) and span.start < len(shown)})
    edges = sorted({0, len(shown), *(min(edge, len(shown)) for span in inside for edge in span[:2])})
    return tuple(_run(shown, start, end, inside) for start, end in pairwise(edges))


def beginning(text: str, words: int) -> tuple[str, str]:
    """The first words of a text, and the rest, which is "" where it is hardly longer."""
    ends = [place.end() for place in islice(_WORD.finditer(text), words + words // 2 + 1)]
    return (text, "") if len(ends) <= words + words // 2 else (text[: ends[words - 1]], text[ends[words - 1] :])


def _run(text: str, start: int, end: int, spans: list[Span]) -> MarkedRun:
    over = [span for span in spans if span.start <= start and end <= span.end]
    kinds = " ".join(dict.fromkeys(span.kind for span in over))
    return MarkedRun(text[start:end], kinds, "; ".join(dict.fromkeys(span.title for span in over)))
