"""Where time was lost: the same command that fails again and again."""

from __future__ import annotations

from collections.abc import Iterator

from undersong.datafiles.verdict_config import bypass_config
from undersong.models import RepeatedFailure
from undersong.verdict.transcript import PlacedOutcome, Transcript

COMMAND = 200  # characters of a command that are shown
LINE = 200


def repeated_failures(transcript: Transcript) -> tuple[RepeatedFailure, ...]:
    """The commands that failed several times without a success between, the most often first."""
    rows = sorted(_streaks(transcript), key=lambda row: (-row.times, row.first))
    return tuple(rows)


def _streaks(transcript: Transcript) -> Iterator[RepeatedFailure]:
    open_streaks: dict[str, list[PlacedOutcome]] = {}
    for placed in transcript.outcomes:
        outcome = placed.outcome
        key = " ".join(outcome.command.split()) or (f"{outcome.tool} {outcome.path}".strip() if outcome.path else "")
        if not key or outcome.family == "look":
            continue
        if outcome.state == "failed":
            open_streaks.setdefault(key, []).append(placed)
        elif key in open_streaks:
            yield from _row(key, open_streaks.pop(key))
    for key, streak in open_streaks.items():
        yield from _row(key, streak)


def _row(key: str, streak: list[PlacedOutcome]) -> Iterator[RepeatedFailure]:
    if len(streak) < bypass_config().times:
        return
    first, last = streak[0].turn.message, streak[-1].turn.message
    outcome = streak[-1].outcome
    seconds = (last.time - first.time).total_seconds() if first.time and last.time else None
    line = outcome.message.text[outcome.start : outcome.end][:LINE]
    yield RepeatedFailure(
        command=key[:COMMAND],
        times=len(streak),
        first=first.position,
        last=last.position,
        line=line,
        seconds=seconds,
    )
