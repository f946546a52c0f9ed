"""Fits maps from a judge's scores to labels, and measures them on authors that they were not fitted on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.isotonic import IsotonicRegression

from undersong.judges.measurement import ScoreMap
from undersong.models import TRAITS
from undersong.training.trait_heads import Array, split

FEWEST = 30  # labels of a trait: fewer fit no map


def fit_maps(labels: Array, scores: Array, groups: Sequence[str]) -> dict[str, ScoreMap]:
    """A map for each trait with FEWEST labels of scored messages by two authors or more.

    ``labels`` and ``scores`` (messages, 12) are nan where there is none; ``groups`` are the messages' authors.
    """
    maps = {}
    _, authors = np.unique(groups, return_inverse=True)
    for place, trait in enumerate(TRAITS):
        there = ~np.isnan(labels[:, place]) & ~np.isnan(scores[:, place])
        if there.sum() >= FEWEST and len(set(authors[there].tolist())) > 1:
            maps[str(trait)] = _map(labels[there, place], scores[there, place], authors[there])
    return maps


def _map(label: Array, score: Array, authors: npt.NDArray[np.intp]) -> ScoreMap:
    unseen_labels = np.empty_like(score)
    for seen, unseen in split(authors):
        unseen_labels[unseen] = _fitted(label[seen], score[seen]).predict(score[unseen])
    whole = _fitted(label, score)
    knots = zip(whole.X_thresholds_.tolist(), whole.y_thresholds_.tolist(), strict=True)
    return ScoreMap(
        knots=tuple((round(x, 4), round(y, 4)) for x, y in knots),
        labels=len(label),
        before=round(float(np.abs(score - label).mean()), 4),
        after=round(float(np.abs(unseen_labels - label).mean()), 4),
    )


def _fitted(label: Array, score: Array) -> IsotonicRegression:
    return IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(score, label)
