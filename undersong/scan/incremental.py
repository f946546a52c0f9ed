"""Incremental scan of a conversation that grows at its end: the Scans of ``scan_conversation``, one at a time."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from undersong.models import Conversation, Loop, Message, Scan, ThreadScan
from undersong.scan.code import FENCES
from undersong.scan.conversation import ALL, add_structure, add_triage, agent_of, scans_of, thread_of
from undersong.scan.loops import loops_of, prose_blocks
from undersong.scan.ngram_loops import LoopFinder
from undersong.scan.phrases import SignalBook
from undersong.scan.structure import NOT_SPEAKERS, AgentSoFar
from undersong.scan.text_batch import TextBatch
from undersong.scan.token_index import TokenIndex


class IncrementalScan:
    """The messages so far, in order, and their Scans; of each agent what the next turn is compared with.

    The cost of a message does not grow with those before it, but for one that repeats enough of them to make a loop:
    then the loops of all are looked at.
    """

    def __init__(self, conversation: Conversation, scans: Sequence[Scan], book: SignalBook) -> None:
        """``scans`` are those of the messages that are there already."""
        self._book = book
        self._agents: dict[str, AgentSoFar] = {}
        self._loop_state = LoopState(book.loops)
        self.scans: list[Scan] = []
        for message, scan in zip(conversation.messages, scans, strict=True):
            self._learn(message, msgspec.structs.replace(scan), TextBatch([message.text]))
            self.scans.append(scan)

    def append(self, conversation: Conversation) -> Scan:
        """The Scan of the last message of the conversation; the others are those that are known."""
        message = conversation.messages[-1]
        block = TextBatch([message.text])
        scan = scans_of([message], [block], {}, self._book, structure=True)[0]
        repeats = self._learn(message, scan, block)
        if repeats:
            loops = self._loops(conversation)
            scan = msgspec.structs.replace(scan, loops=loops) if loops else scan
        add_triage([message], [scan], self._book.triage)
        self.scans.append(scan)
        return scan

    def thread(self, conversation: Conversation) -> ThreadScan:
        """What the conversation shows as a whole."""
        return thread_of(conversation, tuple(self.scans), self._book, ALL, summed=True)

    def _learn(self, message: Message, scan: Scan, block: TextBatch) -> bool:
        """Fill in what the agent's past tells of a turn, and make it part of that past; whether it may make a loop."""
        agent = agent_of(message, self._agents, self._book.structure)
        has_code = bool(message.tool_calls) or bool(block.texts_with(FENCES))
        add_structure(scan, message, has_code, self._book.structure, agent)
        return self._loop_state.add_message(message, TokenIndex(*prose_blocks([message], [block])))

    def _loops(self, conversation: Conversation) -> tuple[Loop, ...]:
        messages, last = conversation.messages, len(conversation.messages) - 1
        blocks = [TextBatch([message.text for message in messages])]
        return loops_of([conversation], messages, blocks, self._book.loops, last).get(last, ())


class LoopState:
    """The grams of each agent's turns, and those of the latest turns whole: a message costs its own grams.

    Where ``add_message`` says no, ``loops_of`` has nothing for the message; where it says yes, it may have.
    """

    def __init__(self, finder: LoopFinder) -> None:
        self._finder, self._rule = finder, finder.rule
        self._turns: defaultdict[str, Counter[int]] = defaultdict(Counter)  # agent → gram → turns that have it
        self._latest: defaultdict[str, deque[set[int]]] = defaultdict(lambda: deque(maxlen=finder.rule.reply_lags))
        self._before: set[int] = set()

    def add_message(self, message: Message, speech: TokenIndex) -> bool:
        """Take the next message, whose words are the ``speech``; whether it may make a loop."""
        if message.role in NOT_SPEAKERS:
            return False
        grams = speech.grams(self._rule.n).tolist()
        own = set(grams)
        may = len(own) < len(grams) and self._repeats_itself(speech, grams)
        if message.branch is not None:
            return may  # it is compared with itself alone
        agent = message.agent or message.author
        may = may or self._is_alike(own, len(grams), agent) or self._comes_again(speech, grams, self._turns[agent])
        self._turns[agent].update(own)
        self._latest[agent].append(own)
        self._before = own
        return may

    def _repeats_itself(self, speech: TokenIndex, grams: Sequence[int]) -> bool:
        """Whether a gram stands often enough in the message."""
        counts = Counter(grams)
        return bool(
            self._informative_places(speech, [i for i, gram in enumerate(grams) if counts[gram] >= self._rule.repeats])
        )

    def _comes_again(self, speech: TokenIndex, grams: Sequence[int], turns: Mapping[int, int]) -> bool:
        """Whether enough grams in a row stand in enough of the agent's turns."""
        enough, least = self._rule.repeats - 1, self._rule.turn_words - self._rule.n + 1
        again = [place for place, gram in enumerate(grams) if turns.get(gram, 0) >= enough]
        if len(again) < least:
            return False
        row = before = 0
        for place in self._informative_places(speech, again):
            row, before = row + 1 if place == before + 1 else 1, place
            if row >= least:
                return True
        return False

    def _informative_places(self, speech: TokenIndex, places: list[int]) -> list[int]:
        """Those of the grams at some places that say something."""
        says = self._finder.is_informative(speech, np.array(places, dtype=np.int64)).tolist() if places else ()
        return [place for place, tells in zip(places, says, strict=True) if tells]

    def _is_alike(self, own: set[int], size: int, agent: str) -> bool:
        """Whether enough grams stand in one of the agent's latest turns, or in the one just before."""
        least = max(self._rule.reply_share * size, 1)
        return any(len(own & other) >= least for other in (self._before, *self._latest[agent]))
