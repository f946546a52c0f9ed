"""Windows: which messages a judge is shown when it reads one agent's sequence, within a bound of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from undersong.judges.protocol import PatternShape, SequenceWindow
from undersong.models import Message, Nomination
from undersong.patterns.language.compile import PatternRule

MOST_BYTES = 32_000  # of the texts of a window, some 8,000 tokens of English
OVERLAP = 0.25  # the share of a window's bytes that the next one of a long history repeats
THINKING = 2_000  # bytes of what an agent thought before a message, as `sequence.yaml` shows them
FRAME = 60  # bytes of a message's line beside its text


def shapes_of(rules: Iterable[PatternRule]) -> tuple[PatternShape, ...]:
    """The rules that say in prose what a reader of sequences looks for, each shape once, by id."""
    described = {rule.id: rule.file for rule in rules if rule.file.reading is not None}
    return tuple(
        PatternShape(
            id=name,
            text=file.reading.shape,
            stages=tuple((stage.name, stage.shows) for stage in file.reading.stages),
            innocent=file.falsepositives,
        )
        for name, file in sorted(described.items())
        if file.reading is not None
    )


def windows_of(
    nomination: Nomination, messages: Sequence[Message], most: int = MOST_BYTES
) -> tuple[SequenceWindow, ...]:
    """The windows of a nominated agent over messages of its conversations, in order of time.

    All messages where they fit into one window. Else the agent's own and what each of them answers, in several windows
    that overlap by ``OVERLAP``; a window without a message of the agent is none.
    """
    ordered = sorted(messages, key=_order)
    if sum(map(_size, ordered)) > most:
        ordered = list(_own_and_answered(nomination.agent, ordered))
    return tuple(
        SequenceWindow(
            agent=nomination.agent,
            target=nomination.target,
            conversation=nomination.conversation,
            messages=tuple(part),
        )
        for part in _parts(ordered, most)
        if any(message.agent == nomination.agent for message in part)
    )


def _order(message: Message) -> tuple[bool, float, str, int]:
    """By time where it is known, else by place in the conversation."""
    time: datetime | None = message.time
    return (time is None, time.timestamp() if time else 0.0, message.conversation, message.position)


def _size(message: Message) -> int:
    thinking = min(len(message.thinking.encode("utf-8", "surrogatepass")), THINKING)
    return len(message.text.encode("utf-8", "surrogatepass")) + thinking + FRAME


def _own_and_answered(agent: str, messages: Sequence[Message]) -> Iterator[Message]:
    """The agent's messages, each after the one that it answers or that stands before it, and the first answer to it."""
    by_id = {(message.conversation, message.id): place for place, message in enumerate(messages)}
    chosen: set[int] = set()
    for place, message in enumerate(messages):
        if message.agent != agent:
            continue
        replied = by_id.get((message.conversation, message.reply_to or ""))
        chosen |= {place, place - 1 if replied is None else replied, place + 1}
    yield from (message for place, message in enumerate(messages) if place in chosen)


def _parts(messages: Sequence[Message], most: int) -> Iterator[Sequence[Message]]:
    """Runs of messages of at most so many bytes, each beginning within the last quarter of the one before."""
    start = 0
    while start < len(messages):
        end, size = start, 0
        while end < len(messages) and (end == start or size + _size(messages[end]) <= most):
            size += _size(messages[end])
            end += 1
        yield messages[start:end]
        if end == len(messages):
            return
        back, repeated = end, 0
        while back > start + 1 and repeated + _size(messages[back - 1]) <= most * OVERLAP:
            back -= 1
            repeated += _size(messages[back])
        start = back
