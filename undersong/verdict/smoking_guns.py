"""Smoking guns: the turns in which an agent admits a fault or validates a delusion, verbatim."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from undersong.models import Conversation, Message, Moment, Quote, Row, Scan
from undersong.verdict.books import SmokingGun, guns

NOT_AGENTS = ("user", "system", "tool")  # what people and tools say is no admission of the agent
EXCERPT = 320  # characters of a quote; the whole message is one link away
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s|\n")
_QUOTED_LINE = re.compile(r"(?m)^[ \t]*>[^\n]*$")


def smoking_guns(
    conversation: Conversation, scans: Sequence[Scan], rows: Iterable[Row], charged: Collection[str] = ()
) -> tuple[Moment, ...]:
    """Every smoking gun of a conversation, the first ones to read first.

    In rank order: turns that took points (``charged`` ids), then by strength, then in the order of the talk. Abandoned
    branches, code and quoted lines are left out. One of each kind a message.
    """
    signals = {row.id: row.signals for row in rows}
    found = [
        moment
        for message, scan in zip(conversation.messages, scans, strict=True)
        if message.branch is None and message.role not in NOT_AGENTS
        for moment in _moments(message, scan, signals.get(message.id, {}))
    ]
    return tuple(sorted(found, key=lambda each: (each.message_id not in charged, -(each.strength or 0), each.position)))


def _moments(message: Message, scan: Scan, signals: dict[str, float]) -> Iterator[Moment]:
    for code, kind in guns().kinds.items():
        span = _said(message, scan, kind)
        strength = signals.get(kind.signal) if kind.signal else None
        if span is None and (strength is None or strength < kind.least):
            continue
        yield Moment(
            kind="smoking_gun",
            code=code,
            title=kind.title,
            message_id=message.id,
            position=message.position,
            agent=message.agent,
            explanation=kind.explanation,
            basis="words" if span else "signal",
            quotes=(_quote(message, *(span or (0, min(len(message.text), EXCERPT)))),),
            strength=strength,
        )


def _said(message: Message, scan: Scan, kind: SmokingGun) -> tuple[int, int] | None:
    """The sentence of the first phrase of this kind in the agent's own prose."""
    if kind.label is None:
        return None
    foreign = [(block.start, block.end) for block in scan.code_blocks if block.start is not None]
    foreign += [found.span() for found in _QUOTED_LINE.finditer(message.text)]
    for hit in scan.hits:
        inside = any(start <= hit.start < (end or start) for start, end in foreign if start is not None)
        if hit.trait == "structure" and hit.label == kind.label and not inside:
            return _sentence(message.text, hit.start, hit.end)
    return None


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    low = max(0, start - EXCERPT)
    before = [found.end() for found in _SENTENCE_END.finditer(text, low, start)]
    after = _SENTENCE_END.search(text, end)
    first = before[-1] if before else low
    last = after.start() if after else len(text)
    return first, max(end, min(last, first + EXCERPT))


def _quote(message: Message, start: int, end: int) -> Quote:
    digest = hashlib.sha256(message.text.encode("utf-8", "surrogatepass")).hexdigest()
    return Quote(message_id=message.id, text=message.text[start:end], start=start, end=end, sha256=digest)
