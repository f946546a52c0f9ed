"""What stands behind the flags and thread signals of a session, one line for each episode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from undersong.flags import DEATH_SPIRAL, HIGH_DEFERENCE
from undersong.report.tally import Episode, Trace
from undersong.report.text import label
from undersong.wording import counted

TURNS = 12  # turns that are named; of a longer run the number, the first and the last
LINES = 12  # episodes of a kind that are told; evaluations.jsonl holds all


def turns_words(turns: Sequence[int]) -> str:
    """``turn 4``, ``turns 4, 6, 9``, or ``120 turns from 4 to 260``."""
    if len(turns) == 1:
        return f"turn {turns[0]}"
    if len(turns) <= TURNS:
        return f"turns {', '.join(map(str, turns))}"
    return f"{counted(len(turns), 'turn')} from {turns[0]} to {turns[-1]}"


def evidence(trace: Trace) -> tuple[str, ...]:
    """The repeated words of each Death Spiral, the counts of each High Deference, and the thread signals by name."""
    return (*_loops(trace), *_deference(trace), *_signals(trace))


def _loops(trace: Trace) -> Iterator[str]:
    loops = sorted(trace.loops.values(), key=lambda loop: (-len(loop.turns), -loop.times, loop.turns[0], loop.what))
    for loop in loops[:LINES]:
        yield (
            f"{DEATH_SPIRAL}: {_who(loop)} repeats “{label(loop.what, 100)}”, counted up to "
            f"{counted(loop.times, 'time')}, {turns_words(loop.turns)}"
        )
    if len(loops) > LINES:
        yield f"{DEATH_SPIRAL}: and {len(loops) - LINES:,} more; evaluations.jsonl holds all"


def _deference(trace: Trace) -> Iterator[str]:
    for agent, last in sorted(trace.deference.items())[:LINES]:
        yield (
            f"{HIGH_DEFERENCE}: {label(agent, 60)}, {counted(last.apologies, 'apology', 'apologies')} to "
            f"{counted(last.corrections, 'correction')}"
        )


def _signals(trace: Trace) -> Iterator[str]:
    signals = sorted(trace.signals.values(), key=lambda signal: (signal.what, signal.turns[0], signal.agent))
    for signal in signals[:LINES]:
        yield f"Thread signal {signal.what}: {_who(signal)}, {turns_words(signal.turns)}"
    if len(signals) > LINES:
        yield f"Thread signals: and {len(signals) - LINES:,} more; evaluations.jsonl holds all"


def _who(episode: Episode) -> str:
    return label(episode.agent, 60)
