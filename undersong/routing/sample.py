"""The audit sample: of what the router leaves out, the messages that a hash draws are read all the same."""

from __future__ import annotations

import hashlib
import heapq
from bisect import insort
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from undersong.models import Message

Draws = npt.NDArray[np.float64]
Levels = npt.NDArray[np.int16]
NEVER = 1.0  # the draw of a message without text: no rate reaches it
DIGEST = 32  # bytes of a SHA-256
_DROPPED_BITS = 1 << 11  # bits of the hash that a double has no room for


def draws(seed: int, messages: Sequence[Message]) -> Draws:
    """A number in [0, 1) for each message, NEVER for one without text; drawn is what lies below the run's rate.

    It hashes ``seed``, conversation and id, so it depends on nothing else in the run; ids may repeat between threads.
    """
    begun = {
        name: f"{seed}\0{name}\0".encode("utf-8", "surrogatepass")
        for name in {message.conversation for message in messages}
    }
    digests = [
        hashlib.sha256(begun[message.conversation] + message.id.encode("utf-8", "surrogatepass")).digest()
        for message in messages
    ]
    high = np.frombuffer(b"".join(digests), dtype=">u8")[:: DIGEST // 8]
    numbers: Draws = (high // _DROPPED_BITS) / float(1 << 53)
    silent = [place for place, message in enumerate(messages) if not message.text or message.text.isspace()]
    if silent:
        numbers[silent] = NEVER
    return numbers


class LowestDraws:
    """The lowest draws of each level of a run, as many as the sample has to have: enough to know its rate exactly."""

    def __init__(self, levels: int, least: int) -> None:
        self._least = least
        self._drawn: dict[int, list[float]] = {}
        self._limits = np.full(levels, NEVER if least else 0.0)

    def add(self, levels: Levels, drawn: Draws) -> None:
        """Messages by their level and draw."""
        for index in np.flatnonzero(drawn < self._limits[levels]).tolist():
            level = int(levels[index])
            own = self._drawn.setdefault(level, [])
            insort(own, float(drawn[index]))
            if len(own) >= self._least:
                del own[self._least :]
                self._limits[level] = own[-1]

    def rate(self, above: int, rate: float) -> float:
        """The rate for what lies above a level: ``rate``, or the lowest one that draws ``least`` messages or all."""
        if not self._least:
            return rate
        left_out = (own for level, own in self._drawn.items() if level > above)
        lowest = heapq.nsmallest(self._least, (draw for own in left_out for draw in own))
        if len(lowest) < self._least:
            return 1.0 if lowest else 0.0
        return max(rate, float(np.nextafter(lowest[-1], NEVER)))
