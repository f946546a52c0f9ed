"""All loops of many conversations: within messages, over turns, and of whole replies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from undersong.models import Conversation, Loop, Message
from undersong.scan.block import Block, Ints
from undersong.scan.loops import LoopFinder, prose_of
from undersong.scan.repeats import Repeats, repeats
from undersong.scan.replies import reply_loops
from undersong.scan.speech import Speech
from undersong.scan.telemetry import NOT_SPEAKERS
from undersong.scan.turns import Turns, occurrences, turn_loops

_MARKS = (b"```", b"~~~", b">")  # of code and quoted lines


def loops_of(
    conversations: Sequence[Conversation], messages: Sequence[Message], blocks: Sequence[Block], finder: LoopFinder
) -> dict[int, tuple[Loop, ...]]:
    """The loops of every message that has any, by its index.

    ``messages`` are those of all conversations and ``blocks`` hold their texts, in order.
    """
    speech = Speech(_spoken(messages, blocks))
    turns, group = _turns(conversations)
    repeated = repeats(speech, group, finder.rule.n)
    if not len(repeated.gram):
        return {}
    found = occurrences(repeated, turns)
    loops = {message: finder.within(speech.of(message)) for message in _looping(repeated, finder.rule.repeats)}
    for more in (
        turn_loops(finder, speech, found, turns.ids),
        reply_loops(finder, speech, repeated, found, turns),
    ):
        for message, own in more.items():
            loops[message] = loops.get(message, ()) + own
    return {message: own for message, own in loops.items() if own}


def _looping(repeated: Repeats, times: int) -> list[int]:
    """The messages in which a gram stands so many times."""
    last = times - 1
    gram, message = repeated.gram, repeated.message
    again = (gram[last:] == gram[:-last]) & (message[last:] == message[:-last])
    found: list[int] = np.unique(message[last:][again]).tolist()
    return found


def _spoken(messages: Sequence[Message], blocks: Sequence[Block]) -> list[Block]:
    """The blocks without code and quoted lines; a block without any stays what it is."""
    found, first = [], 0
    for block in blocks:
        texts = [message.text for message in messages[first : first + len(block)]]
        first += len(block)
        marked = block.texts_with(_MARKS)
        prose = {index: prose_of(texts[index]) for index in marked}
        changed = {index for index in marked if prose[index] != texts[index]}
        if not changed:
            found.append(block)
            continue
        pieces = [block.folded.get(index, text) for index, text in enumerate(texts)]
        found.append(Block([prose[index] if index in changed else piece for index, piece in enumerate(pieces)]))
    return found


def _turns(conversations: Sequence[Conversation]) -> tuple[Turns, Ints]:
    """Who speaks where, and a number for what each message is compared with; -1 where nobody speaks.

    A message of an abandoned branch is compared with itself alone.
    """
    ids: list[str] = []
    rows: list[tuple[int, int, int, int]] = []
    agents = 0
    for number, conversation in enumerate(conversations):
        counts: dict[str, list[int]] = {}
        seat = 0
        for message in conversation.messages:
            ids.append(message.id)
            if message.role in NOT_SPEAKERS:
                rows.append((-1, -1, -1, -1))
            elif message.branch is not None:
                rows.append((-1, -1, -1, len(conversations) + len(rows)))
            else:
                own = counts.get(message.agent or message.author)
                if own is None:
                    own = counts[message.agent or message.author] = [agents, 0]
                    agents += 1
                rows.append((own[0], own[1], seat, number))
                own[1] += 1
                seat += 1
    agent, turn, seats, group = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return Turns(ids, agent, turn, seats), group
