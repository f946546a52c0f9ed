"""Reading backwards over conversations: what a flagged agent said earlier to the same target, as it is known by now."""

from __future__ import annotations

from collections.abc import Iterable

from undersong.models import Message, Scan
from undersong.monitor.talk import Talk
from undersong.routing.budget import TRIAGE
from undersong.routing.earlier import Directed, SameTarget

Pair = tuple[str, str]  # agent, target
Called = dict[int, str]  # place in a conversation → the flagged message of another one for which it is read


class Looked:
    """A conversation as it was looked at: by pair, its messages that may call for others, or be called for."""

    def __init__(self) -> None:
        self.pairs: dict[Pair, list[Directed]] = {}
        self._messages: tuple[Message, ...] = ()
        self._scans: tuple[Scan, ...] = ()
        self._ranks: list[int] = []

    @classmethod
    def at(cls, talk: Talk) -> Looked:
        """All of a conversation."""
        looked = cls()
        looked.grow(talk)
        return looked

    def grow(self, talk: Talk) -> bool:
        """Take what has come since; False, and nothing is taken, where what was there is not what it was."""
        messages, scans, ranks = talk.conversation.messages, talk.scans, talk.draft.ranks
        known = len(self._messages)
        if (messages[:known], scans[:known], ranks[:known]) != (self._messages, self._scans, self._ranks):
            return False
        for place in range(known, len(messages)):
            message, scan = messages[place], scans[place]
            score = scan.triage if ranks[place] == TRIAGE else None
            each = Directed.of(place, message, flagged=bool(scan.total), score=score)
            if each is not None and message.target is not None:
                self.pairs.setdefault((each.agent, message.target), []).append(each)
        self._messages, self._scans, self._ranks = messages, scans, ranks
        return True


class Backwards:
    """The directed messages of some conversations by (agent, target), and which of them are called for."""

    def __init__(self, look_back: int) -> None:
        self._look_back = look_back
        self._pairs: dict[Pair, dict[str, list[Directed]]] = {}
        self._of: dict[str, Looked] = {}

    def known(self, conversation: str) -> bool:
        """Whether a conversation has been looked at."""
        return conversation in self._of

    def look(self, talk: Talk) -> set[Pair]:
        """Take a conversation as it now is; the pairs of which it said or says something."""
        name = talk.conversation.id
        before = self._of.get(name)
        now = before if before is not None and before.grow(talk) else Looked.at(talk)
        pairs = now.pairs.keys() if before is None else before.pairs.keys() | now.pairs.keys()
        for pair in pairs:
            if pair in now.pairs:
                self._pairs.setdefault(pair, {})[name] = now.pairs[pair]
            else:
                del self._pairs[pair][name]
        self._of[name] = now
        return set(pairs)

    def called(self, conversations: Iterable[str]) -> dict[str, Called]:
        """What is called for in each of these conversations, over all its pairs."""
        names = set(conversations)
        found: dict[str, Called] = {name: {} for name in names}
        for pair in {pair for name in names if name in self._of for pair in self._of[name].pairs}:
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
