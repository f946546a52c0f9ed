"""What has been said so far in a conversation, as far as it tells whether one more message can make a loop."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence

import numpy as np

from undersong.models import Message
from undersong.scan.loops import LoopFinder
from undersong.scan.speech import TokenIndex
from undersong.scan.telemetry import NOT_SPEAKERS


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
