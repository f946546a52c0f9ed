"""Batched text search: many texts as one array of case-folded bytes, and the spans of its matches in the texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from undersong.scan.unicode_fold import BREAK, Folded, SpanMap, fold_characters

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

EDGE = BREAK.encode()
NONE: Ints = np.zeros(0, dtype=np.int64)
SPACE, LINE_FEED, RETURN, TAB, SPACES = 0x20, 0x0A, 0x0D, 0x09, 5  # \t \n \v \f \r follow each other
CAPITALS, LETTERS, CASE = np.uint8(ord("A")), np.uint8(26), np.uint8(0x20)  # what lies between "A" and "a"
_WHITE = bytes(chr(byte).isspace() and byte < 0x80 for byte in range(256))
CONTINUES, LEAD = 0x80, 0xC0  # a byte of UTF-8 that continues a character, and the bits that say so


class TextBatch:
    """Texts side by side as UTF-8, each between BREAKs.

    ``raw`` has their characters folded but for those of ASCII; ``starts`` are the places of the texts in it. ``data``
    is ``raw`` in lower case, with one space for each run of white space and BREAKs for a blank line.
    """

    def __init__(self, texts: Sequence[str | Folded]) -> None:
        self._original = texts
        self._maps: dict[int, SpanMap | Folded] = {}  # the ways back to texts in which offsets change
        encoded = [self._piece(index, text).encode() for index, text in enumerate(texts)]
        self.raw = EDGE.join([b"", *encoded, b""])
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        self.starts: Ints = np.cumsum(lengths + 1) - lengths
        self.ends: Ints = self.starts + lengths

    def _piece(self, index: int, text: str | Folded) -> str:
        if isinstance(text, Folded):
            self._maps[index] = text
            return text.text
        if text.isascii():
            return text
        folded, spans = fold_characters(text)
        if spans is not None:
            self._maps[index] = spans
        return folded

    def __len__(self) -> int:
        return len(self.starts)

    def text_of(self, places: Ints) -> Ints:
        """The index of the text in which each place of ``raw`` lies."""
        return np.searchsorted(self.starts, places, side="right") - 1

    def texts_with(self, marks: Iterable[bytes]) -> list[int]:
        """The texts that hold one of the marks."""
        indexes: set[int] = set()
        for mark in marks:
            at = self.raw.find(mark) if mark[:1] in self.raw else -1  # one byte is found much faster than three
            while at >= 0:
                text = int(self.text_of(np.array([at]))[0])
                indexes.add(text)
                at = self.raw.find(mark, int(self.ends[text]))
        return sorted(indexes)

    @cached_property
    def word_counts(self) -> list[int]:
        """How many words each text has, between white space."""
        white = np.frombuffer(self.raw.translate(_WHITE), dtype=np.bool_)
        first = np.flatnonzero(white[:-1] > white[1:]) + 1
        counts: list[int] = np.diff(np.searchsorted(first, np.append(self.starts, len(self.raw)))).tolist()
        for index, text in enumerate(self._original):
            if isinstance(text, str) and not text.isascii():
                counts[index] = len(text.split())
        return counts

    def spans(self, starts: Sequence[int], ends: Sequence[int]) -> list[tuple[int, tuple[int, int] | None]]:
        """Text and verbatim span of stretches of ``data``; None where it would cut a character in two."""
        first, last = self._in_raw(np.asarray(starts)), self._in_raw(np.asarray(ends) - 1)
        texts = self.text_of(first)
        origin, begin, end = map(self._characters, (self.starts[texts], first, last + 1))
        stretches = zip(texts.tolist(), (begin - origin).tolist(), (end - origin).tolist(), strict=True)
        return [
            (text, self._maps[text].span(start, stop) if text in self._maps else (start, stop))
            for text, start, stop in stretches
        ]

    def places(self, text: int, offsets: Sequence[int]) -> Ints:
        """Where offsets in a text lie in ``raw``."""
        spans = self._maps.get(text)
        if isinstance(spans, SpanMap):
            offsets = [spans.place(offset) for offset in offsets]
        characters = self._characters(self.starts[text]) + np.array(offsets, dtype=np.int64)
        return characters + np.searchsorted(self._tails - np.arange(len(self._tails)), characters, side="right")

    def _characters(self, places: Ints) -> Ints:
        """How many characters ``raw`` has before each place."""
        return places - np.searchsorted(self._tails, places)

    @cached_property
    def _tails(self) -> Ints:
        """The places in ``raw`` of bytes that continue a character."""
        if self.raw.isascii():
            return NONE
        return np.flatnonzero((np.frombuffer(self.raw, dtype=np.uint8) & LEAD) == CONTINUES)

    def _in_raw(self, places: Ints) -> Ints:
        """The places in ``raw`` of places in ``data``."""
        removed = self._collapsed[1]
        return places + np.searchsorted(removed, places, side="right")

    @property
    def data(self) -> bytes:
        """``raw`` folded."""
        return self._collapsed[0]

    @cached_property
    def _collapsed(self) -> tuple[bytes, Ints]:
        """``data``, and the places in ``raw`` that it is without, each less the number before it."""
        source = np.frombuffer(self.raw, dtype=np.uint8)
        result = _byte_by_byte(source)
        white = result == SPACE
        again: Ints = np.flatnonzero(white[1:] & white[:-1]) + 1
        if not len(again):
            return result.tobytes(), NONE
        first = np.flatnonzero(np.diff(again, prepend=-1) != 1)  # the second place of each run of white space
        starts = again[first] - 1
        blank = np.zeros(len(first), dtype=np.bool_)
        for line_end in (LINE_FEED, RETURN):
            later = np.add.reduceat(source[again] == line_end, first, dtype=np.int64)
            blank |= later + (source[starts] == line_end) > 1
        in_blank = np.repeat(blank, np.diff(first, append=len(again)))
        result[again[in_blank]] = EDGE[0]
        result[starts[blank]] = EDGE[0]
        removed = again[~in_blank]
        return np.delete(result, removed).tobytes(), removed - np.arange(len(removed))


def _byte_by_byte(data: Bytes) -> Bytes:
    """Lower case and single white space for ASCII, in a few passes of which each takes many bytes at once."""
    capital = (data - CAPITALS) < LETTERS
    folded: Bytes = data + capital.view(np.uint8) * CASE
    white = (data - np.uint8(TAB)) < SPACES
    if white.any():
        folded += white.view(np.uint8) * (np.uint8(SPACE) - data)
    return folded
