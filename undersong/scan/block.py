"""Many texts → one stretch of folded bytes, searched at once, with the way back to every verbatim span."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from undersong.scan.normalise import BREAK, COMMON, Folded, fold, stays_alone

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

EDGE = ord(BREAK)
NONE: Ints = np.zeros(0, dtype=np.int64)
SEPARATOR, SEPARATORS = 0x1C, 4  # \x1c to \x1f, which split words as white space does; BREAK is one of them
SPACE, LINE_FEED, RETURN, TAB, SPACES = 0x20, 0x0A, 0x0D, 0x09, 5  # \t \n \v \f \r follow each other
UNKNOWN, STAYS, CHANGES = range(3)
CAPITALS, LETTERS, CASE = np.uint8(ord("A")), np.uint8(26), np.uint8(0x20)  # what lies between "A" and "a"


class Block:
    """Texts side by side, folded, each between BREAKs.

    ``raw`` is the text as UTF-8 with plain quotes and dashes, in which letters and white space are still those of the
    source; ``starts`` are the places of the texts in it. ``data`` is ``raw`` folded: lower case, one space for each
    run of white space, BREAKs for a blank line. Texts with characters that fold to something else (ligatures,
    capitals with accents, zero-width ones) are folded one by one: ``folded`` holds them by their index.
    """

    def __init__(self, texts: Sequence[str | Folded]) -> None:
        self.folded = {index: each for index, each in enumerate(texts) if isinstance(each, Folded)}
        pieces = [each.text if isinstance(each, Folded) else each for each in texts]
        joined = _joined(pieces)
        self._split: dict[int, int] = {index: 0 for index in self.folded}
        if not joined.isascii():
            changing = _changing(joined, pieces).difference(self.folded)
            self.folded |= {index: fold(pieces[index]) for index in changing}
            self._split |= {index: len(pieces[index].split()) for index in changing}
            if changing:
                joined = _joined([self.folded[i].text if i in self.folded else each for i, each in enumerate(pieces)])
                pieces = [self.folded[i].text if i in self.folded else each for i, each in enumerate(pieces)]
        self.raw = joined.encode()
        self._bytes: Bytes = np.frombuffer(self.raw, dtype=np.uint8)
        # places of the bytes that continue a character
        self._tails: Ints = NONE if joined.isascii() else np.flatnonzero((self._bytes & 0xC0) == 0x80)
        lengths = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
        self._characters = np.cumsum(lengths + 1) - lengths  # the number of characters before each text
        self._before = self._tails - np.arange(len(self._tails))  # characters up to each tail
        self.starts: Ints = self._bytes_before(self._characters)
        self._removed = NONE  # places in ``raw`` that ``data`` is without, each less the number before it
        self.data = self._folded_bytes()

    def __len__(self) -> int:
        return len(self.starts)

    def text_of(self, places: Ints) -> Ints:
        """The index of the text in which each place of ``raw`` lies."""
        return np.searchsorted(self.starts, places, side="right") - 1

    def spans(self, starts: Sequence[int], ends: Sequence[int]) -> list[tuple[int, tuple[int, int] | None]]:
        """Text and verbatim span of stretches of ``data``; None where it would cut a character in two."""
        first, last = self._lifted(starts), self._lifted(np.asarray(ends, dtype=np.int64) - 1) + 1
        texts = self.text_of(first)
        origin = self._characters[texts]
        first = first - np.searchsorted(self._tails, first) - origin
        last = last - np.searchsorted(self._tails, last) - origin
        found = zip(texts.tolist(), first.tolist(), last.tolist(), strict=True)
        return [
            (text, self.folded[text].span(start, end) if text in self.folded else (start, end))
            for text, start, end in found
        ]

    def places(self, text: int, offsets: Sequence[int] | Ints) -> Ints:
        """Where offsets in a text, which is not in ``folded``, lie in ``raw``."""
        return self._bytes_before(self._characters[text] + np.asarray(offsets, dtype=np.int64))

    @cached_property
    def word_counts(self) -> list[int]:
        """How many words each text has, between white space."""
        first = np.flatnonzero(_word_begins(self._white, self._bytes)) + 1
        counts: list[int] = np.diff(np.searchsorted(first, np.append(self.starts, len(self.raw)))).tolist()
        for index in self.folded:
            counts[index] = self._split[index]
        return counts

    def words_of(self, text: int) -> int:
        """How many words one text has: for a few texts of a block this costs less than the counts of all."""
        if text in self._split:
            return self._split[text]
        start, end = int(self.starts[text]), int(self.ends[text])
        white = self._white[start:end]
        if not self._separated and self._single:
            return int(np.count_nonzero(white)) + 1 - int(white[0]) - int(white[-1]) if start < end else 0
        if not self._separated:
            return int(np.count_nonzero(white[:-1] > white[1:])) + (start < end and not white[0])
        around = slice(start - 1, end)
        return int(np.count_nonzero(_word_begins(self._white[around], self._bytes[around])))

    @cached_property
    def _separated(self) -> bool:
        """Whether a text has a separator that is no white space here."""
        return bool(np.count_nonzero((self._bytes - np.uint8(SEPARATOR)) < SEPARATORS) > len(self) + 1)

    def texts_with(self, marks: Iterable[bytes]) -> list[int]:
        """The texts that hold one of the marks."""
        found: set[int] = set()
        for mark in marks:
            at = self.raw.find(mark) if mark[:1] in self.raw else -1  # one byte is found much faster than three
            while at >= 0:
                text = int(self.text_of(np.array([at]))[0])
                found.add(text)
                at = self.raw.find(mark, int(self.ends[text]))
        return sorted(found)

    @cached_property
    def ends(self) -> Ints:
        """The place after each text in ``raw``."""
        return np.append(self.starts[1:], len(self.raw)) - 1

    def _bytes_before(self, characters: Ints) -> Ints:
        return characters + np.searchsorted(self._before, characters, side="right")

    def _lifted(self, places: Sequence[int] | Ints) -> Ints:
        found = np.asarray(places, dtype=np.int64)
        return found + np.searchsorted(self._removed, found, side="right")

    def _folded_bytes(self) -> bytes:
        folded = _byte_by_byte(self._bytes)
        self._white = white = folded == SPACE
        doubled = white[1:] & white[:-1]
        self._single = not doubled.any()
        if self._single:
            return folded.tobytes()
        again: Ints = np.flatnonzero(doubled) + 1
        first = np.flatnonzero(np.diff(again, prepend=-1) != 1)  # the second place of each run of white space
        starts, ends = again[first] - 1, again[np.append(first[1:], len(again)) - 1] + 1
        blank = (self._within(LINE_FEED, starts, ends) > 1) | (self._within(RETURN, starts, ends) > 1)
        in_blank = np.repeat(blank, ends - starts - 1)
        result = folded
        result[again[in_blank]] = EDGE
        result[starts[blank]] = EDGE
        removed = again[~in_blank]
        if len(removed):
            self._removed = removed - np.arange(len(removed))
            kept = np.ones(len(result), dtype=bool)
            kept[removed] = False
            result = result[kept]
        return result.tobytes()

    def _within(self, byte: int, starts: Ints, ends: Ints) -> Ints:
        places = np.flatnonzero(self._bytes == byte)
        return np.searchsorted(places, ends) - np.searchsorted(places, starts)


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
    found: npt.NDArray[np.bool_] = between[:-1] > between[1:]
    return found


class _Stays:
    """What each character does in folding, learnt as it is met."""

    def __init__(self) -> None:
        self._kinds: Bytes = np.zeros(0x110000, dtype=np.uint8)

    def changing(self, codes: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """Whether each code point folds to something else than itself."""
        kinds = self._kinds[codes]
        if not kinds.all():
            for code in np.unique(codes[kinds == UNKNOWN]).tolist():
                self._kinds[code] = STAYS if stays_alone(chr(code)) else CHANGES
            kinds = self._kinds[codes]
        changed: npt.NDArray[np.bool_] = kinds == CHANGES
        return changed


_STAYS = _Stays()


def _joined(pieces: Iterable[str]) -> str:
    joined = f"{BREAK}{BREAK.join(pieces)}{BREAK}"
    if not joined.isascii():
        for character, plain in COMMON:
            joined = joined.replace(character, plain)
    return joined


def _changing(joined: str, pieces: Sequence[str]) -> set[int]:
    """The texts in which a character folds to something else than itself."""
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    places = np.flatnonzero(codes > 0x7F)
    places = places[_STAYS.changing(codes[places])]
    ends = np.cumsum(np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces)) + 1)
    return set(np.unique(np.searchsorted(ends, places)).tolist())
