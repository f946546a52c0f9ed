"""All loops of many conversations: within messages, over turns, and near-duplicate replies."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import nan
from typing import Literal

import numpy as np

from undersong.models import Conversation, Loop, Message
from undersong.scan.code import FENCES
from undersong.scan.ngram_loops import (
    LoopFinder,
    Occurrences,
    RepeatedNgrams,
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

HEADERS = 2  # header words of a loop from which on it is the head of a mail
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
    loops = message_loops(finder, speech, repeated, only)  # first, since both take much memory of a long message
    agent_occurrences = occurrences(repeated, turns, finder.rule.apart)
    for loops_by_message in (
        turn_loops(finder, speech, agent_occurrences, turns.ids, only),
        reply_loops(finder, speech, repeated, agent_occurrences, turns),
    ):
        for message, own in loops_by_message.items():
            loops[message] = loops.get(message, ()) + own
    return _stuck(loops, conversations, finder)


def _stuck(
    loops: Mapping[int, tuple[Loop, ...]], conversations: Sequence[Conversation], finder: LoopFinder
) -> dict[int, tuple[Loop, ...]]:
    """The loops in which an agent is stuck: no user's turn, no headers of mail, and of work with tools no topic words.

    Whoever works with tools names the same files and writes lists of the same form; there a repeat within a message
    counts where it is a good part of it, and one over turns where whole replies come again.
    """
    stuck: dict[int, tuple[Loop, ...]] = {}
    place = -1
    for conversation in conversations:
        works = False
        for message in conversation.messages:
            place += 1
            works |= bool(message.tool_calls or message.tool_results)
            own = loops.get(place, ()) if message.role != "user" else ()
            left = tuple(loop for loop in own if _is_stuck(loop, message, finder, works=works))
            if left:
                stuck[place] = left
    return stuck


def _is_stuck(loop: Loop, message: Message, finder: LoopFinder, *, works: bool) -> bool:
    words = loop.ngram.split()
    if loop.scope in ("message", "turns") and sum(word in finder.headers for word in words) >= HEADERS:
        return False
    if not works or loop.scope not in ("message", "turns"):
        return True
    return loop.scope == "message" and len(words) * loop.count >= finder.rule.share_with_tools * len(
        message.text.split()
    )


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


ECHO = 0  # the "lag" of a message that is alike the one just before it, of another speaker
Alike = dict[int, dict[int, int]]  # message → lag in turns of its agent (or ECHO) → the earlier message


def reply_loops(
    finder: LoopFinder,
    speech: TokenIndex,
    repeated: RepeatedNgrams,
    agent_occurrences: Occurrences,
    turns: SpeakerTurns,
) -> dict[int, tuple[Loop, ...]]:
    """The replies that are alike an earlier one, by the index of the message: a turn knows its past only.

    A reply that declines a request is ``held``, not repeated; so is one of another sitting. Alike are messages whose
    words, without boilerplate, are ``reply_likeness`` the same (rapidfuzz, Indel); looked at are those that share
    ``reply_share`` of their grams with one of the agent's last ``reply_lags`` turns or with the message just before, so
    the cost is bounded.
    """
    shared = _shared_grams(finder, repeated, agent_occurrences, turns)
    grams = np.maximum(np.diff(speech.first) - finder.rule.n + 1, 0)
    likely = np.flatnonzero(shared >= np.maximum(finder.rule.reply_share * grams[:, None], 1))
    if not len(likely):
        return {}
    counted = np.flatnonzero(turns.agent >= 0)
    by_agent = counted[np.argsort(turns.agent[counted], kind="stable")]
    # sequences in which a turn knows the ones before it: those of its agent, those of its conversation
    own, all_turns = _TurnSequence(by_agent, turns.agent_turn), _TurnSequence(counted, turns.conversation_turn)
    alike: Alike = defaultdict(dict)
    for cell in likely.tolist():
        message, lag = divmod(cell, shared.shape[1])
        earlier = all_turns.before(message, 1) if lag == ECHO else own.before(message, lag)
        if earlier is None or shared[message, lag] < finder.rule.reply_share * grams[earlier]:
            continue
        if likeness(finder, speech.of(message), speech.of(earlier)):
            alike[message][lag] = earlier
    builder = _ReplyLoopBuilder(finder, speech, turns, (own, all_turns))
    loops = {message: builder.loops(message, alike[message]) for message in sorted(alike)}
    return {message: found for message, found in loops.items() if found}


def likeness(finder: LoopFinder, one: Sequence[str], other: Sequence[str]) -> float:
    """How much of the words of two replies is the same, 0 to 1, boilerplate left out; 0 where one says too little."""
    from rapidfuzz.distance import Indel  # here, since few runs need it and a small one feels it

    first, second = _without_boilerplate(finder, one), _without_boilerplate(finder, other)
    if min(len(first), len(second)) < finder.rule.reply_words:
        return 0.0
    return Indel.normalized_similarity(first, second, score_cutoff=finder.rule.reply_likeness)


class _ReplyLoopBuilder:
    """What the alike replies so far add up to: chains, and how long turns alternate."""

    def __init__(
        self, finder: LoopFinder, speech: TokenIndex, turns: SpeakerTurns, rows: tuple[_TurnSequence, _TurnSequence]
    ) -> None:
        self._finder, self._speech, self._turns = finder, speech, turns
        self._chains: dict[int, tuple[int, ...]] = {}
        self._rows = rows

    def loops(self, message: int, lags: dict[int, int]) -> tuple[Loop, ...]:
        """The loops that a message completes; messages come in order."""
        own = min((lag for lag in lags if lag != ECHO), default=None)
        declines = self._finder.declines(self._speech.of(message)[: self._finder.rule.reply_compared])
        is_hold = declines or (own is not None and not self._near(message, lags[own]))
        loops = []
        if own is not None:
            chain = (*self._chains.get(lags[own], (lags[own],)), message)
            self._chains[message] = chain
            loops.append(self._loop("held" if is_hold else "reply", len(chain), chain))
        if ECHO in lags:
            loops.append(self._loop("echo", 2, (lags[ECHO], message)))
        alternating = self._alternating(message, lags)
        if alternating and not is_hold:
            loops.append(self._loop("alternation", len(alternating) // 2, alternating))
        return tuple(loops)

    def _near(self, message: int, earlier: int) -> bool:
        """Whether two turns are of one sitting, as far as their times are known."""
        return not self._turns.seconds[message] - self._turns.seconds[earlier] > self._finder.rule.apart

    def _alternating(self, message: int, lags: dict[int, int]) -> tuple[int, ...]:
        """The turns of an alternation that this message continues: A-B-A-B of one agent, or of two who take turns."""
        by_agent, by_conversation = self._rows
        before, other = by_agent.before(message, 2), by_conversation.before(message, 1)
        own = by_agent.step(message, before is not None and before in lags.values() and 1 not in lags)
        between = other is not None and self._turns.agent[other] != self._turns.agent[message]
        back = by_conversation.before(message, 2)
        both = by_conversation.step(message, between and back is not None and lags.get(1) == back and ECHO not in lags)
        return own or both

    def _loop(
        self, scope: Literal["reply", "held", "echo", "alternation"], count: int, messages: Sequence[int]
    ) -> Loop:
        rule = self._finder.rule
        first = int(self._speech.first[messages[-1]])
        words = self._speech.words(first, min(first + rule.longest, int(self._speech.first[messages[-1] + 1])))
        ids = tuple(self._turns.ids[each] for each in messages[-rule.recent :])
        return Loop(ngram=" ".join(words), count=count, scope=scope, message_ids=ids)


class _TurnSequence:
    """Messages in a row, and how many of the latest ones repeat the one two places before."""

    def __init__(self, messages: Ints, numbers: Ints) -> None:
        self._messages = messages.tolist()
        self._place = {message: place for place, message in enumerate(self._messages)}
        self._numbers = numbers
        self._steps: dict[int, int] = {}

    def before(self, message: int, back: int) -> int | None:
        """The message so many places before, None where the row begins later."""
        return self._messages[self._place[message] - back] if self._numbers[message] >= back else None

    def step(self, message: int, repeats: bool) -> tuple[int, ...]:
        """Note whether a message repeats the one two before; the row of an alternation, where this makes one."""
        earlier = self.before(message, 1)
        steps = 1 + (0 if earlier is None else self._steps.get(earlier, 0)) if repeats else 0
        self._steps[message] = steps
        if steps < 2:  # B of A-B-A-B repeats and A before it does
            return ()
        place = self._place[message]
        return tuple(self._messages[place - steps - 1 : place + 1])


def _shared_grams(
    finder: LoopFinder, repeated: RepeatedNgrams, agent_occurrences: Occurrences, turns: SpeakerTurns
) -> Ints:
    """How many grams each message (a row) shares with the one so many turns of its agent before (a column)."""
    lags, size = finder.rule.reply_lags + 1, len(turns.ids)
    shared = np.bincount(_echoed(repeated, turns) * lags + ECHO, minlength=size * lags)
    for step in range(1, lags):
        later, earlier = agent_occurrences.message[step:], agent_occurrences.message[:-step]
        lag = turns.agent_turn[later] - turns.agent_turn[earlier]
        near = (agent_occurrences.agent_gram[step:] == agent_occurrences.agent_gram[:-step]) & (lag < lags)
        shared += np.bincount(later[near] * lags + lag[near], minlength=size * lags)
    return shared.reshape(size, lags)


def _echoed(repeated: RepeatedNgrams, turns: SpeakerTurns) -> Ints:
    """For each gram that a message shares with the one just before it, of another speaker: the message."""
    counted = np.flatnonzero(turns.agent[repeated.message] >= 0)
    gram, message = repeated.gram[counted], repeated.message[counted]
    shared = np.flatnonzero((gram[1:] == gram[:-1]) & (message[1:] != message[:-1]))  # few, also of a long message
    later, earlier = message[shared + 1], message[shared]
    next_turn = turns.conversation_turn[later] == turns.conversation_turn[earlier] + 1
    messages: Ints = later[next_turn & (turns.agent[later] != turns.agent[earlier])]
    return messages


def _without_boilerplate(finder: LoopFinder, words: Sequence[str]) -> list[str]:
    """The words that no boilerplate covers, as far as replies are compared."""
    words = words[: finder.rule.reply_compared]
    covered: set[int] = set()
    for place, gram in enumerate(finder.grams(words)):
        if gram in finder.boilerplate:
            covered.update(range(place, place + finder.rule.n))
    return [word for place, word in enumerate(words) if place not in covered]
