"""Repeated n-grams: within a message, and over the turns of one agent."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from undersong.scan.block import Ints
from undersong.scan.code import fences
from undersong.scan.normalise import Folded, fold
from undersong.scan.rules import StructureRules
from undersong.scan.speech import SPACING, Keys, TokenIndex, joined_keys, keys_of

Flags = npt.NDArray[np.bool_]
A = TypeVar("A")
Between = Callable[[int, int], Sequence[str]]
_QUOTED = re.compile(r"^[ \t]{0,3}>[^\n]*$", re.MULTILINE)


class RepeatedInMessage(NamedTuple):
    """The repeated grams of a message in order: the place of each, how often it stands, and its number."""

    places: Sequence[int]
    counts: Sequence[int]
    grams: Sequence[int]


class NgramRun(NamedTuple):
    """Neighbouring repeated grams joined: the words, the least count, and the index of the gram that has it."""

    words: Sequence[str]
    times: int
    rarest: int


class LoopFinder:
    """The loop rule with its word lists; holds no state of a conversation."""

    def __init__(self, rules: StructureRules) -> None:
        self.rule = rules.loops
        self.function_words = frozenset(rules.function_words.split())
        self.boilerplate = frozenset(
            gram for line in rules.boilerplate for gram in self.grams(words_of(line, fold(line)))
        )
        self._declines = tuple(f" {' '.join(words_of(line, fold(line)))} " for line in rules.declines)

    def declines(self, words: Sequence[str]) -> bool:
        """Whether a reply, by its words, declines a request."""
        text = f" {' '.join(words)} "
        return any(each in text for each in self._declines)

    def grams(self, words: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """The n-grams of a text, in order."""
        return zip(*(words[offset:] for offset in range(self.rule.n)), strict=False)

    def is_informative(self, speech: TokenIndex, places: Ints) -> Flags:
        """Whether the gram at each place says something: enough content words, and no boilerplate."""
        columns = [speech.keys[places + offset] for offset in range(self.rule.n)]
        function_words, boilerplate = self._ignored_keys
        content = self.rule.n - np.count_nonzero([_is_among(column, function_words) for column in columns], axis=0)
        says: Flags = (content >= self.rule.content_words) & ~_is_among(joined_keys(columns), boilerplate)
        return says

    @cached_property
    def _ignored_keys(self) -> tuple[Keys, Keys]:
        """The keys of the function words and of the boilerplate grams, sorted."""
        columns = [keys_of(words) for words in zip(*self.boilerplate, strict=True)]
        grams = joined_keys(columns) if columns else keys_of(())
        return np.sort(keys_of(list(self.function_words))), np.sort(grams)

    def runs(self, between: Between, repeated: RepeatedInMessage, least: int = 0) -> Iterator[NgramRun]:
        """Join neighbouring repeated grams; a run ends where a gram comes again.

        ``between(first, after)`` gives the words from one place up to another. Told are runs of ``least`` words, and of
        those that say the same the last one.
        """
        places, counts, grams = repeated
        last: dict[tuple[int, ...], tuple[int, int]] = {}
        for first, after in self._joined(places, grams):
            ngrams = tuple(grams[first:after])
            last.pop(ngrams, None)  # the order is that of the last ones
            last[ngrams] = first, after
        for first, after in last.values():
            start, end = places[first], min(places[after - 1] + self.rule.n, places[first] + self.rule.longest)
            if end - start >= least:
                own = counts[first:after]
                times = min(own)
                yield NgramRun(between(start, end), times, first + own.index(times))

    def long_enough(self, places: Ints, messages: Ints, words: int) -> Flags:
        """Which grams, in order, stand beside so many others that they are ``words`` words together, or more."""
        begins = np.ones(len(places), dtype=np.bool_)
        np.not_equal(places[1:], places[:-1] + 1, out=begins[1:])
        begins[1:] |= messages[1:] != messages[:-1]
        sizes = np.diff(np.flatnonzero(begins), append=len(places))
        return np.repeat(sizes + self.rule.n > words, sizes)

    def _joined(self, places: Sequence[int], grams: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Where runs begin and end among repeated grams."""
        first, expected, seen = 0, places[0], set[int]()
        for index, (place, gram) in enumerate(zip(places, grams, strict=True)):
            if place != expected or gram in seen:
                yield first, index
                first, seen = index, set()
            seen.add(gram)
            expected = place + 1
        yield first, len(places)

    def foremost(self, loops: Iterable[tuple[str, int, A]]) -> list[A]:
        """What is worth a row, of n-grams with their count and anything: longest and most frequent first, none inside
        another, ``reported`` at most. Of equal n-grams the last one counts."""
        distinct = {loop[0]: loop for loop in loops}.values()
        chosen: list[A] = []
        covered = ""
        for ngram, _, loop in sorted(distinct, key=lambda loop: (-loop[0].count(" ") * loop[1], loop[0])):
            if len(chosen) == self.rule.reported:
                break
            if f" {ngram} " not in covered:
                chosen.append(loop)
                covered += f" {ngram} \n"  # no n-gram goes on beyond a line
        return chosen


def _is_among(keys: Keys, sorted_keys: Keys) -> Flags:
    """Which keys are among some others, which are sorted."""
    if not len(sorted_keys):
        return np.zeros(len(keys), dtype=bool)
    among: Flags = sorted_keys[np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)] == keys
    return among


def words_of(text: str, folded: Folded) -> list[str]:
    """The folded words of a message, without its code and quoted lines; numbers are no words.

    So list numbers do not count, and "attempt 3 failed" is the same as "attempt 4 failed".
    """
    prose = prose_of(text)
    plain = folded.text if prose == text else fold(prose).text
    spaced = plain.encode().translate(SPACING).decode()
    return spaced.replace(" '", " ").replace("•", " ").split()


def prose_of(text: str) -> str:
    """A text with spaces in place of its code and quoted lines."""
    pieces, last = [], 0
    for start, end in non_prose_spans(text):
        pieces += [text[last:start], " " * (end - start)]
        last = end
    return "".join((*pieces, text[last:])) if pieces else text


def non_prose_spans(text: str) -> list[tuple[int, int]]:
    """The spans of a text's code and quoted lines, in order and apart from each other."""
    spans = [(fence.start, fence.end) for fence in fences(text)]
    if ">" not in text:
        return spans
    quoted = [match.span() for match in _QUOTED.finditer(text)]
    return sorted([*spans, *(each for each in quoted if not _is_inside(each, spans))])


def _is_inside(span: tuple[int, int], spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a span begins inside one of others, which are in order."""
    before = bisect_right(spans, span[0], key=itemgetter(0)) - 1
    return before >= 0 and span[0] < spans[before][1]
