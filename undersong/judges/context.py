"""Which earlier messages a question shows: ancestors first, then nearest in time; a long thread is cut by a rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import msgspec

from undersong.judges.llm.prompts import ReadingLimits, shipped_prompts
from undersong.judges.protocol import EvaluationHistory
from undersong.models import TRAITS, Message, Width

NO_AGENTS = ("user", "system", "tool")


def prior_places(
    messages: Sequence[Message], place: int, width: Width, limits: ReadingLimits | None = None
) -> list[int]:
    """Places of the earlier messages that a question about ``messages[place]`` shows, in order.

    ``prior_messages``: always the same number, fewer only at a thread's start. ``thread_and_history``: all earlier
    ones; of a long thread the first few and the latest that fit. Abandoned branches that do not lead to the message
    are passed over.
    """
    limits = limits or shipped_prompts().limits
    if width == "prior_messages":
        return sorted(_ranked(messages, place, limits.prior_messages))
    if width == "thread_and_history":
        return _fitting(messages, sorted(_ranked(messages, place, place)), limits)
    return []


def tool_places(
    messages: Sequence[Message], place: int, shown: Sequence[int], limits: ReadingLimits | None = None
) -> list[int]:
    """Places of the tools' answers in the turn that ends with ``messages[place]``, without those in ``shown``.

    A turn is what an agent and its tools do until somebody else speaks. Only what stands before the message counts, so
    that the question is the same while the talk goes on. Of many the last ones.
    """
    limits, message = limits or shipped_prompts().limits, messages[place]
    places: list[int] = []
    if message.role in NO_AGENTS:
        return places
    for at in range(place - 1, -1, -1):
        candidate = messages[at]
        if len(places) >= limits.tool_messages or (candidate.role != "tool" and candidate.agent != message.agent):
            break
        if candidate.role == "tool" and at not in shown and candidate.branch in (None, message.branch):
            places.append(at)
    return places[::-1]


def _ranked(messages: Sequence[Message], place: int, most: int) -> list[int]:
    """Ancestors, nearest first, then the other earlier messages, nearest first: at most so many."""
    places = _ancestors(messages, place, most)
    seen = {place, *places}
    for earlier in range(place - 1, -1, -1):
        if len(places) >= most:
            break
        if earlier not in seen and messages[earlier].branch in (None, messages[place].branch):
            places.append(earlier)
    return places


def _ancestors(messages: Sequence[Message], place: int, most: int) -> list[int]:
    places: list[int] = []
    at = place
    while len(places) < most and messages[at].reply_to is not None:
        parent = _before(messages, at, messages[at].reply_to)
        if parent is None:
            break
        places.append(parent)
        at = parent
    return places


def _before(messages: Sequence[Message], place: int, message_id: str | None) -> int | None:
    """The place of a message of this id before ``place``."""
    return next((at for at in range(place - 1, -1, -1) if messages[at].id == message_id), None)


def _fitting(messages: Sequence[Message], places: list[int], limits: ReadingLimits) -> list[int]:
    """The first ones of a thread, and as many of the latest as fit beside them."""
    sizes = [min(limits.prior_bytes, len(messages[at].text.encode("utf-8", "surrogatepass"))) for at in places]
    if sum(sizes) <= limits.thread_bytes:
        return places
    first = places[: limits.thread_first]
    room = limits.thread_bytes - sum(sizes[: limits.thread_first])
    latest: list[int] = []
    for at, size in zip(reversed(places[limits.thread_first :]), reversed(sizes[limits.thread_first :]), strict=True):
        room -= size
        if room < 0:
            break
        latest.append(at)
    return first + latest[::-1]


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
