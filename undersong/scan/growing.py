"""One conversation that grows at its end: the Scans of ``scan_conversation``, each made when its message comes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from undersong.models import Conversation, Loop, Message, Scan, ThreadScan
from undersong.scan.block import TextBatch
from undersong.scan.code import FENCES
from undersong.scan.conversation import ALL, add_structure, add_triage, agent_of, scans_of, thread_of
from undersong.scan.heard import LoopState
from undersong.scan.phrases import SignalBook
from undersong.scan.repetition import loops_of, prose_blocks
from undersong.scan.speech import TokenIndex
from undersong.scan.structure import AgentSoFar


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
            self._learn(message, _bare(scan), TextBatch([message.text]))
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


def _bare(scan: Scan) -> Scan:
    """A copy that may be filled in again."""
    return msgspec.structs.replace(scan)
