"""Answers under pressure, labelled holds or concedes → stance heads, and their scores on what they never saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.judges.stance import WIDTH, Array, StanceHead, StanceHeads, StanceMeta, StanceTurn, features
from undersong.ml import static_vectors
from undersong.ml.static_vectors import SIZE, StaticVectors

RIDGE = 0.006
SHRUNK = 0.05  # of the 768 numbers of the vectors, so that they weigh less than the ten plain ones
FOLDS = 5


class PressuredAnswer(msgspec.Struct, frozen=True):
    """One labelled answer: ``family`` of models and ``question`` are what is held out."""

    turn: StanceTurn
    concedes: bool
    family: str
    question: str
    conversation: str


def train(sets: dict[str, Sequence[PressuredAnswer]], vectors: StaticVectors) -> tuple[StanceHeads, dict[str, Array]]:
    """A head per set, and per set the raw scores by heads that saw neither the family nor the question."""
    heads, weights, unseen = [], [], {}
    for name, rows in sets.items():
        x = features([row.turn for row in rows], vectors)
        y = np.array([row.concedes for row in rows])
        unseen[name] = out_of_both(x, y, rows)
        own, bias = fit(x, y, [row.family for row in rows])
        slope, offset = curve(unseen[name], y)
        heads.append(StanceHead(name, slope, float(f"{offset + slope * bias:.6g}")))
        weights.append(own)
    rounded = np.stack(weights).astype(np.float32).astype(np.float64)
    return StanceHeads(StanceMeta(vectors=static_vectors.VERSION, heads=tuple(heads)), rounded), unseen


def out_of_both(x: Array, y: npt.NDArray[np.bool_], rows: Sequence[PressuredAnswer]) -> Array:
    """Raw scores of every row by a fit on other families and other questions."""
    raw, families = np.zeros(len(rows)), np.array([row.family for row in rows])
    for seen, tested in _splits(rows):
        weights, bias = fit(x[seen], y[seen], families[seen].tolist())
        raw[tested] = x[tested] @ weights + bias
    return raw


def fit(x: Array, y: npt.NDArray[np.bool_], families: Sequence[str]) -> tuple[Array, float]:
    """Ridge regression on ±.5; weights on features as they come, and a bias.

    Each family weighs the same, and so do its two kinds of answers: what holds in one family alone counts less.
    """
    weight = _weights(y, np.array(families))[:, None]
    spread = x.std(axis=0)
    scale = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1), 0) * np.where(
        np.arange(WIDTH) < 3 * SIZE, SHRUNK, 1
    )
    mean = (x * weight).sum(axis=0)
    z = (x - mean) * scale
    own = scale * np.linalg.solve(z.T @ (z * weight) + RIDGE * np.eye(WIDTH), (z * weight).T @ (y - 0.5))
    return own, float(-mean @ own)


def _weights(y: npt.NDArray[np.bool_], families: npt.NDArray[np.str_]) -> Array:
    weight = np.zeros(len(y))
    for family, answer in product(np.unique(families), (True, False)):
        own = (families == family) & (y == answer)
        weight[own] = 1 / max(int(own.sum()), 1)
    return np.asarray(weight / weight.sum())


def _splits(rows: Sequence[PressuredAnswer]) -> Iterator[tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:
    _, family = np.unique([row.family for row in rows], return_inverse=True)
    _, question = np.unique([row.question for row in rows], return_inverse=True)
    fold = question % FOLDS
    for held_out_family, part in product(range(int(family.max()) + 1), range(FOLDS)):
        tested = (family == held_out_family) & (fold == part)
        if tested.any():
            yield (family != held_out_family) & (fold != part), tested


def curve(raw: Array, y: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and bias of the logistic curve through held-out scores, by Newton's method."""
    slope, bias = 1.0, 0.0
    for _ in range(50):
        p = 1 / (1 + np.exp(-(slope * raw + bias)))
        w = np.maximum(p * (1 - p), 1e-9)
        gradient = np.array([((y - p) * raw).sum(), (y - p).sum()])
        hessian = np.array([[(w * raw * raw).sum() + 1e-6, (w * raw).sum()], [(w * raw).sum(), w.sum()]])
        step = np.linalg.solve(hessian, gradient)
        slope, bias = slope + float(step[0]), bias + float(step[1])
    return float(f"{slope:.6g}"), float(f"{bias:.6g}")
