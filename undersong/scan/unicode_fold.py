"""Unicode case folding (NFKC) for matching, with a map from folded offsets back to the verbatim text."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

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
SURROGATE = "surrogatepass"
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

    def place(self, source: int) -> int:
        """The folded offset of a source offset; after the stretch, where it falls inside a whole one."""
        segment = bisect_right(self.start, source) - 1
        if segment < 0:
            return 0
        stop = self.at[segment + 1] if segment + 1 < len(self.at) else self.length
        inside = source - self.start[segment]
        return stop if self.end[segment] and inside else min(self.at[segment] + inside, stop)


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
    folded, characters = (text.lower(), None) if text.isascii() else fold_characters(text)
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


def fold_characters(text: str) -> tuple[str, SpanMap | None]:
    """The text with each character folded and its white space as it is; no map means that no offset changes."""
    for character, plain in _COMMON:
        text = text.replace(character, plain)
    characters = set("".join(_NON_ASCII.findall(text)))
    if any(map(_joins, characters)):
        return _fold_clusters(text)
    folded = text.encode("utf-8", SURROGATE).lower().decode("utf-8", SURROGATE)  # the letters of ASCII
    changing = {character: plain for character in characters if (plain := _fold_cluster(character)) != character}
    for character, plain in changing.items():
        folded = folded.replace(character, plain)
    longer = [character for character, plain in changing.items() if len(plain) != 1]
    if not longer:
        return folded, None
    spans, last = SpanMap(), 0
    for match in re.finditer(f"[{''.join(sorted(longer))}]", text):
        place = match.start()
        spans.plain(last, place - last)
        spans.whole(place, place + 1, len(changing[match[0]]))
        last = place + 1
    spans.plain(last, len(text) - last)
    return folded, spans


def _fold_clusters(text: str) -> tuple[str, SpanMap | None]:
    """As ``fold_characters``, for a text with characters that fold with the one before them."""
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
        return _stays_alone(run)
    return run.isalpha() and not _IGNORABLE.search(run) and not _extends(run[0]) and _folds_to_itself(run)


@lru_cache(maxsize=16384)
def _stays_alone(character: str) -> bool:
    """Whether a character folds to itself, whatever stands beside it."""
    return not _extends(character) and _folds_to_itself(character)


@lru_cache(maxsize=16384)
def _joins(character: str) -> bool:
    """Whether a character may fold with the one before it."""
    return _extends(character) and not _IGNORABLE.match(character)


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
