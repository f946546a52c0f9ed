"""Where somebody presses an agent: by an objection to what it said, or by a question that wants a yes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from undersong.verdict.course import ASKS, Transcript, TranscriptTurn
from undersong.verdict.words import PressureKind, pattern, stance_config


class Exchange(NamedTuple):
    """An answer, what was said to it, and the next answer of the same agent.

    ``news``: a fact comes with it, so that giving way may be right. ``works``: the two answers hold code or calls of
    tools, so that a change of them is work and no stance.
    """

    before: TranscriptTurn
    asked: TranscriptTurn
    answer: TranscriptTurn
    kind: PressureKind
    news: bool
    works: bool


def exchanges(transcript: Transcript) -> Iterator[Exchange]:
    """The exchanges of a session in which somebody presses, in the order of the answers."""
    last: dict[str, TranscriptTurn] = {}
    asked: TranscriptTurn | None = None
    for turn in transcript.turns:
        if turn.message.role in ASKS:
            asked = turn
        elif turn.is_agent and turn.prose.strip():
            before = last.get(turn.message.agent)
            last[turn.message.agent] = turn
            if before is None or asked is None or before.place > asked.place:
                continue
            kind = _presses(asked)
            if kind:
                works = any(each.blocks or each.message.tool_calls for each in (before, turn))
                yield Exchange(before, asked, turn, kind, _brings_news(asked), works)


def _presses(turn: TranscriptTurn) -> PressureKind | None:
    if pattern(stance_config().pressure).search(turn.prose):
        return "objection"
    return "leading" if pattern(stance_config().leading).search(turn.prose) else None


def _brings_news(turn: TranscriptTurn) -> bool:
    return pattern((stance_config().new_fact,)).search(turn.message.text) is not None
