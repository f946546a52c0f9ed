"""Made-up text of kinds that no head was measured on, from sentence frames; the same seed gives the same text."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from undersong import rulebook

FILE = rulebook.RULES / "genres.yaml"
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
    document = rulebook.load(path)
    genres = rulebook.convert(document, _Genres).genres
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
