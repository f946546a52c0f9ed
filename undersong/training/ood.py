"""Texts of known kinds → the domain check, with its error rates on authors and on kinds that were held out."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.datafiles import yaml_loader
from undersong.ml import static_vectors
from undersong.ml.ood_check import Array, DomainCheck, DomainMeta, TextKind, features
from undersong.ml.static_vectors import StaticVectors, Whitening

RIDGE = 0.003
LOST = 0.06  # of a kind's own texts, by held-out authors, that the check may miss
FOLDS = 5
PER_GENRE = 60  # made-up messages


class DomainTexts(msgspec.Struct, frozen=True, eq=False):
    """Texts of one kind with their authors (or whatever is held out together)."""

    name: str
    texts: tuple[str, ...]
    authors: tuple[str, ...]


def synthetic_sources() -> list[DomainTexts]:
    """Every genre as a source of its own: kinds that nothing was measured on."""
    sources = []
    for name, genre in load_genres().items():
        texts = tuple(messages(genre, PER_GENRE, name))
        sources.append(DomainTexts(name, texts, tuple(map(str, range(len(texts))))))
    return sources


def train(
    measured: Sequence[DomainTexts], others: Sequence[DomainTexts], vectors: StaticVectors, whitening: Whitening
) -> DomainCheck:
    """One kind per measured source, each held against all other sources; the result depends on nothing else."""
    sources = [*measured, *others]
    matrices = {each.name: features(each.texts, vectors.embed(each.texts).texts, whitening) for each in sources}
    kinds, weights = [], []
    for source in measured:
        kind, own = _kind(source, matrices)
        kinds.append(kind)
        weights.append(own)
    rounded = np.stack(weights).astype(np.float32).astype(np.float64)
    return DomainCheck(DomainMeta(vectors=static_vectors.VERSION, kinds=tuple(kinds)), rounded)


def _kind(source: DomainTexts, matrices: Mapping[str, Array]) -> tuple[TextKind, Array]:
    own = matrices[source.name]
    others = {name: each for name, each in matrices.items() if name != source.name}
    unseen = _out_of_fold(own, source.authors, np.vstack(list(others.values())))
    threshold = float(np.quantile(unseen, LOST))
    refused = {}
    for left_out, texts in others.items():
        weights, bias = _fit(own, np.vstack([each for name, each in others.items() if name != left_out] or [texts]))
        refused[left_out] = round(float((texts @ weights + bias < threshold).mean()), 3)
    weights, bias = _fit(own, np.vstack(list(others.values())))
    kind = TextKind(
        name=source.name,
        threshold=float(f"{threshold:.6g}"),
        bias=float(f"{bias:.6g}"),
        kept=round(float((unseen >= threshold).mean()), 3),
        refused=round(float(np.mean(list(refused.values()))), 3),
        refused_by=refused,
    )
    return kind, weights


def _out_of_fold(own: Array, authors: Sequence[str], others: Array) -> Array:
    _, number = np.unique(np.array(authors), return_inverse=True)
    fold: npt.NDArray[np.intp] = number % min(FOLDS, int(number.max()) + 1)
    unseen = np.zeros(len(own))
    for held_out_fold in np.unique(fold):
        weights, bias = _fit(own[fold != held_out_fold], others)
        unseen[fold == held_out_fold] = own[fold == held_out_fold] @ weights + bias
    return unseen


def _fit(own: Array, others: Array) -> tuple[Array, float]:
    """Ridge regression on +1 and -1, both sides weighing the same."""
    x = np.vstack([own, others])
    y = np.concatenate([np.ones(len(own)), -np.ones(len(others))])
    weight = np.concatenate([np.full(len(own), 0.5 / len(own)), np.full(len(others), 0.5 / len(others))])[:, None]
    mean = (x * weight).sum(axis=0)
    centred = x - mean
    weights = np.linalg.solve(centred.T @ (centred * weight) + RIDGE * np.eye(x.shape[1]), (centred * weight).T @ y)
    return weights, float(-mean @ weights)


FILE = yaml_loader.RULES / "genres.yaml"
SENTENCES = (2, 8)  # frames in a message, fewest and most
_SLOT = re.compile(r"\{(\w+)\}")


class Genre(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sentence frames, and the words for their slots; ``{n}`` and ``{small}`` are numbers."""

    frames: tuple[str, ...]
    slots: dict[str, tuple[str, ...]] = {}


class _Genres(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    genres: dict[str, Genre]


def load_genres(path: Path = FILE) -> dict[str, Genre]:
    """Genres by name; raises RuleError where a frame has a slot without words."""
    document = yaml_loader.load(path)
    genres = yaml_loader.convert(document, _Genres).genres
    for name, genre in genres.items():
        for place, frame in enumerate(genre.frames):
            missing = set(_SLOT.findall(frame)) - genre.slots.keys() - {"n", "small"}
            if missing:
                what = f"no words for the slot {', '.join(sorted(missing))}"
                raise document.error(what, f"$.genres.{name}.frames[{place}]", "add them under slots")
    return genres


def messages(genre: Genre, count: int, seed: str) -> Iterator[str]:
    """``count`` messages of a genre."""
    dice = random.Random(seed)
    for _ in range(count):
        frames = dice.sample(genre.frames, min(dice.randint(*SENTENCES), len(genre.frames)))
        yield dice.choice((" ", " ", "\n")).join(_filled(frame, genre, dice) for frame in frames)


def _filled(frame: str, genre: Genre, dice: random.Random) -> str:
    def word(slot: re.Match[str]) -> str:
        name = slot[1]
        if name in genre.slots:
            return dice.choice(genre.slots[name])
        return str(dice.randint(10, 95) if name == "n" else dice.randint(2, 9))

    return _SLOT.sub(word, frame)
