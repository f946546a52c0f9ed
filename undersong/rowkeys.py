"""Names in rows that nobody reads: a misspelt trait would be an unknown score, and nothing would say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from undersong.models import TRAITS, Problem, Row
from undersong.rulebook import did_you_mean
from undersong.taxonomy import taxonomy

OTHER_NAMES = {"thread": "conversation", "ts": "time", "timestamp": "time"}
MOST = 20  # names told of one file: a hostile one has another name in every row
_MEANT = {name: name for name in Row.__struct_fields__} | OTHER_NAMES | {
    "scores": "traits", "traitscores": "traits", "author": "agent", "agentid": "agent", "sender": "agent",
    "recipient": "target", "conversationid": "conversation", "threadid": "conversation",
}  # fmt: skip
_KEYS = frozenset({*Row.__struct_fields__, *OTHER_NAMES, "scored"})
_TRAITS = frozenset(TRAITS)
_CLOSE = 0.8  # of difflib: `traist` and `trait` are close to `traits`; other keys may be anybody's own
_LENGTH = 80  # characters of a name that are looked at and told


class UnknownKeys:
    """The names in the rows of one file that nobody reads: each is told once, at the first line that has it."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._reported: set[str] = set()

    def of(self, row: Mapping[str, Any], line: int) -> Iterator[Problem]:
        """A note for each new name in a row: traits and indicators that are none, keys that look like one it lacks."""
        for what, remedy in (*_traits(row), *_indicators(row), *_keys(row)):
            if what not in self._reported and len(self._reported) < MOST:
                self._reported.add(what)
                last = " (further such names are not told)" if len(self._reported) == MOST else ""
                yield Problem(what=f"{what}{last}", where=f"{self._file}:{line}", remedy=remedy, kind="note")


def _traits(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names in ``traits`` that are no trait, and what may be meant."""
    traits = row.get("traits")
    if isinstance(traits, dict):
        for name in sorted(traits.keys() - _TRAITS):
            yield f"trait {name[:_LENGTH]!r} is not read", _trait_meant(name[:_LENGTH])


def _indicators(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Ids of indicators that no pattern of ours asks for, and those that may be meant."""
    indicators = row.get("indicators")
    for indicator in indicators if isinstance(indicators, list | dict) else ():
        name = indicator.get("id") if isinstance(indicator, dict) else indicator
        if isinstance(name, str) and (remedy := _indicator_meant(name[:_LENGTH])):
            yield f"indicator {name[:_LENGTH]!r} is not of the taxonomy", remedy


def _keys(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys of a row that look like one that it lacks, and traits outside of ``traits``."""
    for name in sorted(row.keys() - _KEYS):
        meant = "traits" if name in _TRAITS else _key_meant(name[:_LENGTH])
        if meant is not None and not row.keys() & {meant, *_other_names(meant)}:
            yield (
                f"key {name[:_LENGTH]!r} is not read",
                f"write it in {meant!r}" if name in _TRAITS else f"did you mean {meant!r}?",
            )


@lru_cache(maxsize=1 << 10)
def _trait_meant(name: str) -> str:
    return did_you_mean(name.lower(), list(TRAITS))


@lru_cache(maxsize=1 << 10)
def _indicator_meant(name: str) -> str:
    """What may be meant by an id of the taxonomy's kind; nothing for one that it has, and for names of another kind."""
    indicators = taxonomy().indicators
    kinds = {each.partition("-")[0] for each in indicators}
    if name in indicators or name.partition("-")[0].upper() not in kinds:
        return ""
    return did_you_mean(
        name.upper(), [each for each in indicators if each.startswith(name.partition("-")[0].upper() + "-")]
    )


@lru_cache(maxsize=1 << 10)
def _key_meant(name: str) -> str | None:
    close = get_close_matches(name.replace("_", "").lower(), sorted(_MEANT), n=1, cutoff=_CLOSE)
    return _MEANT[close[0]] if close else None


def _other_names(meant: str) -> Iterator[str]:
    return (other for other, name in OTHER_NAMES.items() if name == meant)
