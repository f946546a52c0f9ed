"""Figures with intervals over groups, as lines of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from undersong.training.evaluation import Figure, auc, figure

RESAMPLES = 500


def interval(
    positive: npt.NDArray[np.bool_], scores: npt.NDArray[np.float64], groups: Sequence[str], seed: int
) -> Figure:
    """AUC with a 95 % interval from resampling whole groups."""
    _, group = np.unique(np.array(groups), return_inverse=True)
    members = [np.flatnonzero(group == each) for each in range(int(group.max()) + 1)]
    rng = np.random.default_rng(seed)
    draws = (
        np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))]) for _ in range(RESAMPLES)
    )
    samples = np.array([auc(positive[rows], scores[rows]) for rows in draws])
    return figure(auc(positive, scores), samples)


def row(name: str, *cells: object) -> str:
    """One line of a Markdown table."""
    return f"| {name} | " + " | ".join(map(str, cells)) + " |"


def header(*names: str) -> str:
    """The head of a Markdown table, with a blank line before it."""
    return "\n" + row(names[0], *names[1:]) + "\n" + "|---" * len(names) + "|"
