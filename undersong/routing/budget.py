"""How much is read: where a budget or a recall target cuts off what asks to be read, and the audit sample.

Of what the router leaves out, the messages that a hash draws are read all the same; they tell how much was missed.
"""

from __future__ import annotations

import hashlib
import heapq
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import exp, lgamma, log, log1p
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.models import NEGATIVE_TRAITS, TIERS, Message, Missed, Record, Row, Tier

Draws = npt.NDArray[np.float64]
Levels = npt.NDArray[np.int16]
NEVER = 1.0  # the draw of a message without text: no rate reaches it
DIGEST = 32  # bytes of a SHA-256
_DROPPED_BITS = 1 << 11  # bits of the hash that a double has no room for
# The order in which a budget is spent. What a rule asks for comes before what is only probable.
RANKS = ("deep_with_context", "deep", "focused", "backwards", "triage")
BACKWARDS, TRIAGE = RANKS.index("backwards"), RANKS.index("triage")
STEPS = 1000  # triage scores have 3 decimals
WIDTH = STEPS + 1  # levels of a rank
UNSCORED = len(RANKS) * WIDTH  # the level of what only triage could read, where it gave no score: nothing reads it


class BudgetCutoff(Record, frozen=True, kw_only=True):
    """Everything up to ``rank`` is read, and of that rank what has a triage score of ``score`` or more.

    ``why`` says where the cut comes from, in the words of a reason.
    """

    rank: int
    score: float
    why: str

    @property
    def level(self) -> int:
        """The last level that is read; below 0 where nothing is."""
        return level_of(self.rank, self.score)

    def reads(self, rank: int, triage: float | None) -> bool:
        """Whether a message is read; one without a triage score counts as 0, and triage alone never reads it."""
        return level_of(rank, triage) <= self.level


class DemandHistogram:
    """How many messages ask to be read, by level: one row of numbers for a run of any size.

    Of the draws of each level the ``least`` lowest are kept, from which the audit sample's rate is known.
    """

    def __init__(self, least: int = 0) -> None:
        self.messages = 0
        self._counts = np.zeros(UNSCORED + 1, dtype=np.int64)
        self._lowest = LowestDraws(UNSCORED + 1, least)

    def add(self, levels: Levels, draws: Draws) -> None:
        """Count messages by their levels (``level_of``), with their draws in the audit sample."""
        self.messages += len(levels)
        self._counts += np.bincount(levels, minlength=UNSCORED + 1)
        self._lowest.add(levels, draws)

    def merge(self, other: DemandHistogram) -> None:
        """Count what another one, of the same ``least``, has counted too."""
        self.messages += other.messages
        self._counts += other._counts
        self._lowest.merge(other._lowest)

    def resolve(self, scores: Sequence[float], draws: Draws, *, backwards: bool) -> None:
        """Messages that were added with their triage ``scores`` and without draws, since another thread might call for
        them: now it is known whether reading backwards does."""
        triage = np.array([level_of(TRIAGE, score) for score in scores], dtype=np.int16)
        levels = triage - WIDTH if backwards else triage
        np.subtract.at(self._counts, triage, 1)
        np.add.at(self._counts, levels, 1)
        self._lowest.add(levels, draws)

    def levels(self) -> Iterator[tuple[int, float, int]]:
        """(rank, triage score, messages) in the order in which a budget is spent, where there are any."""
        for level in np.flatnonzero(self._counts[:UNSCORED]).tolist():
            rank, step = divmod(level, WIDTH)
            yield rank, (STEPS - step) / STEPS, int(self._counts[level])

    def read(self, cut: BudgetCutoff) -> int:
        """How many messages a cut reads."""
        return int(self._counts[: max(cut.level + 1, 0)].sum())

    def sample_rate(self, cut: BudgetCutoff, rate: float) -> float:
        """The audit sample's rate: ``rate``, or what draws ``least`` of the messages with text that a cut leaves."""
        return self._lowest.rate(cut.level, rate)


NOTHING = BudgetCutoff(rank=0, score=2.0, why="")


def within_share(demand: DemandHistogram, share: float) -> BudgetCutoff:
    """The cut that reads the most, level by level, without passing ``share`` (0-1) of all messages.

    Messages of the same rank and score are read together or not at all, so that no order of the input matters.
    """
    room, cut = int(demand.messages * share + 1e-9), NOTHING
    for rank, score, count in demand.levels():
        room -= count
        if room < 0:
            break
        cut = BudgetCutoff(rank=rank, score=score, why="")
    return msgspec.structs.replace(cut, why=f"budget of {share:.0%} of the messages")


def for_recall(threshold: float, recall: float, asked: float) -> BudgetCutoff:
    """The cut of a recall target: all that a rule asks for, and triage from the model card's threshold on."""
    short = f", the most it reached; {asked:.2f} was asked for" if recall < asked else ""
    return BudgetCutoff(rank=TRIAGE, score=threshold, why=f"recall {recall:.2f} on the triage model's labels{short}")


def rank_of(tier: Tier, flagged: bool, reasons: Sequence[str]) -> int:
    """The rank of a drafted message; a focused one without a flag of its own is there from reading backwards."""
    if tier == "standard":
        return TRIAGE
    if tier == "focused" and not flagged and reasons:
        return BACKWARDS
    return len(TIERS) - 1 - TIERS.index(tier)


def level_of(rank: int, triage: float | None) -> int:
    """Ranks and triage scores as one number, in the order in which a budget is spent: 0 comes first.

    >>> level_of(0, 1.0), level_of(0, 0.0), level_of(1, 0.998), level_of(TRIAGE, None) == UNSCORED
    (0, 1000, 1003, True)
    """
    if triage is None and rank == TRIAGE:
        return UNSCORED
    return rank * WIDTH + STEPS - round((triage or 0.0) * STEPS)


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

    def merge(self, other: LowestDraws) -> None:
        """Take the lowest draws of other messages too."""
        for level, own in other._drawn.items():
            self.add(np.full(len(own), level, dtype=np.int16), np.array(own))

    def rate(self, above: int, rate: float) -> float:
        """The rate for what lies above a level: ``rate``, or the lowest one that draws ``least`` messages or all."""
        if not self._least:
            return rate
        left_out = (own for level, own in self._drawn.items() if level > above)
        lowest = heapq.nsmallest(self._least, (draw for own in left_out for draw in own))
        if len(lowest) < self._least:
            return 1.0 if lowest else 0.0
        return max(rate, float(np.nextafter(lowest[-1], NEVER)))


Interval = tuple[float, float, float]  # estimate, low, high

HARMFUL = 0.5  # a negative trait from here on, by the judge of the run
CONFIDENCE = 0.95
BISECTIONS = 60  # halvings of [0, 1]: far below a double's precision


class Stratum(NamedTuple):
    """Messages that were drawn at one rate: how many there are, how many were read, how many of these are harmful."""

    messages: int
    read: int
    harmful: int


class Census:
    """Counts the rows of a run for the estimate, without keeping them."""

    def __init__(self) -> None:
        self._left_out = self._read = self._harmful = self._routed_harmful = self._routed_unread = 0

    def add(self, row: Row, *, blank: bool = False) -> None:
        """Count one row; a blank message can neither be read nor be harmful."""
        harmful = is_harmful(row)
        if row.width != "none" and not row.sampled:
            self._routed_harmful += harmful
            self._routed_unread += row.state != "scored" and not blank
        elif not blank:
            self._left_out += 1
            self._read += row.absolute_scores is not None
            self._harmful += harmful

    def merge(self, other: Census) -> None:
        """Count what another one has counted too."""
        for name in ("_left_out", "_read", "_harmful", "_routed_harmful", "_routed_unread"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def missed(self) -> Missed:
        """The estimate, or the exact count where the judge read all that the router left out."""
        result = estimate(Stratum(self._left_out, self._read, self._harmful), self._routed_harmful)
        return msgspec.structs.replace(result, routed_unread=self._routed_unread)


def is_harmful(row: Row) -> bool:
    """Whether the judge gave any negative trait .5 or more; an unread message is not known to be."""
    return any(score >= HARMFUL for trait, score in (row.absolute_scores or {}).items() if trait in NEGATIVE_TRAITS)


def estimate(stratum: Stratum, routed_harmful: int) -> Missed:
    """Harmful messages among those left out: the drawn ones by Clopper-Pearson, scaled to all.

    ``number`` and ``rate`` are None where there are messages and none of them was read.
    """
    left_out, read, harmful = stratum
    counted = Missed(
        left_out=left_out, sampled=read, harmful=harmful, routed_harmful=routed_harmful, exact=read == left_out
    )
    if left_out and not read:
        return counted
    number = _scaled(stratum)
    rate = _map_interval(number, lambda part: part / left_out if left_out else 0.0)
    share = _map_interval(number, lambda part: part / (part + routed_harmful) if part + routed_harmful else 0.0)
    return msgspec.structs.replace(counted, number=number, rate=rate, share=share)


def _map_interval(values: Interval, function: Callable[[float], float]) -> Interval:
    value, low, high = values
    return function(value), function(low), function(high)


@lru_cache(maxsize=1 << 10)
def clopper_pearson(successes: int, trials: int) -> tuple[float, float]:
    """The exact binomial interval of a share, at ``CONFIDENCE``.

    >>> low, high = clopper_pearson(0, 30)
    >>> round(low, 3), round(high, 3)
    (0.0, 0.116)
    """
    low, risk = 0.0, 1 - CONFIDENCE
    if successes:
        low = _root(lambda p: 1 - at_most(successes - 1, trials, p) >= risk / 2)
    high = 1.0 if successes == trials else _root(lambda p: at_most(successes, trials, p) <= risk / 2)
    return low, high


def _scaled(stratum: Stratum) -> Interval:
    """The number of harmful messages; what was read is certain, so the interval stays between its counts."""
    messages, read, harmful = stratum
    if messages == read:
        return float(harmful), float(harmful), float(harmful)
    low, high = clopper_pearson(harmful, read)
    least, most = float(harmful), float(messages - (read - harmful))
    return messages * harmful / read, max(low * messages, least), min(high * messages, most)


def _root(reached: Callable[[float], bool]) -> float:
    """The share at which a condition that only turns true with rising share does so."""
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def at_most(successes: int, trials: int, share: float) -> float:
    """The chance of at most so many successes."""
    if not 0.0 < share < 1.0:
        return 1.0 if share <= 0.0 or successes >= trials else 0.0
    whole, yes, no = lgamma(trials + 1), log(share), log1p(-share)
    logs = (whole - lgamma(k + 1) - lgamma(trials - k + 1) + k * yes + (trials - k) * no for k in range(successes + 1))
    return min(1.0, sum(map(exp, logs)))
