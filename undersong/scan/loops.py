"""Repeated n-grams: within a message, and over the turns of one agent."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.models import Loop
from undersong.scan.block import Ints
from undersong.scan.code import fences
from undersong.scan.normalise import Folded, fold
from undersong.scan.rules import StructureRules
from undersong.scan.speech import SPACING, Keys, Speech, joined_keys, keys_of

Flags = npt.NDArray[np.bool_]
Between = Callable[[int, int], Sequence[str]]
_QUOTED = re.compile(r"^[ \t]{0,3}>[^\n]*$", re.MULTILINE)


class Run(NamedTuple):
    """Neighbouring repeated grams joined: the words, the least count, and the place of the gram that has it."""

    words: tuple[str, ...]
    times: int
    place: int


class LoopFinder:
    """The loop rule with its word lists; holds no state of a conversation."""

    def __init__(self, rules: StructureRules) -> None:
        self.rule = rules.loops
        self.function_words = frozenset(rules.function_words.split())
        self.boilerplate = frozenset(
            gram for line in rules.boilerplate for gram in self.grams(words_of(line, fold(line)))
        )

    def grams(self, words: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """The n-grams of a text, in order."""
        return zip(*(words[offset:] for offset in range(self.rule.n)), strict=False)

    def telling(self, speech: Speech, places: Ints) -> Flags:
        """Whether the gram at each place says something: enough content words, and no boilerplate."""
        columns = [speech.keys[places + offset] for offset in range(self.rule.n)]
        function_words, boilerplate = self._known
        content = self.rule.n - np.count_nonzero([_is_among(column, function_words) for column in columns], axis=0)
        says: Flags = (content >= self.rule.content_words) & ~_is_among(joined_keys(columns), boilerplate)
        return says

    @cached_property
    def _known(self) -> tuple[Keys, Keys]:
        """The keys of the function words and of the boilerplate grams, sorted."""
        columns = [keys_of(words) for words in zip(*self.boilerplate, strict=True)]
        grams = joined_keys(columns) if columns else keys_of(())
        return np.sort(keys_of(list(self.function_words))), np.sort(grams)

    def runs(self, between: Between, counts: Mapping[int, int], grams: Mapping[int, int]) -> list[Run]:
        """Join neighbouring repeated grams; a run ends where a gram comes again.

        ``counts`` and ``grams`` have the place of each repeated gram, in order: how often it stands, and its number.
        ``between(first, after)`` gives the words from one place up to another.
        """
        found: list[Run] = []
        run: list[int] = []
        seen: set[int] = set()
        for place, gram in grams.items():
            if run and (place != run[-1] + 1 or gram in seen):
                found.append(self._close(between, counts, run))
                run, seen = [], set()
            run.append(place)
            seen.add(gram)
        if run:
            found.append(self._close(between, counts, run))
        return found

    def report(self, loops: Iterable[Loop]) -> tuple[Loop, ...]:
        """The loops worth a row: longest and most frequent first, none inside another, ``reported`` at most."""
        distinct = {loop.ngram: loop for loop in loops}.values()
        kept: list[Loop] = []
        for loop in sorted(distinct, key=lambda loop: (-loop.ngram.count(" ") * loop.count, loop.ngram)):
            if len(kept) == self.rule.reported:
                break
            if not any(f" {loop.ngram} " in f" {other.ngram} " for other in kept):
                kept.append(loop)
        return tuple(kept)

    def _close(self, between: Between, counts: Mapping[int, int], run: Sequence[int]) -> Run:
        rarest = min(run, key=counts.__getitem__)
        end = min(run[-1] + self.rule.n, run[0] + self.rule.longest)
        return Run(tuple(between(run[0], end)), counts[rarest], rarest)


def _is_among(keys: Keys, known: Keys) -> Flags:
    """Which keys are among some others, which are sorted."""
    if not len(known):
        return np.zeros(len(keys), dtype=bool)
    among: Flags = known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys
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
    for start, end in unspoken(text):
        pieces += [text[last:start], " " * (end - start)]
        last = end
    return "".join((*pieces, text[last:])) if pieces else text


def unspoken(text: str) -> list[tuple[int, int]]:
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
