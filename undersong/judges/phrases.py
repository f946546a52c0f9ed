"""Prototype phrases: one YAML file per signal, with phrases that show it and phrases that only look alike."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from undersong import rulebook
from undersong.errors import RuleError

SHIPPED = rulebook.RULES / "prototypes"
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
    background = rulebook.read(path if path.exists() else SHIPPED / BACKGROUND, Background).sentences
    return PhraseBook(sets, background, _digest(sets, background))


def _phrase_set(path: Path) -> PhraseSet:
    document = rulebook.load(path)
    phrase_set = rulebook.convert(document, PhraseSet)
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


def _refuse_blank_or_repeated(document: rulebook.YamlDocument, key: str, phrases: Sequence[str]) -> None:
    for place, phrase in enumerate(phrases):
        if not phrase.strip():
            raise document.error("the phrase is blank", f"$.{key}[{place}]", "write a sentence or remove it")
        if phrase in phrases[:place]:
            raise document.error("the phrase comes twice", f"$.{key}[{place}]", "remove one of the two")


def _digest(sets: Sequence[PhraseSet], background: Sequence[str]) -> str:
    return hashlib.sha256(msgspec.json.encode([sets, background])).hexdigest()
