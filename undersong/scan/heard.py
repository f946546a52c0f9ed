"""What has been said so far in a conversation, as far as it tells whether one more message can make a loop."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence

from undersong.models import Message
from undersong.scan.rules import LoopRule
from undersong.scan.telemetry import NOT_SPEAKERS


class Heard:
    """The grams of each agent's turns, and those of the latest turns whole: a message costs its own grams.

    Where ``take`` says no, ``loops_of`` has nothing for the message; where it says yes, it may have.
    """

    def __init__(self, rule: LoopRule) -> None:
        self._rule = rule
        self._turns: defaultdict[str, Counter[int]] = defaultdict(Counter)  # agent → gram → turns that have it
        self._latest: defaultdict[str, deque[set[int]]] = defaultdict(lambda: deque(maxlen=rule.reply_lags))
        self._before: set[int] = set()

    def take(self, message: Message, grams: Sequence[int]) -> bool:
        """Take the next message, with a key for the words from each word on; whether it may make a loop."""
        if message.role in NOT_SPEAKERS:
            return False
        own = set(grams)
        may = len(own) < len(grams) and max(Counter(grams).values()) >= self._rule.repeats
        if message.branch is not None:
            return may  # it is compared with itself alone
        agent = message.agent or message.author
        may = may or self._comes_again(grams, self._turns[agent]) or self._is_alike(own, len(grams), agent)
        self._turns[agent].update(own)
        self._latest[agent].append(own)
        self._before = own
        return may

    def _comes_again(self, grams: Sequence[int], turns: Counter[int]) -> bool:
        """Whether enough grams in a row stand in enough of the agent's turns."""
        enough, row = self._rule.repeats - 1, 0
        for gram in grams:
            row = row + 1 if turns.get(gram, 0) >= enough else 0
            if row + self._rule.n > self._rule.turn_words:
                return True
        return False

    def _is_alike(self, own: set[int], size: int, agent: str) -> bool:
        """Whether enough grams stand in one of the agent's latest turns, or in the one just before."""
        least = max(self._rule.reply_share * size, 1)
        return any(len(own & other) >= least for other in (self._before, *self._latest[agent]))
