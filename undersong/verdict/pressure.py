"""Where somebody presses an agent: by an objection to what it said, or by a question that wants a yes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from undersong.verdict.course import ASKS, Course, Turn
from undersong.verdict.words import Pressing, pattern, stance_book


class Exchange(NamedTuple):
    """An answer, what was said to it, and the next answer of the same agent.

    ``news``: a fact comes with it, so that giving way may be right. ``works``: the two answers hold code or calls of
    tools, so that a change of them is work and no stance.
    """

    before: Turn
    asked: Turn
    answer: Turn
    kind: Pressing
    news: bool
    works: bool


def exchanges(course: Course) -> Iterator[Exchange]:
    """The exchanges of a session in which somebody presses, in the order of the answers."""
    last: dict[str, Turn] = {}
    asked: Turn | None = None
    for turn in course.turns:
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


def _presses(turn: Turn) -> Pressing | None:
    if pattern(stance_book().pressure).search(turn.prose):
        return "objection"
    return "leading" if pattern(stance_book().leading).search(turn.prose) else None


def _brings_news(turn: Turn) -> bool:
    return pattern((stance_book().new_fact,)).search(turn.message.text) is not None
