"""What a flagged agent said earlier to the same target in other conversations, so that a sequence has its beginning."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.formats.normalize import scoped
from undersong.models import Message
from undersong.routing.budget import NEVER, DemandHistogram

UNSET = -1.0  # stands for no score
Numbers = npt.NDArray[np.int64]


class DirectedMessage(NamedTuple):
    """What reading backwards needs of a directed message: ``flag`` is its id where it is flagged, else None.

    ``draw`` is the message's own in the audit sample, for where it is left unread.
    """

    place: int
    agent: str
    target: str
    time: float
    score: float | None
    flag: str | None
    draw: float = NEVER

    @classmethod
    def of(
        cls, place: int, message: Message, *, flagged: bool, score: float | None, draw: float = NEVER
    ) -> DirectedMessage | None:
        """None for a message that cannot belong to a sequence over conversations, or that is read anyway."""
        if message.target is None or message.time is None or not (flagged or score is not None):
            return None
        if message.agent == scoped(message.conversation, message.author):  # an identity of this conversation alone
            return None
        flag = message.id if flagged else None
        return cls(place, message.agent, message.target, message.time.timestamp(), score, flag, draw)


class LookBackMessage(NamedTuple):
    """A message that is to be read for what is flagged in another conversation: ``flag`` is the id of that message."""

    conversation: str
    place: int
    score: float
    flag: str


class LookBackIndex:
    """Directed messages of a run as bare numbers, 50 bytes each, without their texts.

    Only agents whose identity reaches beyond a conversation, and only messages with a time: untimed conversations are
    never merged into one sequence. Neither the order of adding nor how a run is parted (``merge``) matters: messages
    of one moment are in the order of their conversations' ids.
    """

    def __init__(self, look_back: int) -> None:
        self._look_back = look_back
        self._pairs: dict[tuple[str, str], int] = {}
        self._time, self._score, self._draw = array("d"), array("d"), array("d")
        self._pair, self._conversation, self._place = array("q"), array("q"), array("q")
        self._flagged = array("b")
        self._numbers: dict[str, int] = {}
        self._flag_ids: dict[tuple[int, int], str] = {}

    def add(self, conversation: str, place: int, message: Message, *, flagged: bool, score: float | None) -> None:
        """One message, flagged or (with its triage ``score``) unread so far; a reader needs no others."""
        directed = DirectedMessage.of(place, message, flagged=flagged, score=score)
        if directed is not None:
            self.add_directed(conversation, directed)

    def add_directed(self, conversation: str, directed: DirectedMessage) -> None:
        """As ``add``, for a message of which only this is at hand."""
        self._time.append(directed.time)
        self._score.append(UNSET if directed.score is None else directed.score)
        self._draw.append(directed.draw)
        self._pair.append(self._pairs.setdefault((directed.agent, directed.target), len(self._pairs)))
        number = self._numbers.setdefault(conversation, len(self._numbers))
        self._conversation.append(number)
        self._place.append(directed.place)
        self._flagged.append(directed.flag is not None)
        if directed.flag is not None:
            self._flag_ids[number, directed.place] = directed.flag

    def merge(self, other: LookBackIndex) -> None:
        """Take the messages of another part of the run, of other conversations."""
        pairs = [self._pairs.setdefault(pair, len(self._pairs)) for pair in other._pairs]
        numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in other._numbers]
        self._pair.extend(pairs[number] for number in other._pair)
        self._conversation.extend(numbers[number] for number in other._conversation)
        for name in ("_time", "_score", "_draw", "_place", "_flagged"):
            getattr(self, name).extend(getattr(other, name))
        self._flag_ids |= {(numbers[number], place): flag for (number, place), flag in other._flag_ids.items()}

    def look_back_messages(self) -> Iterator[LookBackMessage]:
        """What is to be read too, at most ``look_back`` messages before each flagged one, the nearest in time."""
        yield from (each for _, each in self._numbered_messages())

    def resolve(self, demand: DemandHistogram) -> dict[str, dict[int, str]]:
        """Tell a demand, which has all unflagged messages of these without draws, which of them are to be read too.

        Returns the ids of the flagged messages that call for them, by conversation and place.
        """
        by_number = dict(self._numbered_messages())
        scores, draws = np.array(self._score), np.array(self._draw)
        called = np.zeros(len(scores), dtype=bool)
        called[list(by_number)] = True
        demand.resolve(scores[called].tolist(), draws[called], backwards=True)
        others = ~called & (scores > UNSET)
        demand.resolve(scores[others].tolist(), draws[others], backwards=False)
        also: dict[str, dict[int, str]] = {}
        for message in by_number.values():
            also.setdefault(message.conversation, {})[message.place] = message.flag
        return also

    def _numbered_messages(self) -> Iterator[tuple[int, LookBackMessage]]:
        """Each message once, with its number in the order of adding."""
        pair, flagged = np.array(self._pair, dtype=np.int64), np.array(self._flagged, dtype=bool)
        conversation, place = np.array(self._conversation, dtype=np.int64), np.array(self._place, dtype=np.int64)
        wanted, names = np.isin(pair, pair[flagged]), list(self._numbers)
        by_name = np.argsort(sorted(range(len(names)), key=names.__getitem__))  # the rank of each number's name
        ranks = by_name[conversation] if len(names) else conversation
        order = np.lexsort((place, ranks, np.array(self._time), pair))
        waiting: list[int] = []
        current = -1
        for index in order[wanted[order]].tolist():
            if pair[index] != current:
                waiting, current = [], pair[index]
            if flagged[index]:
                flag = self._flag_ids[int(conversation[index]), int(place[index])]
                for past in waiting[max(0, len(waiting) - self._look_back) :]:
                    where = names[conversation[past]], int(place[past])
                    yield past, LookBackMessage(*where, self._score[past], flag)
                waiting = []
            else:
                waiting.append(index)
