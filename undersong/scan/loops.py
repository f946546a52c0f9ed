"""All loops of many conversations: within messages, over turns, and of whole replies."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import nan

import numpy as np

from undersong.models import Conversation, Loop, Message
from undersong.scan.code import FENCES
from undersong.scan.near_duplicates import reply_loops
from undersong.scan.ngram_loops import (
    LoopFinder,
    SpeakerTurns,
    message_loops,
    non_prose_spans,
    occurrences,
    prose_of,
    repeated_ngrams,
    turn_loops,
)
from undersong.scan.structure import NOT_SPEAKERS
from undersong.scan.text_batch import Ints, TextBatch
from undersong.scan.token_index import TokenIndex

_MARKS = (*FENCES, b">")  # of code and quoted lines


def loops_of(
    conversations: Sequence[Conversation],
    messages: Sequence[Message],
    blocks: Sequence[TextBatch],
    finder: LoopFinder,
    only: int | None = None,
) -> dict[int, tuple[Loop, ...]]:
    """The loops of every message that has any, by its index.

    ``messages`` are those of all conversations and ``blocks`` hold their texts, in order. With ``only`` the index of a
    message, the loops within messages and over turns are told of that one alone.
    """
    if not messages:
        return {}
    speech = TokenIndex(*prose_blocks(messages, blocks))
    turns, group = _turns(conversations)
    repeated = repeated_ngrams(speech, group, finder.rule.n)
    if not len(repeated.gram):
        return {}
    agent_occurrences = occurrences(repeated, turns, finder.rule.apart)
    loops: dict[int, tuple[Loop, ...]] = {}
    for loops_by_message in (
        message_loops(finder, speech, repeated, only),
        turn_loops(finder, speech, agent_occurrences, turns.ids, only),
        reply_loops(finder, speech, repeated, agent_occurrences, turns),
    ):
        for message, own in loops_by_message.items():
            loops[message] = loops.get(message, ()) + own
    return loops


def prose_blocks(
    messages: Sequence[Message], blocks: Sequence[TextBatch]
) -> tuple[list[TextBatch], dict[int, tuple[Ints, Ints]]]:
    """The blocks, and where in each there is code or a quoted line; texts with an own folding are folded again."""
    prose, non_prose, first = [], dict[int, tuple[Ints, Ints]](), 0
    for number, block in enumerate(blocks):
        texts = [message.text for message in messages[first : first + len(block)]]
        first += len(block)
        spans = {
            index: quoted_spans for index in block.texts_with(_MARKS) if (quoted_spans := non_prose_spans(texts[index]))
        }
        again = spans.keys() & block.folded.keys()
        if again:
            pieces = [block.folded.get(index, text) for index, text in enumerate(texts)]
            block = TextBatch(
                [prose_of(texts[index]) if index in again else piece for index, piece in enumerate(pieces)]
            )
        prose.append(block)
        edges = [block.places(index, np.ravel(spans[index])) for index in sorted(spans.keys() - again)]
        if edges:
            both = np.concatenate(edges)
            non_prose[number] = both[0::2], both[1::2]
    return prose, non_prose


def _turns(conversations: Sequence[Conversation]) -> tuple[SpeakerTurns, Ints]:
    """Who speaks where, and a number for what each message is compared with; -1 where nobody speaks.

    A message of an abandoned branch is compared with itself alone.
    """
    ids: list[str] = []
    rows, seconds = array("q"), array("d")
    agents = 0
    for number, conversation in enumerate(conversations):
        counts: dict[str, list[int]] = {}
        conversation_turn, now = 0, nan
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
                rows.extend((own[0], own[1], conversation_turn, number))
                own[1] += 1
                conversation_turn += 1
    agent, turn, conversation_turns, group = np.frombuffer(rows, dtype=np.int64).reshape(-1, 4).T
    return SpeakerTurns(ids, agent, turn, conversation_turns, np.frombuffer(seconds, dtype=np.float64)), group
