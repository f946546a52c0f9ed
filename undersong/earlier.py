"""What a flagged agent said earlier to the same target in other conversations, so that a sequence has its beginning."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from undersong.models import Message

Numbers = npt.NDArray[np.int64]


class SameTarget:
    """Directed messages of a run as bare numbers, 42 bytes each, without their texts.

    Only agents whose identity reaches beyond a conversation, and only messages with a time: untimed conversations are
    never merged into one sequence.
    """

    def __init__(self, look_back: int) -> None:
        self._look_back = look_back
        self._pairs: dict[tuple[str, str], int] = {}
        self._time, self._score = array("d"), array("d")
        self._pair, self._conversation, self._place = array("q"), array("q"), array("q")
        self._flagged = array("b")
        self._flag_ids: dict[tuple[int, int], str] = {}

    def add(self, conversation: int, place: int, message: Message, *, flagged: bool, score: float | None) -> None:
        """One message, flagged or (with its triage ``score``) unread so far; a reader needs no others."""
        scoped = message.agent.startswith(f"{message.conversation}/")
        if message.target is None or message.time is None or scoped or not (flagged or score is not None):
            return
        self._time.append(message.time.timestamp())
        self._score.append(-1.0 if score is None else score)
        self._pair.append(self._pairs.setdefault((message.agent, message.target), len(self._pairs)))
        self._conversation.append(conversation)
        self._place.append(place)
        self._flagged.append(flagged)
        if flagged:
            self._flag_ids[conversation, place] = message.id

    def found(self) -> Iterator[tuple[int, int, float, str]]:
        """(conversation, place, triage score, id of the flagged message) of what is to be read too.

        At most ``look_back`` messages before each flagged one, the nearest in time, each message once.
        """
        pair, flagged = np.array(self._pair, dtype=np.int64), np.array(self._flagged, dtype=bool)
        conversation, place = np.array(self._conversation, dtype=np.int64), np.array(self._place, dtype=np.int64)
        wanted = np.isin(pair, pair[flagged])
        order = np.lexsort((place, conversation, np.array(self._time), pair))
        waiting: list[int] = []
        current = -1
        for index in order[wanted[order]].tolist():
            if pair[index] != current:
                waiting, current = [], pair[index]
            if flagged[index]:
                flag = self._flag_ids[int(conversation[index]), int(place[index])]
                for past in waiting[max(0, len(waiting) - self._look_back) :]:
                    yield int(conversation[past]), int(place[past]), self._score[past], flag
                waiting = []
            else:
                waiting.append(index)
