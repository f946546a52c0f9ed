"""The words by which a message says that somebody looks, or that nobody does, typed."""

from __future__ import annotations

import re
from functools import cache

from undersong.datafiles import yaml_loader
from undersong.datafiles.yaml_loader import DataFile

FILE = "watching.yaml"
LOOKED = 16_000  # characters of a message that are looked at; a stretch that a judge is shown has no more
_SENTENCE_END = re.compile(r"[.!?\n]+")


class WatchingCases(DataFile, frozen=True, kw_only=True):
    """Sentences that the file holds itself to."""

    watched: tuple[str, ...]
    unwatched: tuple[str, ...]
    neither: tuple[str, ...]


class WatchingWords(DataFile, frozen=True, kw_only=True):
    """``rules/watching.yaml``: see the comments there."""

    why: str
    misses: str
    stems: tuple[str, ...]
    watched: tuple[str, ...]
    unwatched: tuple[str, ...]
    cases: WatchingCases


@cache
def watching_words() -> WatchingWords:
    """The shipped words; raises RuleError with file and line."""
    return yaml_loader.read(yaml_loader.RULES / FILE, WatchingWords)


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    words = watching_words()
    watched, unwatched = (re.compile("|".join(listed), re.IGNORECASE) for listed in (words.watched, words.unwatched))
    return watched, unwatched


def says_watched(text: str) -> int:
    """1 where the beginning of a text says that somebody looks, -1 that nobody does, 0 where neither, or both."""
    stems, text = watching_words().stems, text[:LOOKED]
    lowered = text.lower()
    if not any(stem in lowered for stem in stems):
        return 0
    watched, unwatched = _patterns()
    yes = no = False
    for sentence in _SENTENCE_END.split(text):
        lowered = sentence.lower()
        if any(stem in lowered for stem in stems):
            rest, count = unwatched.subn(" ", sentence)
            no, yes = no or count > 0, yes or watched.search(rest) is not None
    return int(yes) - int(no)
