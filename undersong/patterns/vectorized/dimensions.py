"""Dimensions over whole columns: the mean of the traits of each row that are present."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from undersong.models import NEGATIVE_TRAITS
from undersong.patterns.vectorized.exact_sum import F


def dimension_of(traits: Mapping[str, F]) -> F:
    """As ``fields.dimension``, of a dimension's traits in their order: the same sum, NaN where no trait is present."""
    columns = [1 - scores if trait in NEGATIVE_TRAITS else scores for trait, scores in traits.items()]
    total = np.zeros(len(columns[0]))
    for scores in columns:
        total = total + scores
    means: F = total / len(columns)
    incomplete = np.flatnonzero(np.isnan(means))
    if len(incomplete):
        means[incomplete] = _mean_of_known(np.stack([scores[incomplete] for scores in columns]))
    return means


def _mean_of_known(columns: F) -> F:
    present = ~np.isnan(columns)
    number, total = present.sum(axis=0), np.zeros(columns.shape[1])
    for scores, counted in zip(columns, present, strict=True):
        total = total + np.where(counted, scores, 0.0)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)
