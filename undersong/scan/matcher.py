"""Phrases in a folded text: one Aho-Corasick pass, then the word boundaries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ahocorasick_rs import AhoCorasick, Implementation

from undersong.scan.normalise import is_word


class Needle(NamedTuple):
    """A folded phrase; ``boundless`` is for scripts without spaces, where a word has no visible edge."""

    text: str
    boundless: bool = False


class Matcher(Protocol):
    """What finds needles: (index of the needle, start, end) in folded offsets, every overlapping one."""

    def find(self, folded: str) -> list[tuple[int, int, int]]:
        """All needles in the text that stand between word boundaries."""
        ...


class AhoCorasickMatcher:
    """A DFA over all needles: linear in the text, whatever their number."""

    def __init__(self, needles: Iterable[Needle]) -> None:
        self._needles = tuple(needles)
        self._bounded = tuple(
            (not one.boundless and is_word(one.text[0]), not one.boundless and is_word(one.text[-1]))
            for one in self._needles
        )
        by_text: dict[str, list[int]] = {}
        for index, one in enumerate(self._needles):
            by_text.setdefault(one.text, []).append(index)
        self._of_pattern = tuple(by_text.values())  # the automaton knows a text once, however many needles have it
        self._automaton = AhoCorasick(list(by_text), implementation=Implementation.DFA)

    def find(self, folded: str) -> list[tuple[int, int, int]]:
        """All needles in the text that stand between word boundaries."""
        found = self._automaton.find_matches_as_indexes(folded, overlapping=True)
        return [
            (index, start, end)
            for pattern, start, end in found
            for index in self._of_pattern[pattern]
            if self._stands_alone(folded, index, start, end)
        ]

    def _stands_alone(self, folded: str, index: int, start: int, end: int) -> bool:
        before, after = self._bounded[index]
        if before and start and is_word(folded[start - 1]):
            return False
        return not (after and end < len(folded) and is_word(folded[end]))
