"""Needles in folded text: one pass over its bytes, then the word boundaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ahocorasick_rs import BytesAhoCorasick, Implementation

from undersong.scan.normalise import is_word

_ASCII_WORD = tuple(is_word(chr(code)) for code in range(128))
HEAD = 14  # bytes by which a string is found before it is compared as a whole; shorter heads are found too often
LEAD_2, LEAD_3, LEAD_4 = 0xC0, 0xE0, 0xF0  # first bytes of UTF-8 sequences of that length


class Needle(NamedTuple):
    """A folded phrase; ``boundless`` is for scripts without spaces, where a word has no visible edge."""

    text: str
    boundless: bool = False


class AhoCorasickMatcher:
    """A DFA over the heads of all strings: linear in the text, whatever their number.

    With whole strings its table is several times as large, and what the processor's cache does not hold makes it
    slow: of natural text a third is saved.
    """

    def __init__(self, strings: Sequence[bytes]) -> None:
        by_head: dict[bytes, list[tuple[int, bytes]]] = {}
        for index, string in enumerate(strings):
            by_head.setdefault(string[:HEAD], []).append((index, string))
        self._strings = tuple(by_head.values())
        self._automaton = BytesAhoCorasick(list(by_head), implementation=Implementation.DFA)

    def find(self, data: bytes) -> list[tuple[int, int, int]]:
        """(index of the string, start, end) of every occurrence in any order, overlapping ones too."""
        return [
            (index, start, start + len(string))
            for head, start, _ in self._automaton.find_matches_as_indexes(data, overlapping=True)
            for index, string in self._strings[head]
            if data.startswith(string, start)
        ]


class Needles:
    """The needles of a book with the automaton that finds them."""

    def __init__(self, needles: Iterable[Needle]) -> None:
        self._bounded: list[tuple[bool, bool]] = []
        by_text: dict[str, list[int]] = {}
        for index, one in enumerate(needles):
            self._bounded.append(
                (not one.boundless and is_word(one.text[0]), not one.boundless and is_word(one.text[-1]))
            )
            by_text.setdefault(one.text, []).append(index)
        self._of_string = tuple(by_text.values())  # the automaton knows a text once, however many needles have it
        self._matcher = AhoCorasickMatcher([text.encode() for text in by_text])

    def find(self, data: bytes) -> list[tuple[int, int, int]]:
        """(start, end, index of the needle) wherever one stands between word boundaries, in order.

        ``data`` is folded text as UTF-8 that begins and ends with BREAK.
        """
        return sorted(
            (start, end, index)
            for string, start, end in self._matcher.find(data)
            for index in self._of_string[string]
            if self._stands_alone(data, index, start, end)
        )

    def _stands_alone(self, data: bytes, index: int, start: int, end: int) -> bool:
        before, after = self._bounded[index]
        return not (before and _word_before(data, start)) and not (after and _word_after(data, end))


def _word_before(data: bytes, at: int) -> bool:
    if data[at - 1] < 0x80:
        return _ASCII_WORD[data[at - 1]]
    first = at - 1
    while data[first] < LEAD_2:
        first -= 1
    return is_word(data[first:at].decode())


def _word_after(data: bytes, at: int) -> bool:
    lead = data[at]
    if lead < 0x80:
        return _ASCII_WORD[lead]
    return is_word(data[at : at + (2 if lead < LEAD_3 else 3 if lead < LEAD_4 else 4)].decode())
