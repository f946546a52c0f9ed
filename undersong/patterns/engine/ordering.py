"""The order of rows: by time and position, and agent by agent."""

from __future__ import annotations

import numpy as np

from undersong.jit import kernel, machine
from undersong.patterns.engine.sums import I
from undersong.patterns.engine.vectors import Codes


def in_time(times: I, positions: I | None) -> I | None:
    """The order of time, then of position, then as given; None where the rows have it."""
    if machine(len(times)):
        falls = _falls.at(len(times))(times, np.zeros(0, dtype=np.int64) if positions is None else positions)
    else:
        again = np.zeros(1, dtype=np.bool_) if positions is None else positions[1:] < positions[:-1]
        falls = ((times[1:] < times[:-1]) | ((times[1:] == times[:-1]) & again)).any()
    if not falls:
        return None
    return np.argsort(times, kind="stable") if positions is None else np.lexsort((positions, times))


@kernel
def _falls(times, positions):  # type: ignore[no-untyped-def]
    """How many rows belong before the one before them; without positions all are at one."""
    falls = 0
    for row in range(1, len(times)):
        falls += times[row] < times[row - 1]
    for row in range(1, len(positions)):
        falls += (times[row] == times[row - 1]) & (positions[row] < positions[row - 1])
    return falls


def by_agent(agents: Codes, codes: int) -> tuple[I, I]:
    """The rows agent by agent, in their order within each; and how many each has."""
    counts = np.zeros(codes, dtype=np.int64)
    if not machine(len(agents)) or not _count.at(len(agents))(agents, counts):
        return np.argsort(agents, kind="stable"), np.bincount(agents, minlength=codes)
    order = np.empty(len(agents), dtype=np.int64)
    _place.at(len(agents))(agents, np.cumsum(counts) - counts, order)
    return order, counts


@kernel
def _count(agents, counts):  # type: ignore[no-untyped-def]
    """Adds up how many rows each agent has; whether all are among them."""
    for agent in agents:
        if not 0 <= agent < len(counts):
            return False
        counts[agent] += 1
    return True


@kernel
def _place(agents, following, order):  # type: ignore[no-untyped-def]
    for row in range(len(agents)):
        order[following[agents[row]]] = row
        following[agents[row]] += 1
