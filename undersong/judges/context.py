"""Which earlier messages a question shows: ancestors first, then nearest in time; a long thread is cut by a rule."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from operator import is_

import msgspec

from undersong.judges.llm.prompts import ReadingLimits, shipped_prompts
from undersong.judges.protocol import EvaluationHistory
from undersong.models import TRAITS, Message, Width

NO_AGENTS = ("user", "system", "tool")
BRANCHED_ANCESTORS = 200  # of a message that are looked for on abandoned branches


class EarlierMessages:
    """The messages of a conversation, put up once so that what a question shows is found without a look at all."""

    def __init__(self, messages: Sequence[Message], limits: ReadingLimits | None = None) -> None:
        self._messages, self._limits = list[Message](), limits or shipped_prompts().limits
        self._by_id: dict[str, list[int]] = {}
        self._by_branch: dict[str | None, list[int]] = {}
        self._tools: list[int] = []
        self._turn_starts: list[int] = []  # of each message: the place behind the last that another agent said
        self._parents: list[int] = []  # -1: none
        self._branched: list[int] = []  # the nearest ancestor on a branch, -1: none
        self._sizes: dict[int, int] = {}
        self._last = self._other = -1  # the last message that is no tool's, and the last that its agent did not say
        self._extend(messages)

    def grown(self, messages: Sequence[Message]) -> EarlierMessages:
        """The same with the messages that have come since; put up anew where one of the others has changed."""
        count = len(self._messages)
        if len(messages) < count or not all(map(is_, self._messages, messages)):
            return EarlierMessages(messages, self._limits)
        self._extend(messages[count:])
        return self

    def _extend(self, messages: Iterable[Message]) -> None:
        for place, message in enumerate(messages, len(self._messages)):
            self._messages.append(message)
            self._by_branch.setdefault(message.branch, []).append(place)
            parent = -1 if message.reply_to is None else self._before(place, message.reply_to)
            on_branch = parent >= 0 and self._messages[parent].branch is not None
            self._parents.append(parent)
            self._branched.append(parent if on_branch or parent < 0 else self._branched[parent])
            own = self._last >= 0 and self._messages[self._last].agent == message.agent
            self._turn_starts.append(1 + (self._other if own else self._last))
            if message.role == "tool":
                self._tools.append(place)
            else:
                self._other = self._other if own else self._last
                self._last = place
            self._by_id.setdefault(message.id, []).append(place)

    def prior_places(self, place: int, width: Width) -> list[int]:
        """Places of the earlier messages that a question about a message shows, in order.

        ``prior_messages``: always the same number, fewer only at a thread's start, ancestors before those that are
        merely near. ``thread_and_history``: all earlier ones; of a long thread the first few and the latest that fit.
        Abandoned branches that do not lead to the message are passed over.
        """
        if width == "prior_messages":
            return self._nearest(place, self._limits.prior_messages)
        return self._fitting(place) if width == "thread_and_history" else []

    def tool_places(self, place: int, shown: Sequence[int]) -> list[int]:
        """Places of the tools' answers in the turn that ends with a message, without those in ``shown``.

        A turn is what an agent and its tools do until somebody else speaks. Only what stands before the message counts,
        so that the question is the same while the talk goes on. Of many the last ones.
        """
        message = self._messages[place]
        if message.role in NO_AGENTS:
            return []
        first, last = (bisect_left(self._tools, at) for at in (self._turn_starts[place], place))
        seen = frozenset(shown)
        places = (at for at in islice(reversed(self._tools), len(self._tools) - last, len(self._tools) - first))
        wanted = (at for at in places if at not in seen and self._messages[at].branch in (None, message.branch))
        return list(islice(wanted, self._limits.tool_messages))[::-1]

    def _before(self, place: int, message_id: str) -> int:
        """The nearest place of a message of this id before ``place``, -1 where there is none."""
        places = self._by_id.get(message_id, ())
        at = bisect_left(places, place)
        return places[at - 1] if at else -1

    def _nearest(self, place: int, most: int) -> list[int]:
        """Ancestors, nearest first, then the other earlier messages, nearest first: at most so many."""
        places, at = list[int](), self._parents[place]
        while at >= 0 and len(places) < most:
            places.append(at)
            at = self._parents[at]
        others = (at for at in self._latest_first(place, ()) if at not in places[:most])
        return sorted([*places, *islice(others, most - len(places))])

    def _fitting(self, place: int) -> list[int]:
        """The first ones of a thread, and as many of the latest as fit beside them."""
        elsewhere, at = list[int](), self._branched[place]
        while at >= 0 and len(elsewhere) < BRANCHED_ANCESTORS:
            if self._messages[at].branch != self._messages[place].branch:
                elsewhere.append(at)
            at = self._branched[at]
        starts = heapq.merge(*self._visible(place), reversed(elsewhere))
        first = list(islice(starts, self._limits.thread_first))
        room = self._limits.thread_bytes - sum(map(self._size, first))
        latest: list[int] = []
        for at in self._latest_first(place, elsewhere):
            if first and at <= first[-1]:
                break
            room -= self._size(at)
            if room < 0:
                break
            latest.append(at)
        return first + latest[::-1]

    def _visible(self, place: int) -> list[Iterator[int]]:
        """The places before one, of the path that the reader saw and of the message's own branch, in order."""
        own = {None, self._messages[place].branch}
        listed = (self._by_branch.get(branch, []) for branch in own)
        return [islice(places, bisect_left(places, place)) for places in listed]

    def _latest_first(self, place: int, elsewhere: Sequence[int]) -> Iterator[int]:
        """The same places with those of ancestors elsewhere, the nearest first."""
        listed = [self._by_branch.get(branch, []) for branch in {None, self._messages[place].branch}]
        backwards = [map(places.__getitem__, range(bisect_left(places, place) - 1, -1, -1)) for places in listed]
        return heapq.merge(*backwards, elsewhere, reverse=True)

    def _size(self, place: int) -> int:
        size = self._sizes.get(place)
        if size is None:
            text = self._messages[place].text
            size = min(self._limits.prior_bytes, len(text.encode("utf-8", "surrogatepass")))
            self._sizes[place] = size
        return size


RECENT = 5  # readings that a trend compares with the as many before: the width of the rules' windows
UNKNOWN = "unknown"  # of a trend
STEADY = 0.1  # a mean that moves less does not count as moving: the size of a judge's own noise (rules/noise.yaml)


class Past(msgspec.Struct, frozen=True):
    """All that a snapshot holds of an agent, in order of time: (microseconds UTC, twelve scores), (end, pattern).

    A score is None where the trait does not apply.
    """

    readings: tuple[tuple[int, tuple[float | None, ...]], ...] = ()
    findings: tuple[tuple[int, str], ...] = ()


def history(past: Past, before: datetime | None) -> EvaluationHistory:
    """The part of the past that lies before a message; a message without a time has none.

    Averages and trends are over the scores that there are; a trait without any is in neither.
    """
    if before is None:
        return EvaluationHistory()
    moment = round(before.timestamp() * 1_000_000)
    scores = [each for time, each in past.readings if time < moment]
    finding_counts = Counter(name for end, name in past.findings if end < moment)
    columns = dict(zip(TRAITS, zip(*scores, strict=True), strict=True)) if scores else {}
    averages = {str(trait): _mean(values) for trait, values in columns.items()}
    return EvaluationHistory(
        evaluations=len(scores),
        averages={trait: mean for trait, mean in averages.items() if mean is not None},
        trends={str(trait): _trend(values) for trait, values in columns.items() if averages[trait] is not None},
        findings=dict(sorted(finding_counts.items())),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of what is there; None where nothing is."""
    scores = [value for value in values if value is not None]
    return round(sum(scores) / len(scores), 3) if scores else None


def _trend(values: Sequence[float | None]) -> str:
    """Of the last readings against as many before; unknown where there are fewer, or either have no score."""
    if len(values) < 2 * RECENT:
        return UNKNOWN
    before, recent = _mean(values[-2 * RECENT : -RECENT]), _mean(values[-RECENT:])
    if before is None or recent is None:
        return UNKNOWN
    change = recent - before
    return "steady" if abs(change) < STEADY else "rising" if change > 0 else "falling"
