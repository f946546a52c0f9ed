"""Reading backwards over conversations: what a flagged agent said earlier to the same target, as it is known by now."""

from __future__ import annotations

from collections.abc import Iterable

from undersong.models import Message, Scan
from undersong.monitor.conversation import ConversationState
from undersong.routing.budget import TRIAGE
from undersong.routing.lookback import DirectedMessage, LookBackIndex

Pair = tuple[str, str]  # agent, target
LookbackReads = dict[int, str]  # place in a conversation → the flagged message of another one for which it is read


class ConversationPairs:
    """A conversation as it was looked at: by pair, its messages that may call for others, or be called for."""

    def __init__(self) -> None:
        self.pairs: dict[Pair, list[DirectedMessage]] = {}
        self._messages: tuple[Message, ...] = ()
        self._scans: tuple[Scan, ...] = ()
        self._ranks: list[int] = []

    @classmethod
    def from_conversation(cls, state: ConversationState) -> ConversationPairs:
        """All of a conversation."""
        pairs = cls()
        pairs.extend(state)
        return pairs

    def extend(self, state: ConversationState) -> bool:
        """Take what has come since; False, and nothing is taken, where what was there is not what it was."""
        messages, scans, ranks = state.conversation.messages, state.scans, state.draft.ranks
        count = len(self._messages)
        if (messages[:count], scans[:count], ranks[:count]) != (self._messages, self._scans, self._ranks):
            return False
        for place in range(count, len(messages)):
            message, scan = messages[place], scans[place]
            score = scan.triage if ranks[place] == TRIAGE else None
            directed = DirectedMessage.of(place, message, flagged=bool(scan.total), score=score)
            if directed is not None and message.target is not None:
                self.pairs.setdefault((directed.agent, message.target), []).append(directed)
        self._messages, self._scans, self._ranks = messages, scans, ranks
        return True


class LookbackIndex:
    """The directed messages of some conversations by (agent, target), and which of them are called for."""

    def __init__(self, look_back: int) -> None:
        self._look_back = look_back
        self._pairs: dict[Pair, dict[str, list[DirectedMessage]]] = {}
        self._of: dict[str, ConversationPairs] = {}

    def contains(self, conversation: str) -> bool:
        """Whether a conversation has been looked at."""
        return conversation in self._of

    def update(self, state: ConversationState) -> set[Pair]:
        """Take a conversation as it now is; the pairs of which it said or says something."""
        name = state.conversation.id
        before = self._of.get(name)
        now = before if before is not None and before.extend(state) else ConversationPairs.from_conversation(state)
        pairs = now.pairs.keys() if before is None else before.pairs.keys() | now.pairs.keys()
        for pair in pairs:
            if pair in now.pairs:
                self._pairs.setdefault(pair, {})[name] = now.pairs[pair]
            else:
                del self._pairs[pair][name]
        self._of[name] = now
        return set(pairs)

    def reads_for(self, conversations: Iterable[str]) -> dict[str, LookbackReads]:
        """What is called for in each of these conversations, over all its pairs."""
        names = set(conversations)
        reads: dict[str, LookbackReads] = {name: {} for name in names}
        for pair in {pair for name in names if name in self._of for pair in self._of[name].pairs}:
            for name, called in self._reads_of_pair(pair).items():
                if name in names:
                    reads[name] |= called
        return reads

    def sharing(self, pairs: Iterable[Pair]) -> set[str]:
        """The conversations that hold a message of one of these pairs."""
        return {name for pair in pairs for name in self._pairs.get(pair, ())}

    def _reads_of_pair(self, pair: Pair) -> dict[str, LookbackReads]:
        conversations = sorted(self._pairs[pair].items())
        if not any(each.flag for _, messages in conversations for each in messages):
            return {}
        same = LookBackIndex(self._look_back)
        for number, (_, messages) in enumerate(conversations):
            for directed in messages:
                same.add_directed(number, directed)
        reads: dict[str, LookbackReads] = {}
        for earlier in same.look_back_messages():
            reads.setdefault(conversations[earlier.conversation][0], {})[earlier.place] = earlier.flag
        return reads
