"""N-grams that come again in the turns of one agent, found for many messages at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.models import Loop
from undersong.scan.block import Ints
from undersong.scan.loops import LoopFinder, RepeatedInMessage
from undersong.scan.repeats import RepeatedNgrams
from undersong.scan.speech import TokenIndex

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
    counted = np.flatnonzero(turns.agent[repeated.message] >= 0)
    agents = int(turns.agent.max(initial=0)) + 1
    agent_gram = repeated.gram[counted] * agents + turns.agent[repeated.message[counted]]
    order = np.argsort(agent_gram, kind="stable")
    agent_gram, counted = agent_gram[order], counted[order]
    message = repeated.message[counted]
    fresh = (np.diff(agent_gram, prepend=-1) != 0) | (np.diff(message, prepend=-1) != 0)
    agent_grams, carriers = agent_gram[fresh], message[fresh]
    seconds = turns.seconds[carriers]
    begins = (np.diff(agent_grams, prepend=-1) != 0) | (np.diff(seconds, prepend=np.nan) > apart)
    entries = np.arange(len(agent_grams))
    rank = entries - np.maximum.accumulate(np.where(begins, entries, 0))
    return Occurrences(
        agent_grams,
        carriers,
        rank,
        repeated.place[counted],
        repeated.gram[counted],
        np.cumsum(fresh, dtype=np.int64) - 1,
    )


def turn_loops(
    finder: LoopFinder, speech: TokenIndex, agent_occurrences: Occurrences, ids: Sequence[str], only: int | None = None
) -> dict[int, tuple[Loop, ...]]:
    """The loops that each turn completes or continues, by the index of its message: a turn knows its past only.

    With ``only`` the index of a message, those of that turn alone.
    """
    again = np.flatnonzero(agent_occurrences.rank[agent_occurrences.entry] >= finder.rule.repeats - 1)
    if only is not None:
        again = again[agent_occurrences.message[agent_occurrences.entry[again]] == only]
    if not len(again):
        return {}
    again = again[finder.is_informative(speech, agent_occurrences.place[again])]
    again = again[np.argsort(agent_occurrences.place[again], kind="stable")]
    message = agent_occurrences.message[agent_occurrences.entry[again]]
    joined = finder.long_enough(agent_occurrences.place[again], message, finder.rule.turn_words)
    again, message = again[joined], message[joined]
    edges = np.flatnonzero(np.diff(message, prepend=-1, append=-1)).tolist()
    result = {}
    for first, after in pairwise(edges):
        loops = _of_turn(finder, speech, agent_occurrences, again[first:after], ids)
        if loops:
            result[int(message[first])] = loops
    return result


def _of_turn(
    finder: LoopFinder, speech: TokenIndex, agent_occurrences: Occurrences, again: Ints, ids: Sequence[str]
) -> tuple[Loop, ...]:
    """``again``: the standings in ``agent_occurrences`` of repeated grams in one turn, in order of their places."""
    entries = agent_occurrences.entry[again]
    repeated = RepeatedInMessage(
        agent_occurrences.place[again].tolist(),
        (agent_occurrences.rank[entries] + 1).tolist(),
        agent_occurrences.gram[again].tolist(),
    )
    runs = finder.runs(speech.words, repeated, finder.rule.turn_words)
    return tuple(
        Loop(
            ngram=" ".join(run.words),
            count=run.times,
            scope="turns",
            message_ids=_carriers(int(entries[run.rarest]), agent_occurrences, finder.rule.recent, ids),
        )
        for run in finder.foremost((" ".join(run.words), run.times, run) for run in runs)
    )


def _carriers(entry: int, agent_occurrences: Occurrences, recent: int, ids: Sequence[str]) -> tuple[str, ...]:
    earliest = entry - min(int(agent_occurrences.rank[entry]), recent - 1)
    return tuple(ids[message] for message in agent_occurrences.message[earliest : entry + 1].tolist())
