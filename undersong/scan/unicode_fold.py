"""Text → folded text for matching, with a map from its offsets back to the verbatim text."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

BREAK = "\x1e"  # stands for a blank line: no phrase contains it, so no phrase matches across one
LONGEST_CLUSTER = (
    31  # a base and 30 marks, the Stream-Safe limit of UAX 15: ordering marks is quadratic in their number
)

_QUOTES = dict.fromkeys(map(ord, "‘’‚‛ʼ´′＇"), "'") | dict.fromkeys(map(ord, "“”„‟«»″"), '"')
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−﹘﹣－"), "-")
_SPACES = {0x85: "\n", 0x2028: "\n", 0x2029: "\n\n", 0x1680: " "}
# one to one, and done first: most texts are ASCII after it, and the rest goes character by character
_COMMON = (("’", "'"), ("“", '"'), ("”", '"'), ("—", "-"), ("–", "-"), ("‘", "'"))
_PLAIN = _QUOTES | _DASHES | _SPACES
# Default_Ignorable_Code_Point of the Unicode character database: zero-width, soft hyphen, bidi controls, selectors
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character, from a broken export
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_RUN = re.compile(r"[ \t\n\r\f\v]{2,}")
_ODD_SPACES = ("  ", "\r", "\f", "\v")


class SpanMap:
    """Segments of the folded text and where they come from.

    Segment k starts at ``at[k]``. Where ``end[k]`` is 0 it is one to one from ``start[k]``; otherwise the whole
    segment stands for ``source[start[k]:end[k]]`` (a ligature, a composed letter, a run of spaces).
    """

    __slots__ = ("at", "end", "length", "start")

    def __init__(self) -> None:
        self.at: list[int] = []
        self.start: list[int] = []
        self.end: list[int] = []
        self.length = 0

    def plain(self, start: int, length: int) -> None:
        """Append a one-to-one stretch; joined to the last one where nothing lies between."""
        if not length:
            return
        joined = self.at and not self.end[-1] and self.start[-1] + self.length - self.at[-1] == start
        if not joined:
            self._add(start, 0)
        self.length += length

    def whole(self, start: int, end: int, length: int) -> None:
        """Append a stretch that only as a whole stands for ``source[start:end]``."""
        if length:
            self._add(start, end)
            self.length += length

    def _add(self, start: int, end: int) -> None:
        self.at.append(self.length)
        self.start.append(start)
        self.end.append(end)

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """The source span of ``folded[start:end]``, or None where an edge falls inside a whole stretch."""
        first = bisect_right(self.at, start) - 1
        last = bisect_right(self.at, end - 1) - 1
        if self.end[first] and self.at[first] != start:
            return None
        stop = self.at[last + 1] if last + 1 < len(self.at) else self.length
        if self.end[last] and stop != end:
            return None
        source_end = self.end[last] or self.start[last] + end - self.at[last]
        return self.start[first] + (0 if self.end[first] else start - self.at[first]), source_end


class Folded(NamedTuple):
    """Folded text and the maps back, innermost last; no map means that offsets are those of the source."""

    text: str
    maps: tuple[SpanMap, ...] = ()

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """The verbatim span of a folded one, or None where it would cut a character in two."""
        for one in reversed(self.maps):
            span = one.span(start, end)
            if span is None:
                return None
            start, end = span
        return start, end


def fold(text: str) -> Folded:
    """Casefolded NFKC with plain quotes and dashes and without ignorable characters.

    A run of white space is one space, a blank line is BREAK. ``span`` of the result leads back to the text.
    """
    folded, characters = (text.lower(), None) if text.isascii() else _fold_characters(text)
    collapsed, spaces = _collapse(folded)
    return Folded(collapsed, tuple(one for one in (characters, spaces) if one is not None))


def is_word(character: str) -> bool:
    """Whether a folded character belongs to a word: letter, digit, underscore or combining mark."""
    return character.isalnum() or character == "_" or (character > "\x7f" and unicodedata.category(character)[0] == "M")


def _collapse(text: str) -> tuple[str, SpanMap | None]:
    plain = text.replace("\n\n", BREAK * 2).replace("\n", " ").replace("\t", " ")
    if not any(odd in plain for odd in _ODD_SPACES):
        return plain, None
    spans, pieces, last = SpanMap(), [], 0
    for run in _RUN.finditer(text):
        start, end = run.span()
        pieces.append(text[last:start])
        spans.plain(last, start - last)
        pieces.append(BREAK if max(text.count("\n", start, end), text.count("\r", start, end)) > 1 else " ")
        spans.whole(start, end, 1)
        last = end
    pieces.append(text[last:])
    spans.plain(last, len(text) - last)
    return re.sub(r"[\t\n\r\f\v]", " ", "".join(pieces)), spans


def _fold_characters(text: str) -> tuple[str, SpanMap | None]:
    for character, plain in _COMMON:
        text = text.replace(character, plain)
    spans, pieces, last = SpanMap(), [], 0
    for run in _NON_ASCII.finditer(text):
        start, end = run.span()
        if _stays(run[0]):
            continue
        for first, after in _clusters(text, start, end):
            pieces.append(text[last:first].lower())
            spans.plain(last, first - last)
            folded = _fold_cluster(text[first:after])
            pieces.append(folded)
            if len(folded) == after - first == 1:
                spans.plain(first, 1)
            else:
                spans.whole(first, after, len(folded))
            last = after
    pieces.append(text[last:].lower())
    spans.plain(last, len(text) - last)
    one_to_one = spans.end == [0] and spans.start == [0] and spans.length == len(text)
    return "".join(pieces), None if one_to_one else spans


def _clusters(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Spans of what is folded together in a run of non-ASCII characters: a base and the marks that follow it."""
    clusters: list[tuple[int, int]] = []
    base = start - 1 if start and text[start - 1].isalnum() else None
    for index in range(start, end):
        character = text[index]
        if _IGNORABLE.match(character):
            clusters.append((index, index + 1))
        elif _extends(character) and base is not None and index - base <= LONGEST_CLUSTER:
            while clusters and clusters[-1][0] >= base:
                clusters.pop()
            clusters.append((base, index + 1))
        else:
            base = index
            clusters.append((index, index + 1))
    return clusters


def _stays(run: str) -> bool:
    """Whether a run of characters folds to itself, one by one: most scripts without capitals, most symbols."""
    if len(run) == 1:
        return stays_alone(run)
    return run.isalpha() and not _IGNORABLE.search(run) and not _extends(run[0]) and _folds_to_itself(run)


@lru_cache(maxsize=16384)
def stays_alone(character: str) -> bool:
    """Whether a character folds to itself, whatever stands beside it."""
    return not _extends(character) and _folds_to_itself(character)


def joins_others(character: str) -> bool:
    """Whether a character may fold with the one before it."""
    return _extends(character) and not _IGNORABLE.match(character)


def fold_alone(character: str) -> str:
    """What a character folds to where none beside it joins it."""
    return _fold_cluster(character)


def _folds_to_itself(run: str) -> bool:
    return _fold(run) == run == run.lower()


@lru_cache(maxsize=4096)
def _extends(character: str) -> bool:
    """Whether a character is written onto the one before it: a combining mark, a Hangul vowel or final."""
    return unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff"


def _fold(cluster: str) -> str:
    cleaned = _SURROGATE.sub("\ufffd", _IGNORABLE.sub("", cluster)).translate(_PLAIN)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", cleaned).casefold())
    return _IGNORABLE.sub("", folded).translate(_PLAIN)


_fold_cluster = lru_cache(maxsize=16384)(_fold)


Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.uint32]

ASCII, LEAD = 0x80, 0xC0  # below: a byte that is a character; from here on: one with which a longer character begins
LONGEST = 4  # bytes of a character in UTF-8
SURROGATE = "surrogatepass"  # half a character, from a broken export
# what a character does: folds to itself; to others, in as many words; so that words are counted in the source only;
# with what is beside it, or to more bytes than it has, so that its text is folded alone
UNKNOWN, STAYS, CHANGES, SPLITS, TOGETHER = range(5)
_LENGTH_2, _LENGTH_3, _LENGTH_4 = LEAD, 0xE0, 0xF0  # first bytes of characters of that length
_CODES = 0x110000


class NonAsciiCharacters(NamedTuple):
    """Characters beyond ASCII: where each begins, how many bytes it has, its code point, and what it does."""

    places: Ints
    lengths: Bytes
    codes: Codes
    kinds: Bytes

    def of(self, kind: int) -> Ints:
        """Where those that do this begin."""
        matching: Ints = self.places[self.kinds == kind]
        return matching


def non_ascii_characters(data: Bytes) -> tuple[NonAsciiCharacters, Ints]:
    """The characters beyond ASCII in UTF-8, and the places of the bytes that continue one."""
    positions = np.flatnonzero(data >= ASCII)
    leads = data[positions] >= LEAD
    places = positions[leads]
    first = data[places]
    lengths = (first >= _LENGTH_2).view(np.uint8) + (first >= _LENGTH_3) + (first >= _LENGTH_4) + np.uint8(1)
    codes = _codes(data, places, first, lengths)
    return NonAsciiCharacters(places, lengths, codes, _TABLE.kinds_of(codes)), positions[~leads]


def _codes(data: Bytes, places: Ints, first: Bytes, lengths: Bytes) -> Codes:
    codes = first.astype(np.uint32) & (np.uint32(0x7F) >> lengths)
    for place in range(1, LONGEST):
        longer = lengths > place
        if place == 1:  # every one of them
            codes = codes << 6 | (data[places + 1] & 0x3F)
        else:
            codes[longer] = codes[longer] << 6 | (data[places[longer] + place] & 0x3F)
    return codes


def folded(data: Bytes, letters: NonAsciiCharacters) -> tuple[Bytes, Ints]:
    """The bytes with every character that CHANGES or SPLITS folded, and the places of those that are left out."""
    changing = (letters.kinds == CHANGES) | (letters.kinds == SPLITS)
    if not changing.any():
        return data, letters.places[:0]
    places, codes = letters.places[changing], letters.codes[changing]
    become, sizes, lengths = _TABLE.become[codes], _TABLE.sizes[codes], letters.lengths[changing]
    result = data.copy()
    left_out: list[Ints] = []
    for place in range(LONGEST):
        own = sizes > place
        result[places[own] + place] = become[own] >> (8 * place) & 0xFF
        left_out.append(places[~own & (lengths > place)] + place)
    cut = np.sort(np.concatenate(left_out))
    stays = np.ones(len(data), dtype=np.bool_)
    stays[cut] = False
    return result[stays], cut


class _FoldingTable:
    """What each character does and becomes, learnt as it is met: up to four bytes, the first one lowest."""

    def __init__(self) -> None:
        self.kinds: Bytes = np.zeros(_CODES, dtype=np.uint8)
        self.become: Codes = np.zeros(_CODES, dtype=np.uint32)
        self.sizes: Bytes = np.zeros(_CODES, dtype=np.uint8)

    def kinds_of(self, codes: Codes) -> Bytes:
        """What the characters of these code points do."""
        kinds = self.kinds[codes]
        if not kinds.all():
            for code in np.unique(codes[kinds == UNKNOWN]).tolist():
                self._learn(code)
            kinds = self.kinds[codes]
        return kinds

    def _learn(self, code: int) -> None:
        character = chr(code)
        kind = _kind_of(character)
        if kind in (CHANGES, SPLITS):
            encoded = fold_alone(character).encode()
            self.become[code], self.sizes[code] = int.from_bytes(encoded, "little"), len(encoded)
        self.kinds[code] = kind


def _kind_of(character: str) -> int:
    if stays_alone(character):
        return STAYS
    folding = fold_alone(character)
    if joins_others(character) or len(folding.encode()) > len(character.encode("utf-8", SURROGATE)):
        return TOGETHER
    return CHANGES if folding and not character.isspace() and not any(map(str.isspace, folding)) else SPLITS


_TABLE = _FoldingTable()
