"""Matches of earlier searches, by the rows they depend on: of a table that grew only what is new is searched."""

from __future__ import annotations

from typing import NamedTuple

MOST = 1 << 17  # matches in a generation, of about 200 bytes; a hundred agents with 500 rows have as many
_SIZES = (32, 64, 128, 256)  # rows


class _Generations(NamedTuple):
    """Matches by masks; those ``before`` go when the recent ones are many."""

    recent: dict[bytes, bytes]
    before: dict[bytes, bytes]

    def get(self, rows: bytes) -> bytes | None:
        path = self.recent.get(rows)
        if path is None:
            path = self.before.get(rows)
            if path is not None:
                self.recent[rows] = path
        return path


class RulePaths(NamedTuple):
    """The matches of one rule: a byte for the variable of each row, none where there is no match.

    A pattern without anchors finds the same in the same masks, wherever they are. Under ``first`` are those that depend
    on the next 32 rows from their start (or 64, and so on) and on no limit, under ``whole`` those that their limit may
    decide, by all rows up to it.
    """

    first: _Generations
    whole: _Generations

    def get(self, rows: bytes, width: int) -> bytes | None:
        """The match in rows from start to limit, with masks of so many bytes; None where it is not known."""
        for size in _SIZES:
            if size * width > len(rows):
                break
            path = self.first.get(rows[: size * width])
            if path is not None:
                return path
        return self.whole.get(rows)

    def put(self, rows: bytes, width: int, depends: int, path: bytes) -> None:
        """Keep the match in rows from start to limit; it depends on so many of them, or on the limit if on more."""
        size = next((size for size in _SIZES if depends <= size), None)
        if size is None or size * width > len(rows):
            self.whole.recent[rows] = path
        else:
            self.first.recent[rows[: size * width]] = path


class PathCache:
    """The matches of earlier searches, of all rules; of those that were not asked for lately none is kept."""

    def __init__(self) -> None:
        self._recent: dict[tuple[str, bool], dict[bytes, bytes]] = {}
        self._before: dict[tuple[str, bool], dict[bytes, bytes]] = {}

    def of(self, rule_hash: str) -> RulePaths:
        """The matches of one rule."""
        if sum(map(len, self._recent.values())) > MOST:
            self._before, self._recent = self._recent, {}
        return RulePaths(self._generations((rule_hash, True)), self._generations((rule_hash, False)))

    def _generations(self, key: tuple[str, bool]) -> _Generations:
        return _Generations(self._recent.setdefault(key, {}), self._before.get(key, {}))
