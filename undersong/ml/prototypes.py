"""Sentences → signals: how much nearer a sentence lies to a signal's phrases than to what only looks alike.

No label is used, so the scores carry over to text of another kind, as far as they go. A score is 0 to 1: about .05
where a message says no more of the kind than ordinary ones, .5 half way to the phrases themselves. No probability.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.datafiles import yaml_loader
from undersong.errors import RuleError
from undersong.ml.static_vectors import Embedded, StaticVectors, Vectors, Whitening, product

Array = npt.NDArray[np.float64]

SHARPNESS = 10.0  # of closeness: the nearest phrases count most, without one deciding alone
FOCUS = 4.0  # of a message's sentences: between their mean (0) and the strongest alone
SLOPE = 6.0  # of the curve to 0-1: .05 at an ordinary sentence's mean, .95 at the phrases' own
DEVIATIONS = 3.0  # a phrase set that stands out less than this from ordinary sentences is held to it all the same
TOGETHER = 1 << 12  # sentences compared at once, so that memory stays bounded


class Signals(msgspec.Struct, frozen=True, eq=False):
    """``scores`` (n texts, signals) in [0, 1], to 3 decimals; nan where a text has no sentence.

    ``strongest`` (n, signals) is the number of the sentence, within its text, that shows the signal most.
    """

    scores: Array
    strongest: npt.NDArray[np.intp]


class Prototypes:
    """The phrases of a book as points, ready to be compared with."""

    def __init__(self, book: PhraseBook, vectors: StaticVectors, whitening: Whitening) -> None:
        self.ids = book.ids
        self._whitening = whitening
        groups = [each.positive for each in book.sets] + [each.contrast for each in book.sets] + [book.background]
        sizes = [len(group) for group in groups]
        self._points = whitening.whiten(vectors.sentence_vectors([phrase for group in groups for phrase in group]))
        self._own, self._others = _sides(len(book.sets), sizes)
        ordinary = self._contrast(whitening.sample)
        self._zero = ordinary.mean(axis=0)
        self._one = np.maximum(self._held_out(), self._zero + DEVIATIONS * ordinary.std(axis=0))

    def score(self, embedded: Embedded) -> Signals:
        """The signals of some texts."""
        levels = self.contrast_scores(embedded.parts)
        raised = np.exp(FOCUS * levels)
        count = len(embedded.texts)
        means = np.full((count, len(self.ids)), np.nan)
        strongest = np.zeros((count, len(self.ids)), dtype=np.intp)
        for place, (start, end) in enumerate(pairwise(embedded.bounds.tolist())):
            if end > start:
                levels[start:end].argmax(axis=0, out=strongest[place])
                np.add.reduce(raised[start:end], axis=0, out=means[place])
                means[place] /= end - start
        scores = np.log(means) / FOCUS
        return Signals(np.round(1 / (1 + np.exp(-SLOPE * (scores - 0.5))), 3), strongest)

    def contrast_scores(self, parts: Vectors) -> Array:
        """Sentence vectors (n, 256) → (n, signals): 0 like ordinary sentences, 1 like the signal's own phrases."""
        scores: Array = np.empty((len(parts), len(self.ids)))
        for start in range(0, len(parts), TOGETHER):
            contrast = self._contrast(parts[start : start + TOGETHER])
            scores[start : start + TOGETHER] = (contrast - self._zero) / (self._one - self._zero)
        return scores

    def _contrast(self, parts: Vectors) -> Array:
        closeness = product(self._whitening.whiten(parts), self._points.T)
        near = np.exp(np.float32(SHARPNESS) * closeness).astype(np.float64)
        return np.asarray(np.log(product(near, self._own)) - np.log(product(near, self._others))) / SHARPNESS

    def _held_out(self) -> Array:
        """Per signal, the mean contrast of its own phrases, each held out in turn."""
        near = np.exp(SHARPNESS * (self._points @ self._points.T).astype(np.float64))
        np.fill_diagonal(near, 0.0)
        inside = self._own > 0
        own = near @ self._own * (inside.sum(axis=0) / (inside.sum(axis=0) - 1))
        contrast = (np.log(own) - np.log(near @ self._others)) / SHARPNESS
        return np.array([contrast[inside[:, signal], signal].mean() for signal in range(len(self.ids))])


def _sides(signals: int, sizes: list[int]) -> tuple[Array, Array]:
    """(phrases, signals) twice: the weights of each signal's own phrases, and of all that it is held against.

    Held against it are its contrasting phrases, the background, and the phrases of every other signal.
    """
    group = np.repeat(np.arange(len(sizes)), sizes)[:, None]
    signal = np.arange(signals)[None, :]
    own = (group == signal).astype(np.float64)
    other = ((group < signals) & (group != signal)) | (group == signals + signal) | (group == 2 * signals)
    return own / own.sum(axis=0), other / other.sum(axis=0)


SHIPPED = yaml_loader.RULES / "prototypes"
BACKGROUND = "background.yaml"
FEWEST = (5, 3)  # phrases that show a signal, phrases that contrast: with fewer nothing can be held out

SignalKind = Literal["harmful", "protective", "act"]


class PhraseSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One signal: ``positive`` phrases show it, ``contrast`` phrases have its words or its topic and do not."""

    id: str
    kind: SignalKind
    meaning: str
    positive: tuple[str, ...]
    contrast: tuple[str, ...]
    misses: tuple[str, ...] = ()


class Background(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Plain sentences that show none of the signals."""

    sentences: tuple[str, ...]


class PhraseBook(msgspec.Struct, frozen=True):
    """All signals by id, in the order of their file names, and the background; ``sha256`` is over all files."""

    sets: tuple[PhraseSet, ...]
    background: tuple[str, ...]
    sha256: str

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the signals, in order."""
        return tuple(each.id for each in self.sets)


def load_phrases(folder: Path = SHIPPED) -> PhraseBook:
    """The phrase files of a folder; raises RuleError with file and line of the first wrong one."""
    paths = sorted(path for path in folder.glob("*.yaml") if path.name != BACKGROUND)
    if not paths:
        raise RuleError("holds no phrase file", where=str(folder), remedy="copy the shipped files there and edit them")
    sets = tuple(_phrase_set(path) for path in paths)
    path = folder / BACKGROUND
    background = yaml_loader.read(path if path.exists() else SHIPPED / BACKGROUND, Background).sentences
    return PhraseBook(sets, background, _digest(sets, background))


def _phrase_set(path: Path) -> PhraseSet:
    document = yaml_loader.load(path)
    phrase_set = yaml_loader.convert(document, PhraseSet)
    if phrase_set.id != path.stem:
        raise document.error(f"id '{phrase_set.id}' is not the file's name", "$.id", f"write `id: {path.stem}`")
    for key, phrases, fewest in (
        ("positive", phrase_set.positive, FEWEST[0]),
        ("contrast", phrase_set.contrast, FEWEST[1]),
    ):
        if len(phrases) < fewest:
            raise document.error(f"{len(phrases)} phrases", f"$.{key}", f"write at least {fewest}")
        _refuse_blank_or_repeated(document, key, phrases)
    return phrase_set


def _refuse_blank_or_repeated(document: yaml_loader.YamlDocument, key: str, phrases: Sequence[str]) -> None:
    for place, phrase in enumerate(phrases):
        if not phrase.strip():
            raise document.error("the phrase is blank", f"$.{key}[{place}]", "write a sentence or remove it")
        if phrase in phrases[:place]:
            raise document.error("the phrase comes twice", f"$.{key}[{place}]", "remove one of the two")


def _digest(sets: Sequence[PhraseSet], background: Sequence[str]) -> str:
    return hashlib.sha256(msgspec.json.encode([sets, background])).hexdigest()
