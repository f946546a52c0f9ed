"""N-grams that come again in the turns of one agent, found for many messages at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.models import Loop
from undersong.scan.block import Ints
from undersong.scan.loops import LoopFinder, Repeated
from undersong.scan.repeats import Repeats
from undersong.scan.speech import Speech

Floats = npt.NDArray[np.float64]


class Turns(NamedTuple):
    """Who speaks in each message: ``ids`` of the messages, ``agent`` a number (agents of two conversations differ),
    ``turn`` counts the agent's messages, ``seat`` those of the conversation. -1 where a message does not count.
    ``seconds`` is the time of each since 1970, without one that of its predecessor, NaN where nothing is known."""

    ids: Sequence[str]
    agent: Ints
    turn: Ints
    seat: Ints
    seconds: Floats


class Occurrences(NamedTuple):
    """Where repeated grams stand in the turns of agents.

    ``lane`` (a gram of an agent), ``message`` and ``rank`` have one entry per lane and turn that has it, sorted by
    both; ``rank`` counts the turns of a lane from 0, anew in each sitting. ``place`` has one entry per standing of a
    gram, ``gram`` its number, ``entry`` its index in ``message``.
    """

    lane: Ints
    message: Ints
    rank: Ints
    place: Ints
    gram: Ints
    entry: Ints


def occurrences(repeated: Repeats, turns: Turns, apart: float) -> Occurrences:
    """The repeated grams by agent; more than ``apart`` seconds between two turns of a lane begin a new sitting."""
    kept = np.flatnonzero(turns.agent[repeated.message] >= 0)
    agents = int(turns.agent.max(initial=0)) + 1
    lane = repeated.gram[kept] * agents + turns.agent[repeated.message[kept]]
    order = np.argsort(lane, kind="stable")
    lane, kept = lane[order], kept[order]
    message = repeated.message[kept]
    fresh = (np.diff(lane, prepend=-1) != 0) | (np.diff(message, prepend=-1) != 0)
    lanes, carriers = lane[fresh], message[fresh]
    seconds = turns.seconds[carriers]
    begins = (np.diff(lanes, prepend=-1) != 0) | (np.diff(seconds, prepend=np.nan) > apart)
    entries = np.arange(len(lanes))
    rank = entries - np.maximum.accumulate(np.where(begins, entries, 0))
    return Occurrences(
        lanes, carriers, rank, repeated.place[kept], repeated.gram[kept], np.cumsum(fresh, dtype=np.int64) - 1
    )


def turn_loops(
    finder: LoopFinder, speech: Speech, found: Occurrences, ids: Sequence[str], only: int | None = None
) -> dict[int, tuple[Loop, ...]]:
    """The loops that each turn completes or continues, by the index of its message: a turn knows its past only.

    With ``only`` the index of a message, those of that turn alone.
    """
    again = np.flatnonzero(found.rank[found.entry] >= finder.rule.repeats - 1)
    if only is not None:
        again = again[found.message[found.entry[again]] == only]
    if not len(again):
        return {}
    again = again[finder.telling(speech, found.place[again])]
    again = again[np.argsort(found.place[again], kind="stable")]
    message = found.message[found.entry[again]]
    joined = finder.long_enough(found.place[again], message, finder.rule.turn_words)
    again, message = again[joined], message[joined]
    edges = np.flatnonzero(np.diff(message, prepend=-1, append=-1)).tolist()
    result = {}
    for first, after in pairwise(edges):
        loops = _of_turn(finder, speech, found, again[first:after], ids)
        if loops:
            result[int(message[first])] = loops
    return result


def _of_turn(
    finder: LoopFinder, speech: Speech, found: Occurrences, again: Ints, ids: Sequence[str]
) -> tuple[Loop, ...]:
    """``again``: the standings in ``found`` of repeated grams in one turn, in order of their places."""
    entries = found.entry[again]
    repeated = Repeated(found.place[again].tolist(), (found.rank[entries] + 1).tolist(), found.gram[again].tolist())
    runs = finder.runs(speech.words, repeated, finder.rule.turn_words)
    return tuple(
        Loop(
            ngram=" ".join(run.words),
            count=run.times,
            scope="turns",
            message_ids=_carriers(int(entries[run.rarest]), found, finder.rule.recent, ids),
        )
        for run in finder.foremost((" ".join(run.words), run.times, run) for run in runs)
    )


def _carriers(entry: int, found: Occurrences, recent: int, ids: Sequence[str]) -> tuple[str, ...]:
    earliest = entry - min(int(found.rank[entry]), recent - 1)
    return tuple(ids[message] for message in found.message[earliest : entry + 1].tolist())
