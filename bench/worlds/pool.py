"""Real score vectors to draw messages from, always whole, so that the traits of a message belong together."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Marks = NDArray[np.float64]  # shape (12,) or (n, 12), in [0, 1], columns as in TRAITS

TRAITS = ("virtue", "goodwill", "manipulation", "deception", "accuracy", "reasoning",
          "fabrication", "broken_logic", "recognition", "compassion", "dismissal", "exploitation")  # fmt: skip
NEGATIVE = np.array([trait in {"manipulation", "deception", "fabrication", "broken_logic", "dismissal", "exploitation"}
                     for trait in TRAITS])  # fmt: skip
BAD = 0.5  # a message is bad when any negative trait is at least this
NEAREST = 15  # an acted message starts from one of so many real vectors that are closest to what it shall be


def column(trait: str) -> int:
    """The index of a trait in a vector. Raises ValueError on an unknown name."""
    return TRAITS.index(trait)


def rounded(marks: Marks, step: float) -> Marks:
    """Marks on the judge's scale: the nearest multiples of ``step``, within [0, 1]."""
    return np.clip(np.round(np.round(marks / step) * step, 4), 0.0, 1.0)


def worst(marks: Marks) -> NDArray[np.float64]:
    """The highest negative trait of a vector, or of each row."""
    return np.asarray(marks[..., NEGATIVE].max(axis=-1))


class ScorePool:
    """Real score vectors on a judge's scale, drawn by how bad, how warm and how rigorous a message is."""

    def __init__(self, vectors: Marks, step: float) -> None:
        """``vectors``: shape (n, 12), in [0, 1]; ``step``: the judge's scale, .25 for quarters."""
        self.raw = vectors
        self.vectors = rounded(vectors, step)
        bad = worst(self.vectors) >= BAD
        self._rows = {True: np.flatnonzero(bad), False: np.flatnonzero(~bad)}
        scaled = (vectors - vectors.mean(axis=0)) / vectors.std(axis=0)
        self._warmth = scaled[:, [column("goodwill"), column("compassion")]].mean(axis=1)
        self._rigour = scaled[:, [column("accuracy"), column("reasoning")]].mean(axis=1)

    def draw(self, rng: np.random.Generator, bad: bool, warmth: float, rigour: float) -> Marks:
        """A whole real vector, bad or not; the leanings (about -1 to 1) make warm or rigorous ones likelier."""
        rows = self._rows[bad]
        weight = np.exp(warmth * self._warmth[rows] + rigour * self._rigour[rows])
        return np.asarray(self.vectors[rng.choice(rows, p=weight / weight.sum())])

    def near(self, rng: np.random.Generator, wanted: Mapping[str, float]) -> Marks:
        """A real vector close to the marks ``wanted``, as the source has it (not rounded)."""
        columns = [column(trait) for trait in wanted]
        distance = ((self.raw[:, columns] - np.array(list(wanted.values()))) ** 2).sum(axis=1)
        return np.array(self.raw[rng.choice(np.argsort(distance, kind="stable")[:NEAREST])])


def load_vectors(data: Path) -> Marks:
    """The vectors of ``moltbook_traits.jsonl.gz`` in the folder ``data``, those with all 12 marks: shape (n, 12).

    Raises FileNotFoundError where the file is missing.
    """
    with gzip.open(data / "moltbook_traits.jsonl.gz", "rt", encoding="utf-8") as lines:
        traits = [json.loads(line)["labels"]["traits"] for line in lines]
    return np.array([[row[trait] for trait in TRAITS] for row in traits if all(row[t] is not None for t in TRAITS)])
