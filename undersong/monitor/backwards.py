"""Reading backwards over conversations: what a flagged agent said earlier to the same target, as it is known by now."""

from __future__ import annotations

from collections.abc import Iterable

from undersong.monitor.talk import Talk
from undersong.routing.budget import TRIAGE
from undersong.routing.earlier import Directed, SameTarget

Pair = tuple[str, str]  # agent, target
Called = dict[int, str]  # place in a conversation → the flagged message of another one for which it is read


class Backwards:
    """The directed messages of some conversations by (agent, target), and which of them are called for."""

    def __init__(self, look_back: int) -> None:
        self._look_back = look_back
        self._pairs: dict[Pair, dict[str, list[Directed]]] = {}
        self._of: dict[str, set[Pair]] = {}  # the pairs of each conversation

    def known(self, conversation: str) -> bool:
        """Whether a conversation has been looked at."""
        return conversation in self._of

    def look(self, talk: Talk) -> set[Pair]:
        """Take a conversation as it now is; the pairs of which it said or says something."""
        name, before = talk.conversation.id, self._of.get(talk.conversation.id, set())
        for pair in before:
            del self._pairs[pair][name]
        found = _directed(talk)
        for pair, messages in found.items():
            self._pairs.setdefault(pair, {})[name] = messages
        self._of[name] = set(found)
        return before | found.keys()

    def called(self, conversations: Iterable[str]) -> dict[str, Called]:
        """What is called for in each of these conversations, over all its pairs."""
        names = set(conversations)
        found: dict[str, Called] = {name: {} for name in names}
        for pair in {pair for name in names for pair in self._of.get(name, ())}:
            for name, called in self._called(pair).items():
                if name in names:
                    found[name] |= called
        return found

    def sharing(self, pairs: Iterable[Pair]) -> set[str]:
        """The conversations that hold a message of one of these pairs."""
        return {name for pair in pairs for name in self._pairs.get(pair, ())}

    def _called(self, pair: Pair) -> dict[str, Called]:
        talks = sorted(self._pairs[pair].items())
        if not any(each.flag for _, messages in talks for each in messages):
            return {}
        same = SameTarget(self._look_back)
        for number, (_, messages) in enumerate(talks):
            for each in messages:
                same.add_directed(number, each)
        found: dict[str, Called] = {}
        for earlier in same.found():
            found.setdefault(talks[earlier.conversation][0], {})[earlier.place] = earlier.flag
        return found


def _directed(talk: Talk) -> dict[Pair, list[Directed]]:
    """The messages of a conversation that may call for others, or be called for."""
    messages = talk.conversation.messages
    if all(message.target is None or message.time is None for message in messages):
        return {}
    found: dict[Pair, list[Directed]] = {}
    for place, (message, scan, rank) in enumerate(zip(messages, talk.scans, talk.draft.ranks, strict=True)):
        score = scan.triage if rank == TRIAGE else None
        each = Directed.of(place, message, flagged=bool(scan.total), score=score)
        if each is not None and message.target is not None:
            found.setdefault((each.agent, message.target), []).append(each)
    return found
