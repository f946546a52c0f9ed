"""N-grams that come again in the turns of one agent, found for a whole conversation at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.models import Loop
from undersong.scan.loops import LoopFinder

Ints = npt.NDArray[np.int64]


class Occurrences(NamedTuple):
    """Where the candidate grams of an agent stand.

    ``turn`` and ``rank`` have one entry per gram and turn that has it, sorted by both; ``rank`` counts the turns of a
    gram from 0. ``place`` has one entry per standing of a gram in the agent's words, ``entry`` its index in ``turn``.
    """

    turn: Ints
    rank: Ints
    place: Ints
    entry: Ints


class Turns:
    """The words of one agent's turns, as numbers, so that ten thousand turns stay small."""

    def __init__(self, finder: LoopFinder) -> None:
        self._finder = finder
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__
        self._ids: list[str] = []
        self._places: list[int] = []
        self._turns: list[npt.NDArray[np.int32]] = []

    def add(self, place: int, message_id: str, words: Sequence[str]) -> None:
        """Append a turn that stands at ``place`` of the conversation."""
        self._turns.append(np.array(list(map(self._numbers.__getitem__, words)), dtype=np.int32))
        self._ids.append(message_id)
        self._places.append(place)

    def loops(self) -> dict[int, tuple[Loop, ...]]:
        """The loops that each turn completes or continues, by its place: a turn knows its past only."""
        rule = self._finder.rule
        if len(self._turns) < rule.repeats:
            return {}
        lengths = np.array([len(turn) for turn in self._turns])
        words = np.concatenate(self._turns).astype(np.int64)
        found = self._occurrences(words, np.repeat(np.arange(len(lengths)), lengths))
        if found is None:
            return {}
        starts = np.cumsum(lengths) - lengths
        again = np.flatnonzero(found.rank[found.entry] >= rule.repeats - 1)
        turn_of = found.turn[found.entry[again]]
        edges = np.flatnonzero(np.diff(turn_of, prepend=-1, append=-1))
        spoken = list(self._numbers)
        result = {}
        for first, after in zip(edges.tolist(), edges[1:].tolist(), strict=False):
            turn = int(turn_of[first])
            here = again[first:after]
            entries = dict(zip((found.place[here] - starts[turn]).tolist(), found.entry[here].tolist(), strict=True))
            loops = self._of_turn([spoken[word] for word in self._turns[turn].tolist()], entries, found)
            if loops:
                result[self._places[turn]] = loops
        return result

    def _of_turn(self, words: list[str], entries: dict[int, int], found: Occurrences) -> tuple[Loop, ...]:
        """``entries``: places in the turn at which a repeated gram stands, and their entries in ``found``."""
        finder = self._finder
        repeated = {
            place: int(found.rank[entry]) + 1
            for place, entry in entries.items()
            if tuple(words[place : place + finder.rule.n]) not in finder.boilerplate
        }
        return finder.report(
            Loop(
                ngram=" ".join(run.words),
                count=run.times,
                scope="turns",
                message_ids=self._carriers(entries[run.place], found),
            )
            for run in finder.runs(words, repeated)
            if len(run.words) >= finder.rule.turn_words
        )

    def _carriers(self, entry: int, found: Occurrences) -> tuple[str, ...]:
        earliest = entry - min(int(found.rank[entry]), self._finder.rule.recent - 1)
        return tuple(self._ids[turn] for turn in found.turn[earliest : entry + 1].tolist())

    def _occurrences(self, words: Ints, turn_of: Ints) -> Occurrences | None:
        rule, size = self._finder.rule, len(self._numbers)
        place = self._candidates(words, turn_of)
        if not len(place):
            return None
        gram = words[place]
        for offset in range(1, rule.n):
            gram = np.unique(gram * size + words[place + offset], return_inverse=True)[1]
        turns = int(turn_of[-1]) + 1
        entries, entry = np.unique(gram * turns + turn_of[place], return_inverse=True)
        gram_of = entries // turns
        rank = np.arange(len(entries)) - np.searchsorted(gram_of, gram_of)
        return Occurrences(entries % turns, rank, place, entry)

    def _candidates(self, words: Ints, turn_of: Ints) -> Ints:
        """Places of grams that lie in one turn, of words that are frequent enough, with enough content words."""
        rule = self._finder.rule
        grams = len(words) - rule.n + 1
        if grams < 1:
            return np.zeros(0, dtype=np.int64)
        common = np.bincount(words, minlength=len(self._numbers)) >= rule.repeats
        spoken = list(self._numbers)
        content = np.zeros(len(common), dtype=np.int8)
        content[[number for number in np.flatnonzero(common).tolist() if self._finder.is_content(spoken[number])]] = 1
        is_common, is_content = common[words], content[words]
        kept = turn_of[:grams] == turn_of[rule.n - 1 :]
        contents = np.zeros(grams, dtype=np.int8)
        for offset in range(rule.n):
            kept &= is_common[offset : offset + grams]
            contents += is_content[offset : offset + grams]
        return np.flatnonzero(kept & (contents >= rule.content_words))
