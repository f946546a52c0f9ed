"""Which of the matches stand: where the search goes on after one, and ``keep: strongest``."""

from __future__ import annotations

import numpy as np

from undersong.jit import kernel
from undersong.patterns.engine.paths import MatchPaths, compact
from undersong.patterns.engine.sums import F, I
from undersong.patterns.engine.vectors import B
from undersong.patterns.matcher import Skip


def resumed(paths: MatchPaths, skip: Skip) -> I:
    """For each match the row at which the search goes on after it."""
    following = paths.starts + 1
    if skip.to == "past":
        return np.asarray(np.maximum(following, paths.starts + paths.sizes))
    if skip.to == "next":
        return following
    paths = compact(paths)
    flat = np.flatnonzero(paths.bindings == skip.variable)
    owner = np.searchsorted(paths.last, flat, side="right")
    if skip.to == "first":
        flat, owner = flat[::-1], owner[::-1]
    resume_at = following.copy()
    resume_at[owner] = paths.starts[owner] + flat - paths.first[owner]  # of one match's rows the last one written stays
    return np.maximum(following, resume_at)


def not_skipped(starts: I, owners: I, resume: I, following: I) -> B:
    """The matches that the search comes to, run by run; ``following`` holds each run's next row."""
    stands = np.zeros(len(starts), dtype=np.bool_)
    _stand.at(len(starts))(starts, owners, resume, following, stands)
    return stands


@kernel
def _stand(starts, owners, resume, following, stands):  # type: ignore[no-untyped-def]
    for k in range(len(starts)):
        if starts[k] >= following[owners[k]]:
            stands[k] = True
            following[owners[k]] = resume[k]


def strongest(paths: MatchPaths, owners: I, strength: F, rows: int) -> B:
    """The matches that ``keep: strongest`` leaves: as ``search.strongest``, region by region."""
    ranking = np.where(np.isnan(strength), -1.0, strength)
    order = np.lexsort((paths.starts, -ranking, owners))
    selected = np.zeros(len(order), dtype=np.bool_)
    _keep.at(int(paths.sizes.sum()))(
        order, paths.starts, paths.starts + paths.sizes, np.zeros(rows, np.bool_), selected
    )
    return selected


@kernel
def _keep(order, starts, ends, taken, selected):  # type: ignore[no-untyped-def]
    for k in order:
        free = True
        for row in range(starts[k], ends[k]):
            if taken[row]:
                free = False
                break
        if free:
            selected[k] = True
            for row in range(starts[k], ends[k]):
                taken[row] = True
