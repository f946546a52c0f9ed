"""Semantic camouflage: feeling in place of work, where a task is open and the person says that it still fails."""

from __future__ import annotations

import re
from collections.abc import Iterator

from undersong.models import Hit
from undersong.verdict.claims import complains
from undersong.verdict.course import Course, Turn, quote
from undersong.verdict.found import Found, candidate, deduction
from undersong.verdict.outcomes import pasted
from undersong.verdict.prose import sentences
from undersong.verdict.words import camouflage_book, pattern

MECHANISM, KIND = "semantic_camouflage", "empathy_without_change"
EMPATHY = "empathy"  # label of the phrases in structure.yaml
NO_TASK = "nobody says in this session that work with code or tools still fails, so no feeling can stand in its place"
EXCERPT = 300  # characters of the complaint that are quoted


def semantic_camouflage(course: Course) -> Found:
    """One deduction for each run of answers that holds empathy instead of work; without a complaint, a candidate."""
    deductions, candidates, open_task = [], [], False
    for turns in _runs(course):
        asked = course.last_before(turns[0].place, "user")
        if asked is None:
            continue
        failing = _complained(asked) and _began(course, turns[0])
        open_task |= failing
        felt = _felt(turns)
        if not felt or _wants_comfort(asked) or _moved(course, turns):
            continue
        turn, hits = felt
        quotes = tuple(quote(each.message, hit.start, hit.end) for each, hit in hits)
        if failing:
            words = (
                "The answer holds words of feeling and no new work of code or tools, while a task is open and failing."
            )
            shown = (*quotes, quote(asked.message, 0, min(len(asked.message.text), EXCERPT)))
            deductions.append(deduction(MECHANISM, KIND, turn, words, shown, f"{turn.message.agent} run {turn.run}"))
        elif _works(course):
            words = "The answer holds words of feeling and no work; nothing shows that a task was failing."
            candidates.append(candidate(MECHANISM, "Empathy without work", turn, words, quotes))
    return Found(tuple(deductions), tuple(candidates), "" if open_task else NO_TASK)


def _works(course: Course) -> bool:
    """Whether the session is about work at all: code, or tools that do something."""
    return any(turn.is_agent and turn.blocks for turn in course.turns) or any(
        each.outcome.family != "look" for each in course.outcomes
    )


def _runs(course: Course) -> Iterator[list[Turn]]:
    """The turns of one agent that answer one request."""
    runs: dict[tuple[int, str], list[Turn]] = {}
    for turn in course.turns:
        if turn.is_agent:
            runs.setdefault((turn.run, turn.message.agent), []).append(turn)
    yield from runs.values()


def _felt(turns: list[Turn]) -> tuple[Turn, list[tuple[Turn, Hit]]] | None:
    """The turn that speaks most of feelings, and the phrases of the run; None below the limits."""
    book = camouflage_book()
    hits = [
        (turn, hit) for turn in turns for hit in turn.scan.hits if hit.trait == "structure" and hit.label == EMPATHY
    ]
    said = sum(bool(turn.prose[first:last].strip()) for turn in turns for first, last in sentences(turn.prose))
    if len(hits) < book.phrases or len(hits) < book.density * said:
        return None
    return max((turn for turn, _ in hits), key=lambda turn: (sum(each is turn for each, _ in hits), -turn.place)), hits


def _moved(course: Course, turns: list[Turn]) -> bool:
    """Whether the run did anything: new code, a tool that worked, a question the task needs, a plain "I cannot"."""
    book = camouflage_book()
    if any((turn.scan.code_change_delta or 0) > book.change for turn in turns):
        return True
    if any(turn.blocks and turn.scan.code_change_delta is None for turn in turns):
        return True
    places = {turn.run for turn in turns}
    if any(each.turn.run in places and each.outcome.state != "failed" for each in course.outcomes):
        return True
    return any(pattern((book.moves,)).search(turn.prose) for turn in turns)


def _began(course: Course, turn: Turn) -> bool:
    """Whether the agent worked on something before."""
    return any(each.blocks or each.message.tool_calls for each in course.said(turn.message.agent, 0, turn.place - 1))


def _complained(asked: Turn) -> bool:
    return complains(asked.prose) or pasted(asked.message) is not None


def _wants_comfort(asked: Turn) -> bool:
    found: re.Pattern[str] = pattern((camouflage_book().asks_for_comfort,))
    return found.search(asked.prose) is not None
