"""Repeated n-grams: within a message, and over the turns of one agent."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from undersong.datafiles.scan_config import StructureRules
from undersong.models import Loop
from undersong.scan.code import fences
from undersong.scan.text_batch import NONE, Ints
from undersong.scan.token_index import SPACING, Keys, TokenIndex, joined_keys, keys_of, mixed
from undersong.scan.unicode_fold import Folded, fold

Flags = npt.NDArray[np.bool_]
A = TypeVar("A")
Between = Callable[[int, int], Sequence[str]]
TOGETHER = 1 << 16  # grams that are looked at together: a long message may have millions
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
        self.headers = frozenset(rules.loops.headers)
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
        some = [self._says(speech, places[at : at + TOGETHER]) for at in range(0, len(places), TOGETHER)]
        return np.concatenate(some) if some else np.zeros(0, dtype=bool)

    def _says(self, speech: TokenIndex, places: Ints) -> Flags:
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
                own = list(counts[first:after])
                times = min(own)
                yield NgramRun(between(start, end), times, first + own.index(times))

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


class RepeatedNgrams(NamedTuple):
    """Grams that stand twice or more in a group of messages, sorted by ``gram`` and then by ``place``.

    ``gram`` numbers the distinct ones, ``place`` is the word at which one stands, ``message`` the message.
    """

    gram: Ints
    place: Ints
    message: Ints


def repeated_ngrams(speech: TokenIndex, group: Ints, n: int) -> RepeatedNgrams:
    """The repeated ``n``-grams; ``group`` has a number per message, and grams of different groups are different.

    Messages of a negative group have none.
    """
    place, message, keys = _counted(speech, group, n)
    order = np.argsort(keys, kind="stable")
    keys, place, message = keys[order], place[order], message[order]
    fresh = np.diff(keys, prepend=~keys[:1]) != 0
    again = np.flatnonzero(~fresh | ~np.append(fresh[1:], True)[: len(fresh)])
    return RepeatedNgrams(np.cumsum(fresh[again]) - 1, place[again], message[again])


def _counted(speech: TokenIndex, group: Ints, n: int) -> tuple[Ints, Ints, Keys]:
    """Place, message and key of few grams, by place: all that stand twice are among them."""
    keys = speech.grams(n)
    keys += np.repeat(mixed(group.astype(np.uint64) + np.uint64(1)), speech.counts)[: len(keys)]
    place = _likely(keys)
    message = np.searchsorted(speech.first, place, side="right") - 1
    counted = (place + n <= speech.first[message + 1]) & (group[message] >= 0)
    place, message = place[counted], message[counted]
    return place, message, keys[place]


def _likely(keys: Keys) -> Ints:
    """The places of keys that share their high bits with another one, rising: few, and all that stand twice.

    A key's low bits give way to its place, so that one sort of plain numbers tells both.
    """
    places = np.uint64((1 << len(keys).bit_length()) - 1)
    packed = keys & ~places
    packed |= np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    alike = (packed[1:] ^ packed[:-1]) <= places
    if not alike.any():
        return NONE
    shared = np.append(alike, False)
    shared[1:] |= alike
    likely: Ints = np.sort(packed[shared] & places).astype(np.int64)
    return likely


Floats = npt.NDArray[np.float64]


class SpeakerTurns(NamedTuple):
    """Who speaks in each message: ``ids`` of the messages, ``agent`` a number (agents of two conversations differ),
    ``agent_turn`` counts the agent's messages, ``conversation_turn`` those of the conversation. -1 where a message
    does not count.
    ``seconds`` is the time of each since 1970, without one that of its predecessor, NaN where nothing is known."""

    ids: Sequence[str]
    agent: Ints
    agent_turn: Ints
    conversation_turn: Ints
    seconds: Floats


class Occurrences(NamedTuple):
    """Where repeated grams stand in the turns of agents.

    ``agent_gram`` (a gram of an agent), ``message`` and ``rank`` have one entry per lane and turn that has it,
    sorted by
    both; ``rank`` counts the turns of a lane from 0, anew in each sitting. ``place`` has one entry per standing of a
    gram, ``gram`` its number, ``entry`` its index in ``message``.
    """

    agent_gram: Ints
    message: Ints
    rank: Ints
    place: Ints
    gram: Ints
    entry: Ints


def occurrences(repeated: RepeatedNgrams, turns: SpeakerTurns, apart: float) -> Occurrences:
    """The repeated grams by agent; more than ``apart`` seconds between two turns of a lane begin a new sitting."""
    counted, agent_gram = _by_agent(repeated, turns.agent)
    message = repeated.message[counted]
    fresh = (np.diff(agent_gram, prepend=-1) != 0) | (np.diff(message, prepend=-1) != 0)
    agent_grams, carriers = agent_gram[fresh], message[fresh]
    del agent_gram, message  # of a long message each takes as much as its text
    entry = np.cumsum(fresh, dtype=np.int64)
    entry -= 1
    rank = _ranks(agent_grams, turns.seconds[carriers], apart)
    return Occurrences(agent_grams, carriers, rank, repeated.place[counted], repeated.gram[counted], entry)


def _by_agent(repeated: RepeatedNgrams, agent: Ints) -> tuple[Ints, Ints]:
    """The repeated grams that an agent said, by their index, and a number for each gram of an agent, in its order."""
    counted = np.flatnonzero(agent[repeated.message] >= 0)
    agents = int(agent.max(initial=0)) + 1
    agent_gram = repeated.gram[counted] * agents + agent[repeated.message[counted]]
    order = np.argsort(agent_gram, kind="stable")
    return counted[order], agent_gram[order]


def _ranks(agent_grams: Ints, seconds: Floats, apart: float) -> Ints:
    """How many turns with the same gram of an agent came before, since a pause of more than ``apart`` seconds."""
    begins = (np.diff(agent_grams, prepend=-1) != 0) | (np.diff(seconds, prepend=np.nan) > apart)
    entries = np.arange(len(agent_grams))
    rank: Ints = entries - np.maximum.accumulate(np.where(begins, entries, 0))
    return rank


def message_loops(
    finder: LoopFinder, speech: TokenIndex, repeated: RepeatedNgrams, only: int | None = None
) -> dict[int, tuple[Loop, ...]]:
    """The n-grams that occur ``repeats`` times or more in one message, by its index; in ``only`` one if set."""

    def loop_of(run: NgramRun, _: int) -> Loop:
        return Loop(ngram=" ".join(run.words), count=run.times, scope="message")

    return _loops(finder, speech, repeated, _times_in_message(repeated), loop_of, only)


def _times_in_message(repeated: RepeatedNgrams) -> Ints:
    """How often each gram stands in its message."""
    fresh = (np.diff(repeated.gram, prepend=-1) != 0) | (np.diff(repeated.message, prepend=-1) != 0)
    occurrence = np.cumsum(fresh) - 1
    counts: Ints = np.bincount(occurrence)[occurrence]
    return counts


def turn_loops(
    finder: LoopFinder, speech: TokenIndex, agent_occurrences: Occurrences, ids: Sequence[str], only: int | None = None
) -> dict[int, tuple[Loop, ...]]:
    """The loops that each turn completes or continues, by the index of its message: a turn knows its past only.

    With ``only`` the index of a message, those of that turn alone.
    """
    entry = agent_occurrences.entry
    repeated = RepeatedNgrams(agent_occurrences.gram, agent_occurrences.place, agent_occurrences.message[entry])

    def loop_of(run: NgramRun, rarest: int) -> Loop:
        carriers = _carriers(int(entry[rarest]), agent_occurrences, finder.rule.recent, ids)
        return Loop(ngram=" ".join(run.words), count=run.times, scope="turns", message_ids=carriers)

    counts = agent_occurrences.rank[entry] + 1
    return _loops(finder, speech, repeated, counts, loop_of, only, finder.rule.turn_words)


def _loops(
    finder: LoopFinder,
    speech: TokenIndex,
    repeated: RepeatedNgrams,
    counts: Ints,
    loop_of: Callable[[NgramRun, int], Loop],
    only: int | None,
    least: int = 0,
) -> dict[int, tuple[Loop, ...]]:
    """The loops of each message from the ``counts`` of its repeated grams, of runs of ``least`` words."""
    often = np.flatnonzero(counts >= finder.rule.repeats)
    if only is not None:
        often = often[repeated.message[often] == only]
    if not len(often):
        return {}
    often = often[finder.is_informative(speech, repeated.place[often])]
    often = often[np.argsort(repeated.place[often], kind="stable")]
    edges = np.flatnonzero(np.diff(repeated.message[often], prepend=-1, append=-1)).tolist()
    result = {}
    for first, after in pairwise(edges):
        here = often[first:after]
        columns = (repeated.place[here], counts[here], repeated.gram[here])
        own = RepeatedInMessage(*(column.data for column in columns))  # a list takes five times the memory
        runs = ((" ".join(run.words), run.times, run) for run in finder.runs(speech.words, own, least))
        loops = tuple(loop_of(run, int(here[run.rarest])) for run in finder.foremost(runs))
        if loops:
            result[int(repeated.message[here[0]])] = loops
    return result


def _carriers(entry: int, agent_occurrences: Occurrences, recent: int, ids: Sequence[str]) -> tuple[str, ...]:
    earliest = entry - min(int(agent_occurrences.rank[entry]), recent - 1)
    return tuple(ids[message] for message in agent_occurrences.message[earliest : entry + 1].tolist())
