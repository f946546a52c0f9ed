"""Many texts → one stretch of folded bytes, searched at once, with the way back to every verbatim span."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from undersong.scan.unicode_fold import (
    ASCII,
    BREAK,
    LEAD,
    SPLITS,
    STAYS,
    SURROGATE,
    TOGETHER,
    Folded,
    NonAsciiCharacters,
    fold,
    folded,
    non_ascii_characters,
)

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

EDGE = ord(BREAK)
NONE: Ints = np.zeros(0, dtype=np.int64)
SEPARATOR, SEPARATORS = 0x1C, 4  # \x1c to \x1f, which split words as white space does; BREAK is one of them
SPLITTERS = range(SEPARATOR, SEPARATOR + SEPARATORS)
SPACE, LINE_FEED, RETURN, TAB, SPACES = 0x20, 0x0A, 0x0D, 0x09, 5  # \t \n \v \f \r follow each other
CAPITALS, LETTERS, CASE = np.uint8(ord("A")), np.uint8(26), np.uint8(0x20)  # what lies between "A" and "a"


class TextBatch:
    """Texts side by side, folded, each between BREAKs.

    ``raw`` is the text as UTF-8 with characters beyond ASCII folded, in which ASCII letters and white space are still
    those of the source; ``starts`` are the places of the texts in it. ``data`` is ``raw`` folded: lower case, one space
    for each run of white space, BREAKs for a blank line. Texts with characters that fold together (letters and their
    marks) are folded one by one: ``folded`` holds them by their index.
    """

    def __init__(self, texts: Sequence[str | Folded]) -> None:
        self.folded = {index: each for index, each in enumerate(texts) if isinstance(each, Folded)}
        self._original: Sequence[str | Folded] = texts
        self._lay([each.text if isinstance(each, Folded) else each for each in texts])
        self._removed = NONE  # places in ``raw`` that ``data`` is without, each less the number before it
        self.data = self._folded_bytes()

    def _lay(self, pieces: Sequence[str]) -> None:
        """Put pieces side by side, those in ``folded`` as they are there, and fold characters."""
        joined = f"{BREAK}{BREAK.join(pieces)}{BREAK}"
        encoded = joined.encode("utf-8", SURROGATE)
        self._source: Bytes = np.frombuffer(encoded, dtype=np.uint8)
        lengths = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
        self._characters = np.cumsum(lengths + 1) - lengths  # the number of characters before each text
        self._tails = self._before = NONE  # places of bytes that continue a character; the characters up to each
        self._cut = NONE  # places of the source that ``raw`` is without
        self._split = set(self.folded)  # texts whose words are counted as they were given
        self._bytes = self._source
        if not joined.isascii():
            letters, self._tails = non_ascii_characters(self._source)
            self._before = self._tails - np.arange(len(self._tails))
            if self._folds_more(letters, pieces):
                return
            self._split.update(self._texts_with(letters, SPLITS))
            self._bytes, self._cut = folded(self._source, letters)
        self._kept = self._cut - np.arange(len(self._cut))  # what ``raw`` has of the source before each cut
        self.starts = self._raw_place(self._characters)
        self.raw = encoded if self._bytes is self._source else self._bytes.tobytes()

    def _folds_more(self, letters: NonAsciiCharacters, pieces: Sequence[str]) -> bool:
        """Fold texts with characters that fold together, if any, and begin anew with them."""
        together = self._texts_with(letters, TOGETHER).difference(self.folded)
        if together:
            self.folded |= {index: fold(pieces[index]) for index in together}
            self._lay([self.folded[i].text if i in self.folded else each for i, each in enumerate(pieces)])
            return True
        if self.folded:
            done = np.isin(self._text_of_source(letters.places), list(self.folded))
            letters.kinds[done] = STAYS
        return False

    def _texts_with(self, letters: NonAsciiCharacters, kind: int) -> set[int]:
        return set(np.unique(self._text_of_source(letters.of(kind))).tolist())

    def _text_of_source(self, places: Ints) -> Ints:
        starts = self._characters + np.searchsorted(self._before, self._characters, side="right")
        return np.searchsorted(starts, places, side="right") - 1

    def __len__(self) -> int:
        return len(self.starts)

    def text_of(self, places: Ints) -> Ints:
        """The index of the text in which each place of ``raw`` lies."""
        return np.searchsorted(self.starts, places, side="right") - 1

    def spans(self, starts: Sequence[int], ends: Sequence[int]) -> list[tuple[int, tuple[int, int] | None]]:
        """Text and verbatim span of stretches of ``data``; None where it would cut a character in two."""
        first, last = self._lifted(starts), self._lifted(np.asarray(ends, dtype=np.int64) - 1)
        texts = self.text_of(first)
        begin, end, after = (self._in_source(places) for places in (first, last, last + 1))
        whole = ~(self._continues(begin) | self._continues(after))
        origin = self._characters[texts]
        begin = begin - np.searchsorted(self._tails, begin, side="right") - origin
        end = end - np.searchsorted(self._tails, end, side="right") - origin + 1
        stretches = zip(texts.tolist(), begin.tolist(), end.tolist(), whole.tolist(), strict=True)
        return [(text, self._span(text, start, end) if kept else None) for text, start, end, kept in stretches]

    def _span(self, text: int, start: int, end: int) -> tuple[int, int] | None:
        return self.folded[text].span(start, end) if text in self.folded else (start, end)

    def _continues(self, places: Ints) -> npt.NDArray[np.bool_]:
        continues: npt.NDArray[np.bool_] = (self._source[places] & LEAD) == ASCII
        return continues

    def _in_source(self, places: Ints) -> Ints:
        """The places in the source of places of ``raw``."""
        return places + np.searchsorted(self._kept, places, side="right") if len(self._cut) else places

    def places(self, text: int, offsets: Sequence[int] | Ints) -> Ints:
        """Where offsets in a text, which is not in ``folded``, lie in ``raw``."""
        return self._raw_place(self._characters[text] + np.asarray(offsets, dtype=np.int64))

    @cached_property
    def word_counts(self) -> list[int]:
        """How many words each text has, between white space."""
        first = np.flatnonzero(_word_begins(self._white, self._bytes)) + 1
        counts: list[int] = np.diff(np.searchsorted(first, np.append(self.starts, len(self.raw)))).tolist()
        for index in self._split:
            counts[index] = self._original_word_count(index)
        return counts

    def words_of(self, text: int) -> int:
        """How many words one text has: for a few texts of a block this costs less than the counts of all."""
        if text in self._split:
            return self._original_word_count(text)
        start, end = int(self.starts[text]), int(self.ends[text])
        own, white = self.raw[start:end], self._white[start:end]
        if own and self._single and not any(map(own.__contains__, SPLITTERS)):
            return int(np.count_nonzero(white)) + 1 - int(white[0]) - int(white[-1])
        around = slice(start - 1, end)
        return int(np.count_nonzero(_word_begins(self._white[around], self._bytes[around])))

    def _original_word_count(self, text: int) -> int:
        original = self._original[text]
        return 0 if isinstance(original, Folded) else len(original.split())

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
    def ends(self) -> Ints:
        """The place after each text in ``raw``."""
        return np.append(self.starts[1:], len(self.raw)) - 1

    def _raw_place(self, characters: Ints) -> Ints:
        """Where the character after so many begins in ``raw``."""
        source = characters + np.searchsorted(self._before, characters, side="right")
        return source - np.searchsorted(self._cut, source)

    def _lifted(self, places: Sequence[int] | Ints) -> Ints:
        offsets = np.asarray(places, dtype=np.int64)
        return offsets + np.searchsorted(self._removed, offsets, side="right")

    def _folded_bytes(self) -> bytes:
        folded = _byte_by_byte(self._bytes)
        self._white = white = folded == SPACE
        doubled = white[1:] & white[:-1]
        self._single = not doubled.any()
        if self._single:
            return folded.tobytes()
        again: Ints = np.flatnonzero(doubled) + 1
        first = np.flatnonzero(np.diff(again, prepend=-1) != 1)  # the second place of each run of white space
        starts = again[first] - 1
        blank = self._several(LINE_FEED, starts, again, first) | self._several(RETURN, starts, again, first)
        in_blank = np.repeat(blank, np.diff(first, append=len(again)))
        result = folded
        result[again[in_blank]] = EDGE
        result[starts[blank]] = EDGE
        removed = again[~in_blank]
        if len(removed):
            self._removed = removed - np.arange(len(removed))
            keep = np.ones(len(result), dtype=bool)
            keep[removed] = False
            result = result[keep]
        return result.tobytes()

    def _several(self, byte: int, starts: Ints, again: Ints, first: Ints) -> npt.NDArray[np.bool_]:
        """Which runs of white space have a byte twice: ``again`` are their places but the first, from ``first`` on."""
        own = (self._bytes[again] == byte).view(np.uint8)
        repeated: npt.NDArray[np.bool_] = (
            np.add.reduceat(own, first, dtype=np.int64) + (self._bytes[starts] == byte) > 1
        )
        return repeated


def _byte_by_byte(data: Bytes) -> Bytes:
    """Lower case and single white space for ASCII, in a few passes of which each takes many bytes at once."""
    capital = (data - CAPITALS) < LETTERS
    folded: Bytes = data + capital.view(np.uint8) * CASE
    white = (data - np.uint8(TAB)) < SPACES
    if white.any():
        folded += white.view(np.uint8) * (np.uint8(SPACE) - data)
    return folded


def _word_begins(white: npt.NDArray[np.bool_], data: Bytes) -> npt.NDArray[np.bool_]:
    """For each byte but the last whether a word begins after it; ``white``: where white space is."""
    between = white | ((data - np.uint8(SEPARATOR)) < SEPARATORS)
    begins: npt.NDArray[np.bool_] = between[:-1] > between[1:]
    return begins
