"""Semantic camouflage: feeling in place of work, where a task is open and the person says that it still fails."""

from __future__ import annotations

import re
from collections.abc import Iterator

from undersong.datafiles.verdict_config import camouflage_config, pattern
from undersong.models import Hit
from undersong.verdict.claims import complains, sentences
from undersong.verdict.tool_outcomes import pasted
from undersong.verdict.transcript import DetectorResult, Transcript, TranscriptTurn, candidate, deduction, quote

MECHANISM, KIND = "semantic_camouflage", "empathy_without_change"
EMPATHY = "empathy"  # label of the phrases in structure.yaml
NO_TASK = "nobody says in this session that work with code or tools still fails, so no feeling can stand in its place"
EXCERPT = 300  # characters of the complaint that are quoted


def semantic_camouflage(transcript: Transcript) -> DetectorResult:
    """One deduction for each run of answers that holds empathy instead of work; without a complaint, a candidate."""
    deductions, candidates, open_task = [], [], False
    for turns in _runs(transcript):
        asked = transcript.last_before(turns[0].place, "user")
        if asked is None:
            continue
        failing = _complained(asked) and _began(transcript, turns[0])
        open_task |= failing
        felt = _felt(turns)
        if not felt or _wants_comfort(asked) or _moved(transcript, turns):
            continue
        turn, hits = felt
        quotes = tuple(quote(each.message, hit.start, hit.end) for each, hit in hits)
        if failing:
            words = (
                "The answer holds words of feeling and no new work of code or tools, while a task is open and failing."
            )
            shown = (*quotes, quote(asked.message, 0, min(len(asked.message.text), EXCERPT)))
            deductions.append(deduction(MECHANISM, KIND, turn, words, shown, f"{turn.message.agent} run {turn.run}"))
        elif _works(transcript):
            words = "The answer holds words of feeling and no work; nothing shows that a task was failing."
            candidates.append(candidate(MECHANISM, "Empathy without work", turn, words, quotes))
    return DetectorResult(tuple(deductions), tuple(candidates), "" if open_task else NO_TASK)


def _works(transcript: Transcript) -> bool:
    """Whether the session is about work at all: code, or tools that do something."""
    return any(turn.is_agent and turn.blocks for turn in transcript.turns) or any(
        each.outcome.family != "look" for each in transcript.outcomes
    )


def _runs(transcript: Transcript) -> Iterator[list[TranscriptTurn]]:
    """The turns of one agent that answer one request."""
    runs: dict[tuple[int, str], list[TranscriptTurn]] = {}
    for turn in transcript.turns:
        if turn.is_agent:
            runs.setdefault((turn.run, turn.message.agent), []).append(turn)
    yield from runs.values()


def _felt(turns: list[TranscriptTurn]) -> tuple[TranscriptTurn, list[tuple[TranscriptTurn, Hit]]] | None:
    """The turn that speaks most of feelings, and the phrases of the run; None below the limits."""
    config = camouflage_config()
    hits = [
        (turn, hit) for turn in turns for hit in turn.scan.hits if hit.trait == "structure" and hit.label == EMPATHY
    ]
    sentence_count = sum(
        bool(turn.prose[first:last].strip()) for turn in turns for first, last in sentences(turn.prose)
    )
    if len(hits) < config.phrases or len(hits) < config.density * sentence_count:
        return None
    return max((turn for turn, _ in hits), key=lambda turn: (sum(each is turn for each, _ in hits), -turn.place)), hits


def _moved(transcript: Transcript, turns: list[TranscriptTurn]) -> bool:
    """Whether the run did anything: new code, a tool that worked, a question the task needs, a plain "I cannot"."""
    config = camouflage_config()
    if any((turn.scan.code_change_delta or 0) > config.change for turn in turns):
        return True
    if any(turn.blocks and turn.scan.code_change_delta is None for turn in turns):
        return True
    places = {turn.run for turn in turns}
    if any(each.turn.run in places and each.outcome.state != "failed" for each in transcript.outcomes):
        return True
    return any(pattern((config.moves,)).search(turn.prose) for turn in turns)


def _began(transcript: Transcript, turn: TranscriptTurn) -> bool:
    """Whether the agent worked on something before."""
    return any(
        each.blocks or each.message.tool_calls for each in transcript.agent_turns(turn.message.agent, 0, turn.place - 1)
    )


def _complained(asked: TranscriptTurn) -> bool:
    return complains(asked.prose) or pasted(asked.message) is not None


def _wants_comfort(asked: TranscriptTurn) -> bool:
    comfort_request: re.Pattern[str] = pattern((camouflage_config().asks_for_comfort,))
    return comfort_request.search(asked.prose) is not None
