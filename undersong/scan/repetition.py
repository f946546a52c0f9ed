"""All loops of many conversations: within messages, over turns, and of whole replies."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from math import nan

import numpy as np

from undersong.models import Conversation, Loop, Message
from undersong.scan.block import Block, Ints
from undersong.scan.code import FENCES
from undersong.scan.loops import LoopFinder, Repeated, prose_of, unspoken
from undersong.scan.repeats import Repeats, repeats
from undersong.scan.replies import reply_loops
from undersong.scan.speech import Speech
from undersong.scan.telemetry import NOT_SPEAKERS
from undersong.scan.turns import Turns, occurrences, turn_loops

_MARKS = (*FENCES, b">")  # of code and quoted lines


def loops_of(
    conversations: Sequence[Conversation],
    messages: Sequence[Message],
    blocks: Sequence[Block],
    finder: LoopFinder,
    only: int | None = None,
) -> dict[int, tuple[Loop, ...]]:
    """The loops of every message that has any, by its index.

    ``messages`` are those of all conversations and ``blocks`` hold their texts, in order. With ``only`` the index of a
    message, the loops within messages and over turns are told of that one alone.
    """
    if not messages:
        return {}
    speech = Speech(*spoken(messages, blocks))
    turns, group = _turns(conversations)
    repeated = repeats(speech, group, finder.rule.n)
    if not len(repeated.gram):
        return {}
    found = occurrences(repeated, turns, finder.rule.apart)
    loops: dict[int, tuple[Loop, ...]] = {}
    for each in (
        message_loops(finder, speech, repeated, only),
        turn_loops(finder, speech, found, turns.ids, only),
        reply_loops(finder, speech, repeated, found, turns),
    ):
        for message, own in each.items():
            loops[message] = loops.get(message, ()) + own
    return loops


def message_loops(
    finder: LoopFinder, speech: Speech, repeated: Repeats, only: int | None = None
) -> dict[int, tuple[Loop, ...]]:
    """The n-grams that stand ``repeats`` times or more in one message, by its index; in ``only`` one where given."""
    if not len(repeated.gram):
        return {}
    fresh = (np.diff(repeated.gram, prepend=-1) != 0) | (np.diff(repeated.message, prepend=-1) != 0)
    standing = np.cumsum(fresh) - 1
    count = np.bincount(standing)[standing]
    again = np.flatnonzero(count >= finder.rule.repeats)
    if only is not None:
        again = again[repeated.message[again] == only]
    if not len(again):
        return {}
    again = again[finder.telling(speech, repeated.place[again])]
    again = again[np.argsort(repeated.place[again], kind="stable")]
    edges = np.flatnonzero(np.diff(repeated.message[again], prepend=-1, append=-1)).tolist()
    found: dict[int, tuple[Loop, ...]] = {}
    for first, after in pairwise(edges):
        here = again[first:after]
        standing_here = Repeated(repeated.place[here].tolist(), count[here].tolist(), repeated.gram[here].tolist())
        runs = ((" ".join(run.words), run.times, run) for run in finder.runs(speech.words, standing_here))
        found[int(repeated.message[here[0]])] = tuple(
            Loop(ngram=" ".join(run.words), count=run.times, scope="message") for run in finder.foremost(runs)
        )
    return found


def spoken(messages: Sequence[Message], blocks: Sequence[Block]) -> tuple[list[Block], dict[int, tuple[Ints, Ints]]]:
    """The blocks, and where in each there is code or a quoted line; texts with an own folding are folded again."""
    heard, silent, first = [], dict[int, tuple[Ints, Ints]](), 0
    for number, block in enumerate(blocks):
        texts = [message.text for message in messages[first : first + len(block)]]
        first += len(block)
        spans = {index: found for index in block.texts_with(_MARKS) if (found := unspoken(texts[index]))}
        again = spans.keys() & block.folded.keys()
        if again:
            pieces = [block.folded.get(index, text) for index, text in enumerate(texts)]
            block = Block([prose_of(texts[index]) if index in again else piece for index, piece in enumerate(pieces)])
        heard.append(block)
        edges = [block.places(index, np.ravel(spans[index])) for index in sorted(spans.keys() - again)]
        if edges:
            both = np.concatenate(edges)
            silent[number] = both[0::2], both[1::2]
    return heard, silent


def _turns(conversations: Sequence[Conversation]) -> tuple[Turns, Ints]:
    """Who speaks where, and a number for what each message is compared with; -1 where nobody speaks.

    A message of an abandoned branch is compared with itself alone.
    """
    ids: list[str] = []
    rows, seconds = array("q"), array("d")
    agents = 0
    for number, conversation in enumerate(conversations):
        counts: dict[str, list[int]] = {}
        seat, now = 0, nan
        for message in conversation.messages:
            ids.append(message.id)
            now = message.time.timestamp() if message.time else now
            seconds.append(now)
            if message.role in NOT_SPEAKERS:
                rows.extend((-1, -1, -1, -1))
            elif message.branch is not None:
                rows.extend((-1, -1, -1, len(conversations) + len(ids)))
            else:
                own = counts.get(message.agent or message.author)
                if own is None:
                    own = counts[message.agent or message.author] = [agents, 0]
                    agents += 1
                rows.extend((own[0], own[1], seat, number))
                own[1] += 1
                seat += 1
    agent, turn, seats, group = np.frombuffer(rows, dtype=np.int64).reshape(-1, 4).T
    return Turns(ids, agent, turn, seats, np.frombuffer(seconds, dtype=np.float64)), group
