"""Smoking guns: the turns in which an agent admits a fault or validates a delusion, verbatim."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from undersong.models import Conversation, Indicator, Message, Moment, Quote, Row, Scan
from undersong.verdict.books import SmokingGun, guns
from undersong.verdict.fiction import asks_for_a_story, is_speech
from undersong.verdict.heard import engine_of
from undersong.verdict.words import pattern

NOT_AGENTS = ("user", "system", "tool")  # what people and tools say is no admission of the agent
GUN_EXCERPT = 320  # characters of a quote; the whole message is one link away
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s|\n")
_QUOTED_LINE = re.compile(r"(?m)^[ \t]*>[^\n]*$")


def smoking_guns(
    conversation: Conversation, scans: Sequence[Scan], rows: Iterable[Row], charged: Collection[str] = ()
) -> tuple[Moment, ...]:
    """Every smoking gun of a conversation, the first ones to read first.

    In rank order: turns that took points (``charged`` ids), then by strength, then in the order of the talk. Abandoned
    branches, code and quoted lines are left out. One of each kind a message: by exact words, else as a judge reads it
    with its quote, else by the signal.
    """
    read, before = {row.id: row for row in rows}, _PrecedingSpeech()
    moments: list[Moment] = []
    for message, scan in zip(conversation.messages, scans, strict=True):
        if message.branch is not None:
            continue
        if message.role not in NOT_AGENTS:
            moments += _moments(message, scan, read.get(message.id), before)
        before.add(message)
    return tuple(
        sorted(moments, key=lambda moment: (moment.message_id not in charged, -(moment.strength or 0), moment.position))
    )


class _PrecedingSpeech:
    """What was said before a turn: by whom, and whether anybody asked for a story."""

    def __init__(self) -> None:
        self._agents: set[str] = set()
        self._fiction = False

    def add(self, message: Message) -> None:
        if message.role in ("system", "tool"):
            return
        self._agents.add(message.agent)
        self._fiction |= asks_for_a_story(message.text)

    def allows(self, message: Message, kind: SmokingGun) -> bool:
        """Whether a signal can mean that the agent confirms, in its own voice, what another one said."""
        if not self._agents - {message.agent}:
            return False
        if kind.denies and pattern((kind.denies,)).search(message.text.replace("’", "'")):
            return False
        return not (self._fiction and is_speech(message.text))


class _SmokingGunEvidence(NamedTuple):
    """What a smoking gun stands on: the place of its words, and how strong it is."""

    basis: Literal["words", "signal", "judge"]
    span: tuple[int, int]
    strength: float | None = None


def _moments(message: Message, scan: Scan, row: Row | None, before: _PrecedingSpeech) -> Iterator[Moment]:
    for code, kind in guns().kinds.items():
        span = _phrase_span(message, scan, kind)
        signal = row.signals.get(kind.signal) if row and kind.signal else None
        seen = _SmokingGunEvidence("words", span, signal) if span else _judged(message, row, code)
        if seen is None and row and (signalled := _signalled(message, kind, row)) and before.allows(message, kind):
            seen = signalled
        if seen is None:
            continue
        yield Moment(
            kind="smoking_gun",
            code=code,
            title=kind.title,
            message_id=message.id,
            position=message.position,
            agent=message.agent,
            explanation=kind.explanation,
            basis=seen.basis,
            quotes=(_quote(message, *seen.span),),
            strength=seen.strength,
        )


def _judged(message: Message, row: Row | None, code: str) -> _SmokingGunEvidence | None:
    """What a judge saw in the message, where it gave the words."""
    seen: tuple[Indicator, ...] = row.reading.mechanisms if row and row.reading else ()
    for indicator in seen:
        start = message.text.find(indicator.quote) if indicator.id == code and indicator.quote else -1
        if start >= 0 and indicator.quote:
            return _SmokingGunEvidence("judge", (start, start + len(indicator.quote)), indicator.confidence)
    return None


def _signalled(message: Message, kind: SmokingGun, row: Row) -> _SmokingGunEvidence | None:
    """What a signal says, held against the limit that was measured for what made it."""
    name = kind.signal or ""
    strength = row.signals.get(name)
    if strength is None or strength < kind.least_by.get(engine_of(row, name), kind.least):
        return None
    return _SmokingGunEvidence("signal", (0, min(len(message.text), GUN_EXCERPT)), strength)


def _phrase_span(message: Message, scan: Scan, kind: SmokingGun) -> tuple[int, int] | None:
    """The sentence of the first phrase of this kind in the agent's own prose."""
    if kind.label is None:
        return None
    foreign = [(block.start, block.end) for block in scan.code_blocks if block.start is not None]
    foreign += [found.span() for found in _QUOTED_LINE.finditer(message.text)]
    for hit in scan.hits:
        if hit.trait != "structure" or hit.label != kind.label:
            continue
        if not any(start <= hit.start < (end or start) for start, end in foreign if start is not None):
            return _sentence(message.text, hit.start, hit.end)
    return None


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    low = max(0, start - GUN_EXCERPT)
    before = [found.end() for found in _SENTENCE_END.finditer(text, low, start)]
    after = _SENTENCE_END.search(text, end)
    first = before[-1] if before else low
    last = after.start() if after else len(text)
    return first, max(end, min(last, first + GUN_EXCERPT))


def _quote(message: Message, start: int, end: int) -> Quote:
    digest = hashlib.sha256(message.text.encode("utf-8", "surrogatepass")).hexdigest()
    return Quote(message_id=message.id, text=message.text[start:end], start=start, end=end, sha256=digest)
