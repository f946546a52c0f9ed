"""The structural flags of one turn, such as Death Spiral and High Deference."""

from __future__ import annotations

from collections.abc import Iterable

from undersong.models import Loop, Row, Scan

DEATH_SPIRAL = "Death Spiral"
HIGH_DEFERENCE = "High Deference"
LAZY_OUTPUT = "Lazy Output"
CANNED_RESPONSES = "Canned Responses"
THREAD_SIGNAL, REPEAT_FLAGS = "thread signal: ", "repeat flags: "  # how a route's reason names a thread signal
FLAGS = (DEATH_SPIRAL, HIGH_DEFERENCE, LAZY_OUTPUT, CANNED_RESPONSES)


def turn_flags(signals: Scan | Row) -> tuple[str, ...]:
    """The flags of one turn in a fixed order; a flag routes and informs, it is never a deduction.

    A sudden drop in latency is "Canned Responses" where the turn also repeats itself or earlier turns, else
    "Lazy Output": the drop has both readings, and nothing else decides between them.
    """
    repeated = own_loops(signals)
    loops = bool(repeated) and all(loop.scope != "held" for loop in repeated)  # to decline again is to hold
    flags = [DEATH_SPIRAL] if loops else []
    if signals.deference is not None and signals.deference.high:
        flags.append(HIGH_DEFERENCE)
    if signals.latency_drop:
        flags.append(CANNED_RESPONSES if loops else LAZY_OUTPUT)
    return tuple(flags)


def own_loops(signals: Scan | Row) -> tuple[Loop, ...]:
    """The loops in which an agent repeats itself: an echo repeats somebody else."""
    return tuple(loop for loop in signals.loops if loop.scope != "echo")


def flagged_before(agent: str) -> str:
    """How the reason of a route names an agent that was flagged before; the number of messages follows."""
    return f"{REPEAT_FLAGS}{agent} was flagged in "


def thread_signals(reasons: Iterable[str]) -> tuple[str, ...]:
    """The thread signals among the reasons of a route, in words: ``escalation``, ``cycling``, ``repeat flags``."""
    signals = []
    for reason in reasons:
        if reason.startswith(THREAD_SIGNAL):
            signals.append(reason.removeprefix(THREAD_SIGNAL).replace("_", " "))
        elif reason.startswith(REPEAT_FLAGS):
            signals.append("repeat flags")
    return tuple(dict.fromkeys(signals))
